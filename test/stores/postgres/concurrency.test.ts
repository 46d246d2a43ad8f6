import { Pool } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Store } from '../../../src/index.ts';
import type { AcceptRequest } from '../../../src/stores/index.ts';
import type { PostgresStore } from '../../../src/stores/postgres.ts';
import { expectCountsRight, ownSchema } from '../postgres-schemas.ts';
import { acceptRequest, RETENTION_MS } from '../requests.ts';
import { notingPool } from './wrapped-pool.ts';

const SENDERS = ['https://a.example/mcp', 'https://b.example/mcp'];
const RETRY = { attempts: 1000, crashes: 1000 };

/** What handlers see: who runs what. Nobody else may run it, nor another event of its task, until it is given up. */
class Ledger {
  readonly running = new Map<string, string>();
  readonly completed = new Map<string, number>();
  readonly wrong: string[] = [];

  begin(names: readonly string[], owner: string): void {
    for (const name of names) {
      const other = this.running.get(name);
      if (other !== undefined) this.wrong.push(`${name} runs under ${other} and ${owner}`);
      this.running.set(name, owner);
    }
  }

  end(names: readonly string[]): void {
    for (const name of names) this.running.delete(name);
  }

  done(event: string): void {
    this.completed.set(event, (this.completed.get(event) ?? 0) + 1);
  }
}

interface Running {
  readonly sender: string;
  readonly key: string;
  readonly owner: string;
}

/** Every third run fails; the others complete. */
async function handle(store: Store, ledger: Ledger, run: Running, turn: number): Promise<void> {
  const { sender, key } = run;
  const names = [`${sender} ${key}`, `${sender} ${taskOf(key)}`];
  ledger.begin(names, run.owner);
  expect(await store.renew({ ...run, leaseMs: 60_000 })).toBe('renewed');
  ledger.end(names);
  if (turn % 3 === 0) {
    const back = { permanent: false, retry: RETRY, backoffMs: 0, retentionMs: RETENTION_MS };
    expect(await store.fail({ ...run, ...back })).toBe('queued');
    return;
  }
  expect(await store.complete({ ...run, retentionMs: RETENTION_MS })).toBe('done');
  ledger.done(`${sender} ${key}`);
}

const KEYS = 40;
const taskOf = (key: string): string => `task-${Number(key.split('-')[1]) % 5}`;

/** Prime to the number of keys: each door goes through all of them, in an order of its own. */
const STRIDES = [3, 7, 9, 11, 13, 17, 19, 21];

/** Through the keys of one sender and of the other, in either mode; then again in inbox mode, so that all are acknowledged. */
async function door(store: PostgresStore, ledger: Ledger, stride: number): Promise<void> {
  for (let turn = 0; turn < 4 * KEYS; turn += 1) {
    const key = `event-${(turn * stride) % KEYS}-of-the-seller`;
    const pass = Math.floor(turn / KEYS);
    const sender = SENDERS[pass % 2] ?? '';
    const request = acceptRequest({ sender, key, task: taskOf(key) });
    const mode = pass < 2 && (turn + stride) % 4 < 2 ? 'inline' : 'inbox';
    const { kind } = await store.accept({ ...request, mode, leaseMs: 60_000, retry: RETRY });
    if (kind === 'won') await handle(store, ledger, { sender, key, owner: request.acceptId }, turn);
    else await store.peek(sender, key);
  }
}

async function lease(store: PostgresStore, ledger: Ledger, owner: string): Promise<number> {
  const asked = { owner, max: 4, leaseMs: 60_000, retry: RETRY, retentionMs: RETENTION_MS, senders: [] };
  const { events } = await store.inbox.lease(asked);
  await Promise.all(
    events.map(({ sender, key }, index) =>
      handle(store, ledger, { sender, key, owner }, index + owner.length),
    ),
  );
  return events.length;
}

