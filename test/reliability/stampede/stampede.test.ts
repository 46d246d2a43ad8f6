import { describe, expect, inject, it } from 'vitest';
import { samplePayloads } from '../../../src/testing/payloads.ts';
import { LONG } from '../form.ts';
import { onGround, type Ground } from '../processes/ground.ts';
import type { Kind } from '../processes/stores.ts';
import type { Mode, Orders, Role } from '../processes/wire.ts';

/** Identical deliveries of one event at once. */
const COPIES = 200;
/** Events whose deliveries are under way at once. */
const AT_ONCE = LONG ? 8 : 3;
/** The short form: each round of as many as go at once twice, or once; a round more shows nothing else. */
const FORM = LONG
  ? { inline: 1_000, inbox: 200, sameBytes: 100, deadlineMs: 3_600_000 }
  : { inline: 6, inbox: 3, sameBytes: 2, deadlineMs: 480_000 };

/** Nobody dies here: the product's own times. A seller waits for 10 s. */
const TIMES = { leaseMs: 8_000, waitMs: 8_000, timeoutMs: 10_000 } as const;

const ROLES: Readonly<Record<Mode, readonly Role[]>> = {
  inline: ['door', 'door', 'door', 'door'],
  inbox: ['door', 'door', 'both', 'both'],
};

const KINDS: readonly Kind[] = ['SQLite', 'Postgres', ...(LONG ? (['MySQL'] as const) : []), 'Redis'];
const MODES: readonly Mode[] = ['inline', 'inbox'];

interface Stampede {
  readonly kind: Kind;
  readonly mode: Mode;
  readonly keys: number;
  readonly deliver: (ground: Ground, payload: object) => Promise<readonly boolean[]>;
}

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

async function stampede({ kind, mode, keys, deliver }: Stampede): Promise<void> {
  const options = { kind, mode, seed: 1, roles: ROLES[mode], ...TIMES, deadlineMs: FORM.deadlineMs };
  await onGround({ ...options, shared: inject('shared') }, async (ground) => {
    const began = performance.now();
    const { backend, seller, ledger, fleet } = ground;
    await fleet.whole(ground.signal);
    const waiting = payloadsOf(keys, backend.hasTransactions).values();
    const ends: boolean[] = [];
    const inTurn = async (): Promise<void> => {
      for (const payload of waiting) ends.push(...(await deliver(ground, payload)));
    };
    await Promise.all(Array.from({ length: AT_ONCE }, inTurn));
    await ground.drained();
    await fleet.stop();

    const completed = (await backend.completions()).map(({ key }) => key);
    const runs = ledger.read().filter(({ what }) => what === 'run').length;
    const effects = (await backend.effects()).map(({ key }) => key);
    const seconds = Math.round((performance.now() - began) / 1000);
    const figures = {
      kind,
      mode,
      keys,
      copies: COPIES,
      completed: completed.length,
      runs,
      ...seller.tally,
      seconds,
    };
    if (LONG) process.stdout.write(`${JSON.stringify(figures)}\n`);
    const every = Array.from({ length: keys }, (_, index) => keyOf(index));
    expect(completed.toSorted()).toEqual(every);
    expect(effects.toSorted()).toEqual(
      every.filter((_, index) => backend.hasTransactions && index % 2 === 0),
    );
    expect(seller.unexpected).toEqual([]);
    expect(ends).toEqual(Array.from({ length: keys * COPIES }, () => true));
  });
}

/** Each signed by itself, as a seller's retries are. */
const freshly = ({ seller }: Ground, payload: object): Promise<readonly boolean[]> =>
  Promise.all(Array.from({ length: COPIES }, () => seller.deliver(payload, 'fresh')));

const byteForByte = ({ seller }: Ground, payload: object): Promise<readonly boolean[]> =>
  seller.deliverCopies(payload, COPIES);

describe.each(KINDS)(`${COPIES} identical deliveries at once, over 4 processes on one store, %s`, (kind) => {
  it.each(MODES)(
    '%s: each key is completed once, and every sender ends with a 2xx',
    (mode) => stampede({ kind, mode, keys: FORM[mode], deliver: freshly }),
    FORM.deadlineMs + 60_000,
  );

  it(
    'the same bytes: completed once, and every sender ends with a 2xx, or 401 replayed once it is safe',
    () => stampede({ kind, mode: 'inline', keys: FORM.sameBytes, deliver: byteForByte }),
    FORM.deadlineMs + 60_000,
  );
});
