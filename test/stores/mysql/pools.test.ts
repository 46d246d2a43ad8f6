import { randomUUID } from 'node:crypto';
import type { Pool, PoolOptions } from 'mysql2/promise';
import { createPool } from 'mysql2/promise';
import { describe, expect, it } from 'vitest';
import { migrate } from '../../../src/stores/mysql.ts';
import { expectCountsRight, newName, ownDatabase } from '../mysql-databases.ts';
import { openingRefusal } from '../sql/opening-refusal.ts';
import { acceptRequest, leaseOf, RETENTION_MS } from '../requests.ts';

const at = ownDatabase();

/** Not in ASCII, of four bytes too: a charset that came in would change it. */
const [BODY, KEY] = ['grüße 😀', 'event-ü-😀'];

/**
 * Each operation that reads columns, or sends values.
 * @returns keys of the two events that it has completed.
 */
async function worksOn(pool: Pool, hasTransactions = true): Promise<readonly string[]> {
  const store = at.store(pool);
  await store.open();
  expect(await store.durability()).toBe('disk');
  const [key, queuedKey] = [`${KEY}-${randomUUID()}`, `${KEY}-${randomUUID()}`];
  const request = acceptRequest({ key, body: BODY });
  expect((await store.accept(request)).kind).toBe('won');
  expect((await store.accept(acceptRequest({ key }))).kind).toBe('in-flight');
  const lease = { ...leaseOf(request), retentionMs: RETENTION_MS };
  if (hasTransactions)
    await store.transaction(lease, (tx) => tx.query("INSERT INTO note VALUES ('by the handler')"));
  else expect(await store.complete(lease)).toBe('done');
  expect(await store.peek(request.sender, key)).toBe('applied');
  const queued = { ...acceptRequest({ key: queuedKey, body: BODY }), mode: 'inbox' as const };
  expect((await store.accept(queued)).kind).toBe('queued');
  const { records } = await store.inbox.list({ state: 'queued', limit: 10 });
  expect(records.map((record) => record.key)).toEqual([queuedKey]);
  expect(await store.inbox.overdueMs?.()).toBeGreaterThanOrEqual(0);
  const { retry, retentionMs, sender } = queued;
  const owner = randomUUID();
  const { events } = await store.inbox.lease({
    owner,
    max: 4,
    leaseMs: 60_000,
    retry,
    retentionMs,
    senders: [],
  });
  expect(events.map(({ body }) => Buffer.from(body).toString())).toEqual([BODY]);
  expect(await store.complete({ sender, key: queuedKey, owner, retentionMs })).toBe('done');
  await store.sweep();
  expect(await store.identity?.()).toMatchObject({ id: expect.stringMatching(/^[0-9a-f-]{36}$/) });
  await store.close();
  return [key, queuedKey];
}

/** Reads by an ordinary connection what is in the tables: completed events, and notes of handlers. */
async function written(): Promise<{ readonly events: unknown; readonly notes: unknown }> {
  return {
    events: await at.sql(
      `SELECT CONVERT(id USING utf8mb4) AS \`key\`, JSON_VALUE(CONVERT(data USING utf8mb4), '$.state') AS state
       FROM webhook_row WHERE kind = 'r' ORDER BY seq`,
    ),
    notes: await at.sql('SELECT line FROM note'),
  };
}

const applied = (keys: readonly string[]): unknown => keys.map((key) => ({ key, state: 'applied' }));

const POOLS: Readonly<Record<string, PoolOptions>> = {
  'dates as text': { dateStrings: true },
  'numbers as text': { supportBigNumbers: true, bigNumberStrings: true },
  'decimals as numbers': { decimalNumbers: true },
  'named placeholders': { namedPlaceholders: true },
  'rows as arrays': { rowsAsArray: true },
  'rows by table': { nestTables: true },
  'rows with the table in the name': { nestTables: '_' },
  'no casts': { typeCast: false },
  'casts of its own': { typeCast: () => 'x' },
  'several statements': { multipleStatements: true },
  'another charset': { charset: 'LATIN1_SWEDISH_CI' },
  'another collation': { charset: 'UTF8MB4_TURKISH_CI' },
  'rows that were changed, not found': { flags: ['-FOUND_ROWS'] },
  'one prepared statement': { maxPreparedStatements: 1 },
  'another time zone': { timezone: '+05:30' },
};

describe('pools with other settings', () => {
  it.each(Object.entries(POOLS))('%s', async (_, options) => {
    await at.clear();
    const pool = createPool({ uri: at.url, connectionLimit: 3, ...options });
    const keys = await worksOn(pool);
    expect(await written()).toEqual({ events: applied(keys), notes: [{ line: 'by the handler' }] });
    await expectCountsRight(at);
    await pool.end();
  });

  it('serves everything except ctx.transaction on a pool of one connection', async () => {
    await at.clear();
    const pool = createPool({ uri: at.url, connectionLimit: 1 });
    const keys = await worksOn(pool, false);
    const store = at.store(pool);
    await store.open();
    const lease = { ...leaseOf(acceptRequest()), retentionMs: RETENTION_MS };
    await expect(store.transaction(lease, () => expect.fail('it runs nothing'))).rejects.toThrow(
      'Set its connectionLimit to 2 or more',
    );
    await store.close();
    expect(await written()).toEqual({ events: applied(keys), notes: [] });
    await pool.end();
  });

  it.each([
    'ANSI',
    'ORACLE',
    'TRADITIONAL',
    '',
    'NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE',
    'EMPTY_STRING_IS_NULL',
    'HIGH_NOT_PRECEDENCE,NO_UNSIGNED_SUBTRACTION,NO_AUTO_VALUE_ON_ZERO',
    'PAD_CHAR_TO_FULL_LENGTH',
  ])('sql_mode = %j', async (mode) => {
    await at.clear();
    const pool = createPool({ uri: at.url, connectionLimit: 3 });
    pool.pool.on('connection', (connection) => connection.query(`SET SESSION sql_mode = '${mode}'`));
    const keys = await worksOn(pool);
    expect(await written()).toEqual({ events: applied(keys), notes: [{ line: 'by the handler' }] });
    await expectCountsRight(at);
    await pool.end();
  });
});

