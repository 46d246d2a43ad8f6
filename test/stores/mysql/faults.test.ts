import { createPool, type RowDataPacket } from 'mysql2/promise';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createReceiver } from '../../../src/index.ts';
import type { MysqlStore } from '../../../src/stores/mysql.ts';
import { freePort } from '../../support/free-port.ts';
import type { MariadbServer } from '../../support/mariadb.ts';
import { startServer } from '../../support/mariadb.ts';
import type { TestDatabase } from '../mysql-databases.ts';
import { expectCountsRight, testDatabase } from '../mysql-databases.ts';
import { acceptRequest, leaseOf, RETENTION_MS } from '../requests.ts';
import { acceptDuringCrashes } from '../sql/crash-load.ts';

const UNAVAILABLE = { code: 'store_unavailable' };

let server: MariadbServer;
let at: TestDatabase;
beforeAll(async () => {
  server = await startServer();
  at = await testDatabase(server.url);
});
afterAll(async () => {
  await at.drop();
  await server.remove();
});

/** An open store, while `work` runs. */
async function opened<T>(work: (store: MysqlStore) => Promise<T>, more = {}): Promise<T> {
  const store = at.store(at.pools[0], more);
  await store.open();
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

const newKey = (() => {
  let last = 0;
  return () => `event-${(last += 1)}-of-the-seller`;
})();

describe('a server that crashes under load', () => {
  it('keeps every answered event, fails other calls with store_unavailable, and needs no restart of the store', async () => {
    await at.clear();
    const store = at.store();
    await store.open();
    const crash = async (): Promise<void> => {
      await server.kill();
      await server.start();
    };
    const answered = await acceptDuringCrashes(store, crash, { accepts: 30, timeoutMs: 120_000 });
    await store.close();
    const again = await testOwner();
    const [rows] = await again.query(
      "SELECT CONVERT(id USING utf8mb4) AS id FROM webhook_row WHERE kind = 'r'",
    );
    await again.end();
    const kept = new Set((rows as { id: string }[]).map(({ id }) => id));
    expect(answered.filter((key) => !kept.has(key))).toEqual([]);
  });
});

const testOwner = async (): Promise<ReturnType<typeof createPool>> => createPool(at.url);

describe('a server that does not answer', () => {
  it('fails calls after timeoutMs and serves them once it answers again', () =>
    opened(
      async (store) => {
        server.hang(true);
        await expect(store.accept(acceptRequest({ key: newKey() }))).rejects.toMatchObject(UNAVAILABLE);
        server.hang(false);
        await expect
          .poll(() => store.accept(acceptRequest({ key: newKey() })).catch(String))
          .toMatchObject({ kind: 'won' });
      },
      { timeoutMs: 2000 },
    ));
});

describe('connections', () => {
  it('cause at most one fault when the server kills them, then are replaced', () =>
    opened(async (store) => {
      for (let n = 0; n < 5; n += 1) {
        const others = await at.sql(
          "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = ? AND COMMAND = 'Sleep' AND ID <> CONNECTION_ID()",
          [at.database],
        );
        for (const { ID } of others) await at.sql(`KILL ${Number(ID)}`).catch(() => undefined);
        await expect
          .poll(() => store.accept(acceptRequest({ key: newKey() })).catch(String))
          .toMatchObject({ kind: 'won' });
      }
    }));

  it('fail open() with store_unavailable without a server, and a later open() may succeed', async () => {
    const pool = createPool({ host: '127.0.0.1', port: await freePort(), database: 'x' });
    const store = at.store(pool);
    await expect(store.open()).rejects.toMatchObject(UNAVAILABLE);
    await expect(store.accept(acceptRequest())).rejects.toMatchObject(UNAVAILABLE);
    await pool.end();
  });
});

describe('a row that another transaction has locked', () => {
  it('fails the accept after a wait, writes nothing, and is accepted once it is free', () =>
    opened(async (store) => {
      const request = acceptRequest({ key: newKey() });
      expect((await store.accept(request)).kind).toBe('won');
      const holder = await at.pools[1].getConnection();
      await holder.query('BEGIN');
      await holder.query("SELECT * FROM webhook_row WHERE kind = 'r' FOR UPDATE");
      const lease = { ...leaseOf(request), retentionMs: RETENTION_MS };
      await expect(store.complete(lease)).rejects.toMatchObject(UNAVAILABLE);
      await holder.query('ROLLBACK');
      holder.release();
      expect(await store.complete(lease)).toBe('done');
      await expectCountsRight(at);
    }));
});

describe('a transaction that the server rolled back', () => {
  it('is repeated after a deadlock over an AUTO_INCREMENT value, which has its own error', async () => {
    await at.clear();
    const [holder, other] = [await at.pools[1].getConnection(), await at.pools[1].getConnection()];
    // Asked more often than every 100 ms, the server answers what it answered before.
    const waiting = (): ReturnType<typeof expect.poll> =>
      expect.poll(
        () => at.sql("SELECT trx_id FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT'"),
        { interval: 200 },
      );
    try {
      await opened(async (store) => {
        await holder.query('START TRANSACTION');
        await holder.query("INSERT INTO webhook_scope (sender, keyid) VALUES ('m', '')");
        // Has the table's numbers until its end, and waits for the holder's row. Then it needs a gap that the store has.
        const inserting = other.query(
          `INSERT INTO webhook_scope (sender, keyid) SELECT CONCAT('a', seq), '' FROM seq_1_to_100
            UNION ALL SELECT 'm', '' UNION ALL SELECT 'https://other.example/', ''`,
        );
        await waiting().toHaveLength(1);
        const accepting = store.accept(
          acceptRequest({ sender: 'https://never-seen.example/mcp', key: newKey() }),
        );
        await waiting().toHaveLength(2);
        await holder.query('ROLLBACK');
        await inserting;
        expect(await accepting).toMatchObject({ kind: 'won' });
      });
    } finally {
      holder.destroy();
      other.destroy();
    }
  });
});

describe('an event that another worker is leasing', () => {
  it('is skipped without waiting for its locks', () =>
    opened(async (store) => {
      const [first, second] = [newKey(), newKey()];
      for (const key of [first, second]) {
        expect((await store.accept({ ...acceptRequest({ key }), mode: 'inbox' })).kind).toBe('queued');
      }
      const holder = await at.pools[1].getConnection();
      await holder.query('SET TRANSACTION ISOLATION LEVEL READ COMMITTED');
      await holder.query('BEGIN');
      const [locked] = await holder.query<RowDataPacket[]>(
        `SELECT CAST(id AS CHAR) AS id FROM webhook_row FORCE INDEX (webhook_row_due)
          WHERE due_scope > 0 AND due_at > 0 ORDER BY due_scope, due_at, seq LIMIT 1 FOR UPDATE`,
      );
      expect(locked).toMatchObject([{ id: first }]);
      const { retry, retentionMs, sender } = acceptRequest();
      const most = { leaseMs: 60_000, retry, retentionMs, senders: [], max: 1 };
      const { events } = await store.inbox.lease({ ...most, owner: 'a' });
      expect(events.map(({ key }) => key)).toEqual([second]);
      await holder.query('ROLLBACK');
      holder.release();
      expect((await store.inbox.lease({ ...most, owner: 'b' })).events).toMatchObject([{ key: first }]);
      expect(await store.complete({ sender, key: first, owner: 'b', retentionMs })).toBe('done');
      expect(await store.complete({ sender, key: second, owner: 'a', retentionMs })).toBe('done');
    }));
});

describe('settings', () => {
  const refused = (store: MysqlStore): Promise<unknown> => store.open().catch((error: unknown) => error);

  it('refuse a read-only server at open(), and report one that becomes read-only', () =>
    opened(async (store) => {
      await at.sql(
        "CREATE USER reader@'127.0.0.1' IDENTIFIED BY 'x'; GRANT ALL ON *.* TO reader@'127.0.0.1'; REVOKE SUPER, READ_ONLY ADMIN ON *.* FROM reader@'127.0.0.1'",
      );
      await at.sql('SET GLOBAL read_only = 1');
      try {
        expect(await refused(at.store())).toMatchObject({
          name: 'ConfigError',
          message: expect.stringMatching(/read-only/),
        });
        const pool = createPool(at.url.replace('root@', 'reader:x@'));
        const late = at.store(pool);
        await at.sql('SET GLOBAL read_only = 0');
        await late.open();
        await at.sql('SET GLOBAL read_only = 1');
        await expect(late.accept(acceptRequest({ key: newKey() }))).rejects.toThrow(
          /connect the pool to the primary/,
        );
        await late.close();
        await pool.end();
      } finally {
        await at.sql('SET GLOBAL read_only = 0');
      }
      expect((await store.accept(acceptRequest({ key: newKey() }))).kind).toBe('won');
    }));

  it('give durability disk by default, and process without flushed commits, with the setting to change', () =>
    opened(async (store) => {
      expect(await store.durability()).toBe('disk');
      await at.sql('SET GLOBAL innodb_flush_log_at_trx_commit = 2');
      try {
        expect(await store.durability()).toBe('process');
        const receiver = createReceiver({
          publicUrl: 'https://buyer.example/webhooks',
          senders: [{ agentUrl: 'https://seller.example/mcp' }],
          store: at.store(),
          handlers: { other: () => undefined },
        });
        await expect(receiver.ready()).rejects.toThrow(/'process'.*innodb_flush_log_at_trx_commit = 1/);
        await receiver.stop();
      } finally {
        await at.sql('SET GLOBAL innodb_flush_log_at_trx_commit = 1');
      }
    }));

  it('fail the very next commit with not_durable when lowered at run time, until they are restored', () =>
    opened(async (store) => {
      expect(await store.durability()).toBe('disk');
      store.keepDurability?.('disk', () => expect.fail());
      await at.sql('SET GLOBAL innodb_flush_log_at_trx_commit = 0');
      await expect(store.accept(acceptRequest({ key: newKey() }))).rejects.toMatchObject({
        code: 'not_durable',
      });
      await at.sql('SET GLOBAL innodb_flush_log_at_trx_commit = 1');
      expect((await store.accept(acceptRequest({ key: newKey() }))).kind).toBe('won');
    }));

  it('give durability process for a table that is not InnoDB, with the statement that fixes it', () =>
    opened(async (store) => {
      await at.sql('ALTER TABLE webhook_tally ENGINE = Aria');
      expect(await store.durability()).toBe('process');
      expect(store.durabilityAdvice).toContain('ALTER TABLE webhook_tally ENGINE = InnoDB;');
      await at.sql(String(store.durabilityAdvice?.replace('MySQL: ', '')));
      expect(await store.durability()).toBe('disk');
    }));

  it('refuse a pool without autocommit', async () => {
    const pool = createPool({ uri: at.url, connectionLimit: 1 });
    await pool.query('SET autocommit = 0');
    expect(await refused(at.store(pool))).toMatchObject({
      message: expect.stringMatching(/autocommit is off/),
    });
    await pool.end();
  });
});

describe('a server with a binary log', () => {
  it('needs sync_binlog for durability disk and is refused with statement-based logging', async () => {
    const logging = await startServer({ 'log-bin': 'log', 'sync-binlog': '0', 'server-id': '1' });
    const there = await testDatabase(logging.url);
    const store = there.store();
    await store.open();
    expect(await store.durability()).toBe('process');
    expect(store.durabilityAdvice).toMatch(/sync_binlog = 1/);
    await there.sql('SET GLOBAL sync_binlog = 1');
    expect(await store.durability()).toBe('disk');
    expect((await store.accept(acceptRequest())).kind).toBe('won');
    await store.close();
    await there.sql("SET GLOBAL binlog_format = 'STATEMENT'");
    await expect(there.store().open()).rejects.toThrow(/binlog_format is STATEMENT.*ROW/);
    await there.drop();
    await logging.remove();
  });
});
