import { createPool, type Pool } from 'mysql2/promise';
import { describe, expect, it } from 'vitest';
import type { CompleteRequest } from '../../../src/stores/index.ts';
import type { MysqlConnection } from '../../../src/stores/mysql.ts';
import { ownDatabase, TAKE_OVER } from '../mysql-databases.ts';
import { describeTransactions } from '../sql/transaction-tests.ts';

const at = ownDatabase();

const newPool = (connectionLimit: number): Pool => createPool({ uri: at.url, connectionLimit });

const write = (tx: MysqlConnection, line = 'by the handler'): Promise<unknown> =>
  tx.query('INSERT INTO note VALUES (?)', [line]);

const OPEN_TRANSACTIONS =
  'SELECT COUNT(*) AS n FROM information_schema.INNODB_TRX t JOIN information_schema.PROCESSLIST p ON p.ID = t.trx_mysql_thread_id WHERE p.DB = ?';

const kit = describeTransactions<MysqlConnection, Pool>('MySQL', {
  at,
  newPool,
  table: (name) => name,
  write,
  takeOver: TAKE_OVER,
  endings: ['COMMIT', 'ROLLBACK', 'BEGIN', 'CREATE TABLE IF NOT EXISTS made (n INT)'],
  endingMessage: /transaction had ended before the function did/,
  kill: async (tx) => {
    const [[row]] = (await tx.query('SELECT CONNECTION_ID() AS id')) as unknown as [[{ id: number }]];
    await at.sql(`KILL ${row.id}`);
  },
  brokenConnection: /closed|ended|lost|reset|killed/i,
  // The server rolls back what a closed connection left, in its own time; asked more often, it answers what it did before.
  expectNoneOpen: () =>
    expect
      .poll(async () => (await at.sql(OPEN_TRANSACTIONS, [at.database]))[0]?.['n'], { interval: 200 })
      .toBe(0),
  idleTooLongMs: 2 ** 35,
  idleShortestMs: 1000,
});

describe('ctx.transaction on MySQL only', () => {
  it('keeps the other writes when the function caught the error of a statement', async () => {
    const lease = await kit.leased();
    await kit.store.transaction(lease, async (tx) => {
      await write(tx);
      await tx.query('SELECT nothing').catch(() => undefined);
    });
    expect(await kit.notes()).toEqual(['by the handler']);
    expect(await kit.store.peek(lease.sender, lease.key)).toBe('applied');
  });

  it('fails when the function caught a deadlock, after which the server has rolled everything back', async () => {
    await at.sql('CREATE TABLE pair (id INT PRIMARY KEY, n INT); INSERT INTO pair VALUES (1, 0), (2, 0)');
    const lease = await kit.leased();
    const other = await at.pools[1].getConnection();
    await other.query('BEGIN');
    // The server rolls back the transaction that has written less.
    await other.query('INSERT INTO note SELECT seq FROM seq_1_to_1000');
    await other.query('UPDATE pair SET n = n + 1 WHERE id = 2');
    const running = kit.store.transaction(lease, async (tx) => {
      await write(tx);
      await tx.query('UPDATE pair SET n = n + 1 WHERE id = 1');
      const crossing = other.query('UPDATE pair SET n = n + 1 WHERE id = 1');
      const caught = await tx
        .query('UPDATE pair SET n = n + 1 WHERE id = 2')
        .catch((error: unknown) => error);
      expect(caught).toMatchObject({ errno: 1213 });
      await crossing;
      await other.query('ROLLBACK');
      await write(tx, 'outside');
    });
    await expect(running).rejects.toThrow(/let errors through.*deadlock/);
    other.release();
    expect(await kit.store.peek(lease.sender, lease.key)).toBe('busy');
  });

  const idleS = async (lease: CompleteRequest & { leaseMs?: number }, of = kit.store): Promise<unknown> =>
    of.transaction(lease, async (tx) => {
      const [rows] = await tx.query('SELECT @@SESSION.wait_timeout AS s');
      return (rows as [{ s: number }])[0].s;
    });

  it('sets the idle timeout to the longer of the lease and 30 s, or to idleInTransactionMs, and resets the session’s', async () => {
    const { leased } = kit;
    const own = newPool(2);
    const as = at.store(own);
    await as.open();
    const [[before]] = (await own.query('SELECT @@SESSION.wait_timeout AS s')) as unknown as [
      [{ s: number }],
    ];
    expect(await idleS(await leased(), as)).toBe(30);
    expect(await idleS({ ...(await leased({ key: 'event-2-of-the-seller' })), leaseMs: 45_000 }, as)).toBe(
      45,
    );
    const other = at.store(own, { idleInTransactionMs: 1234 });
    const asSetUp = at.store(own, { idleInTransactionMs: 0 });
    await Promise.all([other.open(), asSetUp.open()]);
    expect(await idleS(await leased({ key: 'event-3-of-the-seller' }), other)).toBe(2);
    expect(await idleS(await leased({ key: 'event-4-of-the-seller' }), asSetUp)).toBe(before.s);
    const [[after]] = (await own.query('SELECT @@SESSION.wait_timeout AS s')) as unknown as [[{ s: number }]];
    expect(after).toEqual(before);
    await Promise.all([as.close(), other.close(), asSetUp.close()]);
    await own.end();
  });
});
