import { createPool } from 'mysql2/promise';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ConfigError } from '../../../src/errors.ts';
import type { CompleteRequest } from '../../../src/stores/contract.ts';
import type { MysqlConnection, MysqlStore } from '../../../src/stores/mysql.ts';
import { ownDatabase, TAKE_OVER } from '../mysql-databases.ts';
import { acceptRequest, leaseOf, RETENTION_MS } from '../requests.ts';

const at = ownDatabase();
let store: MysqlStore;
beforeAll(async () => {
  store = at.store();
  await store.open();
});
beforeEach(() => at.clear());
afterAll(() => store.close());

const notes = async (): Promise<unknown[]> =>
  (await at.sql('SELECT line FROM note ORDER BY line')).map(({ line }) => line);
const write = (tx: MysqlConnection, line = 'by the handler'): Promise<unknown> =>
  tx.query('INSERT INTO note VALUES (?)', [line]);

async function won(
  draft: Parameters<typeof acceptRequest>[0] = {},
  leaseMs = 8000,
): Promise<CompleteRequest> {
  const request = { ...acceptRequest(draft), leaseMs };
  expect((await store.accept(request)).kind).toBe('won');
  return { ...leaseOf(request), retentionMs: RETENTION_MS };
}

describe('ctx.transaction on MySQL', () => {
  it('renewals go on while the function runs, and so it may run longer than its lease', async () => {
    const lease = await won({}, 1000);
    await store.transaction(lease, async (tx) => {
      await write(tx);
      expect(await store.renew({ ...lease, leaseMs: 60_000 })).toBe('renewed');
      expect(await store.peek(lease.sender, lease.key)).toBe('busy');
      expect((await store.accept(acceptRequest())).kind).toBe('in-flight');
    });
    expect(await notes()).toEqual(['by the handler']);
    expect(await store.peek(lease.sender, lease.key)).toBe('applied');
  });

  it('taken over by another owner meanwhile: lease_lost, and its writes are gone', async () => {
    const lease = await won({}, 1);
    const first = await won({}, 8000);
    const running = store.transaction({ ...lease }, async (tx) => write(tx));
    await expect(running).rejects.toMatchObject({ code: 'lease_lost' });
    const late = store.transaction(first, async (tx) => {
      await write(tx);
      await at.sql(TAKE_OVER);
    });
    await expect(late).rejects.toMatchObject({ code: 'lease_lost' });
    expect(await notes()).toEqual([]);
  });

  it('completed by the same owner meanwhile: its writes belong to no completion', async () => {
    const lease = await won();
    const twice = store.transaction(lease, async (tx) => {
      await write(tx);
      expect(await store.complete(lease)).toBe('done');
    });
    await expect(twice).rejects.toMatchObject({ code: 'lease_lost' });
    expect(await notes()).toEqual([]);
  });

  it.each(['COMMIT', 'ROLLBACK', 'BEGIN', 'CREATE TABLE IF NOT EXISTS made (n INT)'])(
    'a function that says %s is told not to; not completed',
    async (says) => {
      const lease = await won();
      const running = store.transaction(lease, async (tx) => {
        await write(tx);
        await tx.query(says);
      });
      await expect(running).rejects.toBeInstanceOf(ConfigError);
      await expect(running).rejects.toThrow(/transaction had ended before the function did/);
      expect(await store.peek(lease.sender, lease.key)).toBe('busy');
    },
  );

  it('a statement that failed and was caught is the function’s own: the others are kept', async () => {
    const lease = await won();
    await store.transaction(lease, async (tx) => {
      await write(tx);
      await tx.query('SELECT nothing').catch(() => undefined);
    });
    expect(await notes()).toEqual(['by the handler']);
    expect(await store.peek(lease.sender, lease.key)).toBe('applied');
  });

  it('a deadlock that was caught: the server has rolled all back, and it is told so', async () => {
    await at.sql('CREATE TABLE pair (id INT PRIMARY KEY, n INT); INSERT INTO pair VALUES (1, 0), (2, 0)');
    const lease = await won();
    const other = await at.pools[1].getConnection();
    await other.query('BEGIN');
    // What has written more is not the one that is rolled back.
    await other.query('INSERT INTO note SELECT seq FROM seq_1_to_1000');
    await other.query('UPDATE pair SET n = n + 1 WHERE id = 2');
    const running = store.transaction(lease, async (tx) => {
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
    expect(await store.peek(lease.sender, lease.key)).toBe('busy');
  });

  it('a connection that breaks inside: what the function saw is thrown, nothing is written, the pool goes on', async () => {
    const lease = await won();
    const running = store.transaction(lease, async (tx) => {
      await write(tx);
      const [[row]] = (await tx.query('SELECT CONNECTION_ID() AS id')) as unknown as [[{ id: number }]];
      await at.sql(`KILL ${row.id}`);
      await write(tx, 'second');
    });
    await expect(running).rejects.toThrow(/closed|ended|lost|reset|killed/i);
    expect(await notes()).toEqual([]);
    await store.transaction(lease, (tx) => write(tx, 'again'));
    expect(await notes()).toEqual(['again']);
  });

  it('a connection that breaks before COMMIT: store_unavailable, and the record says what happened', async () => {
    const lease = await won();
    const running = store.transaction(lease, async (tx) => {
      await write(tx);
      const [[row]] = (await tx.query('SELECT CONNECTION_ID() AS id')) as unknown as [[{ id: number }]];
      await at.sql(`KILL ${row.id}`);
    });
    await expect(running).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(await store.peek(lease.sender, lease.key)).toBe('busy');
    expect(await notes()).toEqual([]);
  });

  it('at most one less than the pool has run at once, so that the store itself is never kept waiting', async () => {
    const pool = createPool({ uri: at.url, connectionLimit: 3 });
    const small = at.store(pool);
    await small.open();
    const leases = await Promise.all([1, 2, 3, 4, 5].map((n) => won({ key: `event-${n}-of-the-seller` })));
    let running = 0;
    let most = 0;
    let meet = (): void => {};
    const met = new Promise<void>((resolve) => {
      meet = resolve;
    });
    const work = leases.map((lease) =>
      small.transaction(lease, async (tx) => {
        running += 1;
        most = Math.max(most, running);
        if (running === 2) meet();
        await met;
        expect(await small.renew({ ...lease, leaseMs: 60_000 })).toBe('renewed');
        await write(tx);
        running -= 1;
      }),
    );
    await Promise.all(work);
    expect(most).toBe(2);
    expect(await notes()).toHaveLength(5);
    await small.close();
    await pool.end();
  });

  it('close waits for it', async () => {
    const other = at.store(at.pools[1]);
    await other.open();
    const lease = await won();
    const running = other.transaction(lease, (tx) => write(tx));
    await other.close();
    expect(await notes()).toEqual(['by the handler']);
    await running;
  });

  it('a function that never ends, once its run is over: the reason is thrown, its connection closed, the next has room', async () => {
    const pool = createPool({ uri: at.url, connectionLimit: 2 });
    const small = at.store(pool);
    await small.open();
    const [stuck, next] = [await won(), await won({ key: 'event-2-of-the-seller' })];
    const over = new AbortController();
    let kept: MysqlConnection | undefined;
    const running = small.transaction(
      stuck,
      async (tx) => {
        kept = tx;
        await write(tx);
        await new Promise(() => {});
      },
      over.signal,
    );
    await expect.poll(() => kept).toBeDefined();
    const given = new AbortController();
    const waiting = small.transaction(next, (tx) => write(tx, 'given up'), given.signal);
    given.abort(new Error('waited too long'));
    await expect(waiting).rejects.toThrow('waited too long');
    const patient = small.transaction(next, (tx) => write(tx, 'the next one'));
    over.abort(new Error('the run is over'));
    await expect(running).rejects.toThrow('the run is over');
    await patient;
    // What it goes on to write reaches nobody's transaction.
    await expect(kept && write(kept, 'late')).rejects.toThrow();
    expect(await notes()).toEqual(['the next one']);
    await small.close();
    expect(
      (
        await at.sql(
          'SELECT COUNT(*) AS n FROM information_schema.INNODB_TRX t JOIN information_schema.PROCESSLIST p ON p.ID = t.trx_mysql_thread_id WHERE p.DB = ?',
          [at.database],
        )
      )[0]?.['n'],
    ).toBe(0);
    await pool.end();
  });
});

describe('a client that outlives its transaction', () => {
  it.each([
    ['committed', undefined],
    ['rolled back', 'the function failed'],
  ])(
    '%s: what was not awaited and comes later is refused, told, and in nobody’s transaction',
    async (_, fails) => {
      const pool = createPool({ uri: at.url, connectionLimit: 2 });
      const small = at.store(pool);
      await small.open();
      const [first, second] = [await won(), await won({ key: 'event-2-of-the-seller' })];
      const told: Error[] = [];
      let kept: MysqlConnection | undefined;
      const ending = small.transaction({ ...first, onLateUse: (error) => told.push(error) }, async (tx) => {
        kept = tx;
        await write(tx, 'the first');
        if (fails !== undefined) throw new Error(fails);
      });
      await (fails === undefined ? ending : expect(ending).rejects.toThrow(fails));
      // The pool gives the same connection again.
      await small.transaction(second, async (tx) => {
        await expect(kept && write(kept, 'late')).rejects.toMatchObject({ code: 'transaction_over' });
        await write(tx, 'the second');
      });
      expect(await notes()).toEqual(fails === undefined ? ['the first', 'the second'] : ['the second']);
      expect(told).toMatchObject([{ code: 'transaction_over' }]);
      const called = await new Promise((resolve) => {
        const calling = kept as unknown as { query(text: string, done: (error: unknown) => void): void };
        calling.query('SELECT 1', resolve);
      });
      expect(called).toMatchObject({ code: 'transaction_over' });
      expect(() => kept?.release()).toThrow(/after the transaction had ended/);
      await small.close();
      await pool.end();
    },
  );

  it('is not released by the function, which is told so; nothing is written', async () => {
    const lease = await won();
    const running = store.transaction(lease, async (tx) => {
      await write(tx);
      tx.release();
    });
    await expect(running).rejects.toThrow(/released its client/);
    expect(await notes()).toEqual([]);
  });
});

describe('how long a function may leave its transaction idle', () => {
  const idleS = async (lease: CompleteRequest & { leaseMs?: number }, of = store): Promise<unknown> =>
    of.transaction(lease, async (tx) => {
      const [rows] = await tx.query('SELECT @@SESSION.wait_timeout AS s');
      return (rows as [{ s: number }])[0].s;
    });

  it('is the longer of the lease and 30 s, or as the option says; the session keeps nothing of it', async () => {
    const own = createPool({ uri: at.url, connectionLimit: 2 });
    const as = at.store(own);
    await as.open();
    const [[before]] = (await own.query('SELECT @@SESSION.wait_timeout AS s')) as unknown as [
      [{ s: number }],
    ];
    expect(await idleS(await won(), as)).toBe(30);
    expect(await idleS({ ...(await won({ key: 'event-2-of-the-seller' })), leaseMs: 45_000 }, as)).toBe(45);
    const other = at.store(own, { idleInTransactionMs: 1234 });
    const asSetUp = at.store(own, { idleInTransactionMs: 0 });
    await Promise.all([other.open(), asSetUp.open()]);
    expect(await idleS(await won({ key: 'event-3-of-the-seller' }), other)).toBe(2);
    expect(await idleS(await won({ key: 'event-4-of-the-seller' }), asSetUp)).toBe(before.s);
    const [[after]] = (await own.query('SELECT @@SESSION.wait_timeout AS s')) as unknown as [[{ s: number }]];
    expect(after).toEqual(before);
    await Promise.all([as.close(), other.close(), asSetUp.close()]);
    await own.end();
  });

  it.each([-1, 1.5, 2 ** 35])('%s is no such time: ConfigError', (idleInTransactionMs) => {
    expect(() => at.store(at.pools[0], { idleInTransactionMs })).toThrow(ConfigError);
  });

  it('over: the rows that it has written are free again, and nothing is written', async () => {
    await at.sql('CREATE TABLE held (n INT); INSERT INTO held VALUES (0)');
    const short = at.store(at.pools[1], { idleInTransactionMs: 1000 });
    await short.open();
    const lease = await won();
    const running = short.transaction(lease, async (tx) => {
      await tx.query('UPDATE held SET n = n + 1');
      // Waits for the row until the server has ended the transaction that holds it.
      await at.sql('UPDATE held SET n = n + 10');
    });
    await expect(running).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(await at.sql('SELECT n FROM held')).toEqual([{ n: 10 }]);
    expect(await short.complete(lease)).toBe('done');
    await short.close();
  });
});
