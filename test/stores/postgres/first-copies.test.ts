import { beforeEach, describe, expect, it } from 'vitest';
import type { AcceptRequest, AcceptResult } from '../../../src/stores/index.ts';
import { expectCountsRight, ownSchema } from '../postgres-schemas.ts';
import { acceptRequest, key, leaseOf, RETENTION_MS } from '../requests.ts';

const at = ownSchema();
beforeEach(() => at.clear());

/** As many at once on two processes' stores: half of them here, half of them there. */
async function race(requests: readonly AcceptRequest[]): Promise<readonly AcceptResult[]> {
  const stores = at.pools.map((pool) => at.store(pool));
  for (const store of stores) await store.open();
  const results = await Promise.all(
    requests.map((request, n) => (stores[n % stores.length] ?? expect.fail()).accept(request)),
  );
  for (const store of stores) await store.close();
  return results;
}

const kindsOf = (results: readonly AcceptResult[]): readonly string[] =>
  results.map(({ kind }) => kind).toSorted();

const PAIRS = 40;

describe('concurrent accepts of two processes', () => {
  it('of one key without a task: one is won, the other is in flight', async () => {
    const requests = Array.from({ length: 2 * PAIRS }, (_, n) => acceptRequest({ key: key(n >> 1) }));
    const kinds = kindsOf(await race(requests));
    expect(kinds).toEqual([
      ...Array.from({ length: PAIRS }, () => 'in-flight'),
      ...Array.from({ length: PAIRS }, () => 'won'),
    ]);
    await expectCountsRight(at);
  });

  it('of one nonce with two events: one is won, the other is replayed and leaves no row', async () => {
    const requests = Array.from({ length: 2 * PAIRS }, (_, n) => {
      const nonce = { keyid: 'kid', nonce: `nonce-${n >> 1}`, nowMs: 0, expiresAtMs: 60_000 };
      return { ...acceptRequest({ key: key(n) }), nonce };
    });
    const kinds = kindsOf(await race(requests));
    expect(kinds).toEqual([
      ...Array.from({ length: PAIRS }, () => 'replayed'),
      ...Array.from({ length: PAIRS }, () => 'won'),
    ]);
    expect(await at.sql('SELECT count(*)::integer AS n FROM record')).toEqual([{ n: PAIRS }]);
    await expectCountsRight(at);
  });

  it('of one notification id under two keys: one is a re-emission', async () => {
    const requests = Array.from({ length: 2 * PAIRS }, (_, n) => {
      const { event, ...request } = acceptRequest({ key: key(n) });
      return {
        ...request,
        ...(event && { event: { ...event, notificationId: `notification-${n >> 1}` } }),
      };
    });
    const results = await race(requests);
    expect(results.every(({ kind }) => kind === 'won')).toBe(true);
    expect(results.filter((result) => 'reemission' in result && result.reemission)).toHaveLength(PAIRS);
    await expectCountsRight(at);
  });

  it('of two events of one task: one is won, the other finds the task busy', async () => {
    const requests = Array.from({ length: 2 * PAIRS }, (_, n) =>
      acceptRequest({ key: key(n), task: `task-${n >> 1}` }),
    );
    const kinds = kindsOf(await race(requests));
    expect(kinds).toEqual([
      ...Array.from({ length: PAIRS }, () => 'task-busy'),
      ...Array.from({ length: PAIRS }, () => 'won'),
    ]);
    await expectCountsRight(at);
  });
});

describe('the next event of a task that is known', () => {
  it('is won while the task is free, alone or in a batch, and reports that the task had ended', async () => {
    const store = at.store();
    await store.open();
    const one = (n: number, second: number, terminal: boolean): AcceptRequest => {
      const { event, ...request } = acceptRequest({ key: key(n), task: `task-${n % 10}` });
      const instant = `00000000000${second}.`;
      const task = { id: `task-${n % 10}`, instant, instantMs: second * 1000, terminal };
      return { ...request, ...(event && { event: { ...event, task } }) };
    };
    const settle = async (requests: readonly AcceptRequest[]): Promise<readonly AcceptResult[]> => {
      const results = await Promise.all(requests.map((request) => store.accept(request)));
      for (const request of requests) {
        await store.complete({ ...leaseOf(request), retentionMs: RETENTION_MS });
      }
      return results;
    };
    const first = await settle(Array.from({ length: 10 }, (_, n) => one(n, 1, true)));
    expect(first.every((result) => result.kind === 'won' && !result.afterTerminal)).toBe(true);
    const next = await settle(Array.from({ length: 10 }, (_, n) => one(10 + n, 2, false)));
    expect(next.every((result) => result.kind === 'won' && result.afterTerminal)).toBe(true);
    const alone = await settle([one(20, 3, false)]);
    expect(alone).toMatchObject([{ kind: 'won', afterTerminal: false }]);
    const [old] = await settle([one(30, 1, false)]);
    expect(old?.kind).toBe('stale');
    await expectCountsRight(at);
    await store.close();
  });
});
