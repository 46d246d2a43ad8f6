import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Pool } from 'pg';
import { migrate } from '../../../src/stores/postgres.ts';
import { sqliteStore } from '../../../src/stores/sqlite.ts';
import { testDatabase } from '../../stores/mysql-databases.ts';
import { tempFile } from '../../stores/sqlite-files.ts';
import { ON_DISK, startServer } from '../../support/redis.ts';
import { sharedMariadb } from '../../support/shared-mariadb.ts';
import { sharedPostgres } from '../../support/shared-postgres.ts';
import type { Kind, StoreLocation } from './stores.ts';

/**
 * The completions of a Redis store, from the file to which the server appended every write before it answered: that of
 * a process that did not live to hear of it is there too. (`src/stores/redis/lua/rows.lua` has the form of a row.)
 * @param folder of the server, whose file was never rewritten.
 */
function completionsInAof(folder: string): Completion[] {
  const logs = join(folder, 'appendonlydir');
  const files = readdirSync(logs).filter((name) => name.endsWith('.incr.aof'));
  if (files.length !== 1) throw new Error(`the append-only file was rewritten: ${files.join(', ')}`);
  const seen = new Map<string, string>();
  const completions: Completion[] = [];
  for (const command of commandsOf(readFileSync(join(logs, files[0] ?? '')))) {
    const [verb, name, value] = command;
    const key = /^[^{]*\{[^}]*\}:4:r:(.*)$/s.exec(name?.toString() ?? '')?.[1];
    if (key === undefined || value === undefined || verb?.toString().toUpperCase() !== 'SET') continue;
    const { state, owner } = recordOf(value);
    const now = `${state} ${owner}`;
    if (state === 'applied' && seen.get(key) !== now) completions.push({ key, owner });
    seen.set(key, now);
  }
  return completions;
}

/** RESP: arrays of bulk strings, with timestamps as `#` lines where they are on. */
function* commandsOf(log: Buffer): Generator<Buffer[]> {
  let at = 0;
  const line = (): string => {
    const end = log.indexOf('\r\n', at);
    const text = log.toString('latin1', at, end);
    at = end + 2;
    return text;
  };
  while (at < log.length) {
    const head = line();
    if (!head.startsWith('*')) throw new Error(`no command in the append-only file: ${head}`);
    const parts: Buffer[] = [];
    for (let left = Number(head.slice(1)); left > 0; left -= 1) {
      const length = Number(line().slice(1));
      parts.push(log.subarray(at, at + length));
      at += length + 2;
    }
    yield parts;
  }
}

