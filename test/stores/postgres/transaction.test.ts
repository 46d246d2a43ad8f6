import { Pool } from 'pg';
import { describe, expect, it } from 'vitest';
import type { CompleteRequest } from '../../../src/stores/index.ts';
import type { PgClient } from '../../../src/stores/postgres.ts';
import { ownSchema, TAKE_OVER } from '../postgres-schemas.ts';
import { describeTransactions } from '../sql/transaction-tests.ts';

const at = ownSchema();

const write = (tx: PgClient, line = 'by the handler'): Promise<unknown> =>
  tx.query(`INSERT INTO ${at.schema}.note VALUES ($1)`, [line]);

const kit = describeTransactions<PgClient, Pool>('Postgres', {
  at,
  newPool: (max) => new Pool({ connectionString: at.url, max }),
  table: (name) => `${at.schema}.${name}`,
  write,
  takeOver: TAKE_OVER,
  endings: ['COMMIT', 'ROLLBACK', 'COMMIT; BEGIN'],
  endingMessage: /ended the transaction itself/,
  kill: async (tx) => {
    const [row] = (await tx.query('SELECT pg_backend_pid() AS pid')).rows as [{ pid: number }];
    await at.sql('SELECT pg_terminate_backend($1)', [row.pid]);
  },
  brokenConnection: /terminat|connection/i,
  expectNoneOpen: async (pool) => expect(pool.totalCount).toBe(pool.idleCount),
  idleTooLongMs: 2 ** 31,
  idleShortestMs: 200,
});

describe('ctx.transaction on Postgres only', () => {
  it('fails and writes nothing when the function caught the error of a statement', async () => {
    const lease = await kit.leased();
    const running = kit.store.transaction(lease, async (tx) => {
      await write(tx);
      await tx.query('SELECT 1 / 0').catch(() => undefined);
    });
    await expect(running).rejects.toThrow(/error was caught.*SAVEPOINT/);
    expect(await kit.notes()).toEqual([]);
    expect(await kit.store.complete(lease)).toBe('done');
  });

  it('throws the error of a deferred constraint unchanged and writes nothing', async () => {
    await at.sql('CREATE TABLE single (n integer UNIQUE DEFERRABLE INITIALLY DEFERRED)');
    const lease = await kit.leased();
    const running = kit.store.transaction(lease, (tx) =>
      tx.query(`INSERT INTO ${at.schema}.single VALUES (1), (1)`),
    );
    await expect(running).rejects.toMatchObject({ code: '23505' });
    expect(await kit.store.peek(lease.sender, lease.key)).toBe('busy');
    expect(await at.sql('SELECT n FROM single')).toEqual([]);
  });

  const idleMs = async (lease: CompleteRequest & { leaseMs?: number }, of = kit.store): Promise<unknown> =>
    of.transaction(lease, async (tx) => {
      const { rows } = await tx.query(
        "SELECT setting FROM pg_settings WHERE name = 'idle_in_transaction_session_timeout'",
      );
      return Number((rows[0] as { setting: string }).setting);
    });

  it('sets the idle timeout to the longer of the lease and 30 s, or to idleInTransactionMs, for the transaction alone', async () => {
    const { leased } = kit;
    expect(await idleMs(await leased())).toBe(30_000);
    expect(await idleMs({ ...(await leased({ key: 'event-2-of-the-seller' })), leaseMs: 45_000 })).toBe(
      45_000,
    );
    const other = at.store(at.pools[0], { idleInTransactionMs: 1234 });
    const asSetUp = at.store(at.pools[0], { idleInTransactionMs: 0 });
    await Promise.all([other.open(), asSetUp.open()]);
    expect(await idleMs(await leased({ key: 'event-3-of-the-seller' }), other)).toBe(1234);
    expect(await idleMs(await leased({ key: 'event-4-of-the-seller' }), asSetUp)).toBe(0);
    await Promise.all([other.close(), asSetUp.close()]);
  });
});
