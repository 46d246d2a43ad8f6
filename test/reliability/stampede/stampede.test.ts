import { expect, inject, it } from 'vitest';
import { samplePayloads } from '../../../src/testing/index.ts';
import { inThisForm, LONG } from '../form.ts';
import { onGround, type Ground } from '../processes/ground.ts';
import { figuresOf } from '../processes/figures.ts';
import { judge, KEPT } from '../processes/judge.ts';
import type { Kind } from '../processes/stores.ts';
import { inTurns } from '../processes/strikes.ts';
import type { Mode, Orders, Role } from '../processes/wire.ts';
import { tell } from '../../support/tell.ts';

/** Identical deliveries of one event at once. */
const COPIES = 200;
/** Events whose deliveries are under way at once. */
const AT_ONCE = LONG ? 8 : 3;
/**
 * The short form: each round of as many as go at once twice, or once; a round more shows nothing else. The long form's
 * seed is new each time, and printed.
 */
const FORM = LONG
  ? { inline: 1_000, inbox: 200, sameBytes: 100, seed: Date.now() % 2 ** 31, deadlineMs: 3_600_000 }
  : { inline: 6, inbox: 3, sameBytes: 2, seed: 1, deadlineMs: 480_000 };

/** Nobody dies here: the product's own times. A seller waits for 10 s. */
const TIMES = { leaseMs: 8_000, waitMs: 8_000, timeoutMs: 10_000 } as const;

const ROLES: Readonly<Record<Mode, readonly Role[]>> = {
  inline: ['door', 'door', 'door', 'door'],
  inbox: ['door', 'door', 'both', 'both'],
};

const KINDS: readonly Kind[] = ['SQLite', 'Postgres', ...(LONG ? (['MySQL'] as const) : []), 'Redis'];

interface Stampede {
  readonly kind: Kind;
  readonly mode: Mode;
  readonly bytes: 'newly signed' | 'the same bytes';
}

/** `npm test` has one; MySQL is in the long form alone. */
const STAMPEDES = inThisForm(
  KINDS.flatMap((kind): readonly Stampede[] => [
    { kind, mode: 'inline', bytes: 'newly signed' },
    { kind, mode: 'inbox', bytes: 'newly signed' },
    { kind, mode: 'inline', bytes: 'the same bytes' },
  ]),
  ({ kind, bytes }) => kind === 'SQLite' && bytes === 'the same bytes',
);

const keyOf = (index: number): string => `event-${String(index).padStart(6, '0')}-of-the-seller`;

/** Long enough for all copies to come while it runs. */
const HANDLER_MS = 30;

function payloadsOf(keys: number, hasTransactions: boolean): readonly object[] {
  const samples = samplePayloads();
  return Array.from({ length: keys }, (_, index) => {
    const orders: Orders = { inTransaction: hasTransactions && index % 2 === 0, takesMs: HANDLER_MS };
    return samples.report('scheduled', {}, { idempotency_key: keyOf(index), context: orders });
  });
}

/** Each signed by itself, as a seller's retries are, or byte for byte. */
const DELIVER: Readonly<
  Record<Stampede['bytes'], (ground: Ground, payload: object) => Promise<readonly boolean[]>>
> = {
  'newly signed': ({ seller }, payload) =>
    Promise.all(Array.from({ length: COPIES }, () => seller.deliver(payload, 'fresh'))),
  'the same bytes': ({ seller }, payload) => seller.deliverCopies(payload, COPIES),
};

async function stampede({ kind, mode, bytes }: Stampede): Promise<void> {
  const keys = bytes === 'the same bytes' ? FORM.sameBytes : FORM[mode];
  const { seed, deadlineMs } = FORM;
  const options = { kind, mode, seed, roles: ROLES[mode], ...TIMES, deadlineMs };
  await onGround({ ...options, shared: inject('shared') }, async (ground) => {
    const began = performance.now();
    const { backend, seller, fleet } = ground;
    await fleet.whole(ground.signal);
    const ends: boolean[] = [];
    await inTurns(payloadsOf(keys, backend.hasTransactions), AT_ONCE, async (payload) => {
      ends.push(...(await DELIVER[bytes](ground, payload)));
    });
    const noted = await ground.finish();
    const every = Array.from({ length: keys }, (_, index) => keyOf(index));
    const owed = every.map((key) => ({ name: key, keys: [key] }));
    const verdict = judge({ ...noted, owed });
    const counts = { keys, copies: COPIES, completed: noted.completions.length, ...seller.tally };
    const figures = { ...counts, ...figuresOf(options, ground, noted, verdict, began) };
    tell(figures);
    expect(verdict).toEqual(KEPT);
    expect(noted.completions).toHaveLength(keys);
    expect(noted.effects).toHaveLength(backend.hasTransactions ? Math.ceil(keys / 2) : 0);
    expect(seller.unexpected).toEqual([]);
    expect(ends).toEqual(Array.from({ length: keys * COPIES }, () => true));
  });
}

it.each(STAMPEDES)(
  `${COPIES} identical deliveries at once, over 4 processes on one store, $kind, $mode, $bytes: completed once, and every sender ends with a 2xx, or 401 replayed once it is safe`,
  stampede,
  FORM.deadlineMs + 60_000,
);
