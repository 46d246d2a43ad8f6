import { describe, expect, inject, it } from 'vitest';
import { inThisForm, LONG } from '../reliability/form.ts';
import { type Random, randomOf } from '../reliability/processes/random.ts';
import type { Kind } from '../reliability/processes/stores.ts';
import { apart, type BuyerProcess, within } from './buyer/processes.ts';
import type { Seen, Wish } from './buyer/wire.ts';
import { OFFERED } from './seller/entries.ts';
import { accountOf, OTHERS } from './seller/others.ts';
import { faultsIn, inWorld, oursIn, refusedIn, settled, type World } from './world.ts';

const SET = 'acc-1';

interface Row {
  readonly kind: Kind;
  /** Two processes of their own, by the transport's client; else within this one. */
  readonly isApart: boolean;
  readonly changes: number;
}

const KINDS: readonly Kind[] = ['SQLite', 'Postgres', 'MySQL', 'Redis'];
const SOME: readonly Row[] = KINDS.map((kind) => ({ kind, isApart: false, changes: 6 }));
const APART: readonly Row[] = KINDS.map((kind) => ({ kind, isApart: true, changes: 6 }));

/** What was asked for last of a name; undefined: that it be gone. */
type Asked = Map<string, readonly string[] | undefined>;

const someOf = (random: Random, from: readonly string[]): readonly string[] => {
  const some = from.filter(() => random.next() < 0.3);
  return some.length > 0 ? some : [random.pick(from)];
};

/** One change after the other, of names that only this process changes. */
async function changes(
  world: World,
  process: BuyerProcess,
  of: {
    readonly random: Random;
    readonly refs: readonly string[];
    readonly count: number;
    readonly asked: Asked;
  },
): Promise<void> {
  const { random, refs, count, asked } = of;
  const schemes = ['signature', 'HMAC-SHA256'] as const;
  for (let done = 0; done < count; done += 1) {
    const ref = random.pick(refs);
    const common = { agentUrl: world.seller.agentUrl, account: { account_id: SET }, ref };
    if (asked.get(ref) !== undefined && random.next() < 0.3) {
      asked.set(ref, undefined);
      await process.ask({ what: 'unsubscribe', wish: common });
      continue;
    }
    const eventTypes = someOf(random, OFFERED.account);
    // The scheme goes with the name: a change of it is in the sweeps.
    const scheme = schemes[ref.length % 2] ?? 'signature';
    const wish: Wish = { ...common, eventTypes, scheme };
    asked.set(ref, eventTypes);
    await process.ask({ what: 'subscribe', wish });
  }
}

describe.each(
  [...inThisForm(SOME, ({ kind }) => kind === 'SQLite'), ...(LONG ? APART : [])].map(
    (row) => [`${row.kind}, ${row.isApart ? 'processes of their own' : 'two handles'}`, row] as const,
  ),
)('two processes that change one set at once: %s', (_name, { kind, isApart, changes: most }) => {
  const seed = LONG ? Date.now() % 2 ** 31 : 11;
  it(`the seller's set is what was asked for, seed ${seed}`, async () => {
    const count = LONG ? most * 20 : most;
    await inWorld(
      {
        kind,
        shared: inject('shared'),
        startBy: ({ direct }) => (isApart ? apart(inject('shared')) : within(direct)),
      },
      async (world) => {
        const { seller } = world;
        seller.add(accountOf(SET));
        for (const entry of OTHERS) seller.put(SET, entry);
        const [one, two] = await Promise.all([world.start(), world.start()]);
        world.send(one, two);
        const asked: Asked = new Map();
        await Promise.all([
          changes(world, one, { random: randomOf(seed), refs: ['a', 'ab'], count, asked }),
          changes(world, two, { random: randomOf(seed + 1), refs: ['b', 'bc'], count, asked }),
        ]);
        const seen: readonly Seen[] = await settled(world, two);
        expect(faultsIn(world, SET, OTHERS, seen)).toEqual([]);
        const wanted = [...asked].flatMap(([ref, types]) =>
          types ? [[ref, ...types.toSorted()].join()] : [],
        );
        expect(seen.map(({ ref, eventTypes }) => [ref, ...eventTypes.toSorted()].join()).toSorted()).toEqual(
          wanted.toSorted(),
        );
        expect(seen.filter(({ state }) => state !== 'active')).toEqual([]);
        expect(oursIn(world, SET)).toHaveLength(wanted.length);
        await seller.emit(SET, world.baseUrl);
        expect(refusedIn(seller.log)).toEqual([]);
        expect(seller.log.filter(({ what }) => what === 'set').length).toBeGreaterThan(count);
      },
    );
  }, 3_600_000);
});