/** Version and head, and behind a line feed what the driver says of the record, as JSON. */
function recordOf(value: Buffer): { readonly state: string; readonly owner: string } {
  const text = value.toString();
  if (!/^\d{16} \[/.test(text)) throw new Error('not a row of the store');
  const { state, owner } = JSON.parse(text.slice(text.indexOf('\n') + 1)) as {
    state: string;
    owner?: string;
  };
  return { state, owner: owner ?? '' };
}

/** A record became `applied`. */
export interface Completion {
  readonly key: string;
  readonly owner: string;
}

/** A write of a handler in `ctx.transaction`. */
export interface EffectRow {
  readonly key: string;
  readonly copy: string;
}

/** A store's server or file, seen from outside the library. */
export interface Backend {
  readonly place: StoreLocation;
  readonly hasTransactions: boolean;
  /** Whether others can write while a process is stopped inside of `ctx.transaction`. */
  readonly canStopWithin: boolean;
  /** In the order in which they happened, as the database itself has noted them. */
  readonly completions: () => Promise<readonly Completion[]>;
  /** What `ctx.transaction` has committed. No constraint keeps an effect from being there twice. */
  readonly effects: () => Promise<readonly EffectRow[]>;
  /** The server hangs, or goes on: SIGSTOP, SIGCONT. Absent where it is not this test's own. */
  readonly hang?: (isHanging: boolean) => void;
  readonly remove: () => Promise<void>;
}

const SQLITE_LEDGER = `
CREATE TABLE effect (key TEXT NOT NULL, copy TEXT NOT NULL);
CREATE TABLE completion (id INTEGER PRIMARY KEY, key TEXT NOT NULL, owner TEXT NOT NULL);
CREATE TRIGGER completed AFTER UPDATE ON webhook_row
  WHEN new.kind = 'record' AND new.data ->> 'state' = 'applied'
    AND (old.data ->> 'state' <> 'applied' OR old.data ->> 'owner' IS NOT new.data ->> 'owner') BEGIN
  INSERT INTO completion (key, owner) VALUES (new.name, new.data ->> 'owner');
END;
`;

/** A file with the store's schema, and what the database itself notes in it. */
export interface SqliteLedger {
  readonly db: DatabaseSync;
  readonly completions: () => readonly Completion[];
  readonly effects: () => readonly EffectRow[];
}

export async function sqliteLedger(file: string): Promise<SqliteLedger> {
  const store = sqliteStore(file);
  await store.open();
  await store.close();
  const db = new DatabaseSync(file);
  db.exec(SQLITE_LEDGER);
  const rows = (sql: string): unknown => db.prepare(sql).all();
  return {
    db,
    completions: () => rows('SELECT key, owner FROM completion ORDER BY id') as Completion[],
    effects: () => rows('SELECT key, copy FROM effect') as EffectRow[],
  };
}

async function sqlite(): Promise<Backend> {
  const { file, remove } = tempFile();
  const { db, completions, effects } = await sqliteLedger(file);
  return {
    place: { kind: 'SQLite', file },
    hasTransactions: true,
    canStopWithin: false,
    completions: async () => completions(),
    effects: async () => effects(),
    remove: async () => {
      db.close();
      remove();
    },
  };
}

const POSTGRES_LEDGER = `
CREATE TABLE effect (key text NOT NULL, copy text NOT NULL);
CREATE TABLE completion (id bigint GENERATED ALWAYS AS IDENTITY, key text NOT NULL, owner text NOT NULL);
CREATE FUNCTION completed() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  INSERT INTO completion (key, owner) VALUES (new.id, new.data::json ->> 'owner');
  RETURN NULL;
END $$;
CREATE TRIGGER completed AFTER UPDATE ON webhook_row FOR EACH ROW
  WHEN (new.kind = 'r' AND new.data::json ->> 'state' = 'applied' AND (old.data::json ->> 'state' <> 'applied'
    OR old.data::json ->> 'owner' IS DISTINCT FROM new.data::json ->> 'owner'))
  EXECUTE FUNCTION completed();
`;

async function postgres(shared: string): Promise<Backend> {
  const url = await sharedPostgres(shared);
  const schema = `test_${randomBytes(8).toString('hex')}`;
  const pool = new Pool({ connectionString: url, max: 1, options: `-c search_path=${schema}` });
  await migrate(pool, { schema });
  await pool.query(POSTGRES_LEDGER);
  return {
    place: { kind: 'Postgres', url, schema },
    hasTransactions: true,
    canStopWithin: true,
    completions: async () =>
      (await pool.query<Completion>('SELECT key, owner FROM completion ORDER BY id')).rows,
    effects: async () => (await pool.query<EffectRow>('SELECT key, copy FROM effect')).rows,
    remove: async () => {
      await pool.query(`DROP SCHEMA ${schema} CASCADE`);
      await pool.end();
    },
  };
}

/** What a record says of itself. */
const said = (row: 'NEW' | 'OLD', name: string): string =>
  `JSON_VALUE(CONVERT(${row}.data USING utf8mb4), '$.${name}')`;

const MYSQL_LEDGER = [
  'CREATE TABLE effect (event VARBINARY(1536) NOT NULL, copy VARBINARY(64) NOT NULL)',
  `CREATE TABLE completion (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, event VARBINARY(1536) NOT NULL,
    owner VARCHAR(200) NOT NULL)`,
  `CREATE TRIGGER completed AFTER UPDATE ON webhook_row FOR EACH ROW
    IF NEW.kind = 'r' AND ${said('NEW', 'state')} = 'applied' AND (${said('OLD', 'state')} <> 'applied'
      OR NOT ${said('OLD', 'owner')} <=> ${said('NEW', 'owner')}) THEN
      INSERT INTO completion (event, owner) VALUES (NEW.id, ${said('NEW', 'owner')});
    END IF`,
];

async function mysql(shared: string): Promise<Backend> {
  const { url, sql, drop } = await testDatabase(await sharedMariadb(shared), 1);
  for (const text of MYSQL_LEDGER) await sql(text);
  const text = (column: string): string => `CONVERT(${column} USING utf8mb4)`;
  return {
    place: { kind: 'MySQL', url },
    hasTransactions: true,
    canStopWithin: true,
    completions: async () =>
      (await sql(
        `SELECT ${text('event')} AS \`key\`, owner FROM completion ORDER BY id`,
      )) as unknown as Completion[],
    effects: async () =>
      (await sql(
        `SELECT ${text('event')} AS \`key\`, ${text('copy')} AS copy FROM effect`,
      )) as unknown as EffectRow[],
    remove: drop,
  };
}

async function redis(): Promise<Backend> {
  // A server of its own: its append-only file is the ledger, and a rewritten one has forgotten.
  const { port, folder, hang, remove } = await startServer({
    ...ON_DISK,
    'auto-aof-rewrite-percentage': '0',
  });
  return {
    place: { kind: 'Redis', port },
    hasTransactions: false,
    canStopWithin: false,
    completions: async () => completionsInAof(folder),
    effects: async () => [],
    hang,
    remove,
  };
}

/** @param shared `inject('shared')`. */
export const BACKENDS: Readonly<Record<Kind, (shared: string) => Promise<Backend>>> = {
  SQLite: sqlite,
  Postgres: postgres,
  MySQL: mysql,
  Redis: redis,
};