describe('a database with a case-insensitive collation', () => {
  it.each(['utf8mb4 COLLATE utf8mb4_turkish_ci', 'latin1', 'ucs2'])(
    '%s: keys that differ in case, accents or trailing spaces stay distinct',
    async (charset) => {
      const name = newName();
      await at.sql(`CREATE DATABASE ${name} CHARACTER SET ${charset}`);
      const pool = createPool({ uri: at.url.replace(at.database, name), connectionLimit: 2 });
      await migrate(pool);
      const store = at.store(pool);
      await store.open();
      const keys = [
        'event-of-the-seller',
        'Event-of-the-seller',
        'évent-of-the-seller',
        'event-of-the-seller ',
      ];
      for (const key of keys) expect((await store.accept(acceptRequest({ key }))).kind).toBe('won');
      for (const key of keys) expect((await store.accept(acceptRequest({ key }))).kind).toBe('in-flight');
      await store.close();
      await pool.end();
      await at.sql(`DROP DATABASE ${name}`);
    },
  );
});

describe('a server that cannot write', () => {
  /** No sweep follows an accept, as one in 64 does otherwise: it has a connection of its own. */
  const UNSWEPT = { random: () => 0.5 };
  /** What each connection that the pool has is told; those are then idle. */
  const tell = async (pool: Pool, sql: string): Promise<void> => {
    const all = await Promise.all([1, 2, 3].map(() => pool.getConnection()));
    for (const connection of all) await connection.query(sql);
    for (const connection of all) connection.release();
  };

  it('loses its connections, and the next one is asked at once: they may lead to the old primary', async () => {
    const pool = createPool({ uri: at.url, connectionLimit: 3 });
    const store = at.store(pool, UNSWEPT);
    await store.open();
    // As each connection to a server that was demoted answers: 1792.
    await tell(pool, 'SET SESSION TRANSACTION READ ONLY');
    let made = 0;
    pool.on('connection', () => (made += 1));
    expect((await store.accept(acceptRequest({ key: `${KEY}-${randomUUID()}` }))).kind).toBe('won');
    expect(made).toBe(1);
    await store.close();
    await pool.end();
  });

  it('is 503 by one new connection a call while it lasts', async () => {
    const pool = createPool({ uri: at.url, connectionLimit: 3 });
    const store = at.store(pool, UNSWEPT);
    await store.open();
    let made = 0;
    pool.pool.on('connection', (connection) => {
      made += 1;
      connection.query('SET SESSION TRANSACTION READ ONLY');
    });
    await tell(pool, 'SET SESSION TRANSACTION READ ONLY');
    made = 0;
    for (let call = 0; call < 4; call += 1) {
      await expect(store.accept(acceptRequest())).rejects.toMatchObject({
        code: 'store_unavailable',
        message: expect.stringMatching(/\(1792\).*The server is read-only: connect the pool to the primary/),
      });
    }
    expect(made).toBe(4);
    await store.close();
    await pool.end();
  });

  it('ends ctx.transaction with a fault of the store', async () => {
    const pool = createPool({ uri: at.url, connectionLimit: 3 });
    const store = at.store(pool);
    await store.open();
    const request = acceptRequest({ key: `${KEY}-${randomUUID()}` });
    expect((await store.accept(request)).kind).toBe('won');
    const lease = { ...leaseOf(request), retentionMs: RETENTION_MS };
    await tell(pool, 'SET SESSION TRANSACTION READ ONLY');
    const writing = store.transaction(lease, (tx) => tx.query("INSERT INTO note VALUES ('by the handler')"));
    await expect(writing).rejects.toMatchObject({ code: 'store_unavailable' });
    await expect(store.complete(lease)).resolves.toBe('done');
    await store.close();
    await pool.end();
  });
});

it.each([
  [
    'database',
    (url: URL) => (url.pathname = '/nobody_made_this_one'),
    /\(1049\)\. Give the pool the name of the database/,
  ],
  ['user', (url: URL) => (url.username = 'nobody'), /\(1045\)\. Give the pool a user/],
])('a %s that is not there is refused, by migrate too', async (_, change, message) => {
  const url = new URL(at.url);
  change(url);
  const pool = createPool({ uri: url.href });
  expect(await openingRefusal(at.store(pool))).toMatch(message);
  await expect(migrate(pool)).rejects.toThrow(message);
  await pool.end();
});