describe('several processes at once', () => {
  const at = ownSchema();
  const pools: Pool[] = [];
  beforeAll(() => {
    for (let n = 0; n < 4; n += 1) pools.push(new Pool({ connectionString: at.url, max: 4 }));
  });
  afterAll(() => Promise.all(pools.map((pool) => pool.end())));

  it('receivers and workers: no event runs twice or beside its task, no deadlock, counts are right', async () => {
    const rolledBack: string[] = [];
    const stores = pools.map((pool) =>
      at.store(pool, { pool: notingPool(pool, rolledBack), timeoutMs: 30_000 }),
    );
    for (const store of stores) await store.open();
    const ledger = new Ledger();
    const work = async (store: PostgresStore, seed: number): Promise<void> => {
      for (let turn = 0; turn < 60; turn += 1)
        await lease(store, ledger, `worker-${seed}-${'x'.repeat(turn % 3)}${turn}`);
    };
    await Promise.all(
      stores.flatMap((store, n) => [
        work(store, n),
        ...STRIDES.slice(2 * n, 2 * n + 2).map((stride) => door(store, ledger, stride)),
      ]),
    );
    const [last] = stores;
    expect.assert(last);
    let idle = 0;
    while (idle < 3) idle = (await lease(last, ledger, `drain-${idle}`)) > 0 ? 0 : idle + 1;

    expect(ledger.wrong).toEqual([]);
    expect(rolledBack).toEqual([]);
    expect([...ledger.completed.values()].every((times) => times === 1)).toBe(true);
    const open = await at.sql("SELECT key, state FROM record WHERE acked AND state <> 'applied'");
    expect(open).toEqual([]);
    expect(ledger.completed.size).toBe(2 * KEYS);
    await expectCountsRight(at);
    for (const store of stores) await store.close();
  });

  it('small caps, short retention, concurrent sweeps: no deadlock, counts are right', async () => {
    await at.clear();
    const rolledBack: string[] = [];
    const stores = pools.map((pool) =>
      at.store(pool, { pool: notingPool(pool, rolledBack), timeoutMs: 30_000 }),
    );
    for (const store of stores) await store.open();
    const limits = {
      maxRecordsPerSender: 12,
      maxPendingBytesPerSender: 400,
      maxNoncesPerKey: 30,
      maxNonces: 50,
    };
    const once = async (store: PostgresStore, n: number): Promise<string> => {
      const key = `event-${n % KEYS}-of-the-seller`;
      const request = acceptRequest({ key, task: taskOf(key), sender: SENDERS[n % 2] ?? '' });
      const short = {
        nonce: request.nonce && { ...request.nonce, expiresAtMs: 20 },
        retentionMs: 5,
        leaseMs: 5,
      };
      const { kind } = await store.accept({ ...request, ...short, limits } as AcceptRequest);
      if (kind === 'won') {
        await store.complete({ sender: request.sender, key, owner: request.acceptId, retentionMs: 5 });
      }
      if (n % 7 === 0) await store.sweep();
      return kind;
    };
    // Whether the two senders above come to their caps depends on the machine: a sweep may be quicker. This one's events stay,
    // and it has a cap of records alone: whether all nonces of all senders are too many depends on the machine too.
    const kept = async (store: PostgresStore, n: number): Promise<readonly string[]> => {
      const kinds: string[] = [];
      for (let turn = 0; turn < 20; turn += 1) {
        const request = acceptRequest({
          sender: 'https://kept.example/mcp',
          key: `event-${n}-${turn}-of-it`,
        });
        const own = { ...request.limits, maxRecordsPerSender: limits.maxRecordsPerSender };
        kinds.push((await store.accept({ ...request, limits: own })).kind);
      }
      return kinds;
    };
    const [kinds, keptKinds] = await Promise.all([
      Promise.all(
        stores.flatMap((store, n) =>
          Array.from({ length: 150 }, (_, turn) => once(store, turn * (2 * n + 3))),
        ),
      ),
      Promise.all(stores.map(kept)),
    ]);
    expect(rolledBack).toEqual([]);
    expect(new Set(kinds)).toContain('won');
    expect(new Set(keptKinds.flat())).toEqual(new Set(['won', 'over-cap']));
    await expectCountsRight(at);
    for (const store of stores) await store.close();
  });

  it('caps are exceeded at most by what processes have under way, with concurrent accepts of the same sender', async () => {
    await at.clear();
    const stores = pools.map((pool) => at.store(pool, { timeoutMs: 30_000 }));
    for (const store of stores) await store.open();
    const { limits } = acceptRequest();
    const kindsOf = async (store: PostgresStore, sender: string, n: number): Promise<readonly string[]> => {
      const kinds: string[] = [];
      for (let turn = 0; turn < 4; turn += 1) {
        const request = acceptRequest({ sender, key: `event-${n}-${turn}-of-the-seller` });
        const { kind } = await store.accept({ ...request, limits: { ...limits, maxRecordsPerSender: 10 } });
        const { event: _event, ...alone } = acceptRequest({ sender });
        const nonce = alone.nonce && { ...alone.nonce, keyid: 'other' };
        const burned = { ...alone, ...(nonce && { nonce }), limits: { ...limits, maxNoncesPerKey: 10 } };
        kinds.push(kind, (await store.accept(burned)).kind);
      }
      return kinds;
    };
    // Each sender comes to its cap once; that is the moment that counts.
    for (let round = 0; round < 12; round += 1) {
      const sender = `https://seller-${round}.example/mcp`;
      const kinds = await Promise.all([...stores, ...stores].map((store, n) => kindsOf(store, sender, n)));
      for (const kind of ['won', 'burned']) {
        const taken = kinds.flat().filter((one) => one === kind).length;
        expect(taken).toBeGreaterThanOrEqual(10);
        // Each of them has one under way.
        expect(taken).toBeLessThan(10 + kinds.length);
      }
    }
    await expectCountsRight(at);
    for (const store of stores) await store.close();
  });
});
