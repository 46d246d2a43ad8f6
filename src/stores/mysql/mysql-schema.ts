// `migrate` for MySQL, and the check of the schema's version (admission.md §7.7, §9.6).
// Called by users when they deploy, and by the backend.
import { ConfigError, messageOf } from '../../shared/errors.ts';
import { requireOptions } from '../text.ts';
import { checkVersion as checkVersionOf, missingSteps, newest } from '../schema-version.ts';
import { within } from '../sql/sql-transaction.ts';
import {
  type Columns,
  type MysqlPool,
  askOn,
  checkOut,
  requirePool,
  asFault,
  isRetryable,
  isServerError,
  wronglyGiven,
} from './mysql-client.ts';
import { databaseOf } from './mysql-settings.ts';

/**
 * The version of the schema that this package works with: the number of the last file of `migrations/`. The README
 * there says what a version is, and how a newer one is made.
 */
export const SCHEMA_VERSION = 4;

/** Options of `migrate`, which creates or upgrades the tables of the MySQL store: the time limit of each statement. */
export interface MigrateOptions {
  /** The time limit of one statement, ms. It includes the wait for another process that migrates. Default: 60 000. */
  readonly timeoutMs?: number;
}

/**
 * Creates or upgrades the store's tables and procedures, in the pool's database, to the version of this package.
 * Run it when you deploy, as a user that may create both; the store itself only checks the version.
 *
 * If several processes call it together, one does the work and the others find it done. The server commits each
 * statement by itself, so the next call repeats a migration that was interrupted.
 * @returns the versions before and after; 0 means no tables.
 * @throws ConfigError if the tables have a newer version or one from before the first release, or if the server
 *   refuses. Fault `store_unavailable` if the server is unreachable.
 * @example
 * ```ts
 * import { createPool } from 'mysql2/promise';
 * import { migrate } from 'proto-webhooks/mysql';
 *
 * const pool = createPool('mysql://owner@localhost/buyer');
 * console.log(await migrate(pool));
 * await pool.end();
 * ```
 */
export async function migrate(
  pool: MysqlPool,
  options: MigrateOptions = {},
): Promise<{ from: number; to: number }> {
  requirePool('migrate', 'await migrate(pool)', pool);
  requireOptions('migrate', options, { timeoutMs: true });
  // The SQL is loaded only here, because most processes never migrate.
  const { MIGRATIONS } = await import('./mysql-migrations.ts');
  return migrateBy(MIGRATIONS, pool, options);
}

/** The end of a statement in a migration: two semicolons at the end of a line. */
const END = /;;\n/;

/** Runs a statement, and returns its first row. */
type RunSql = (sql: string) => Promise<Columns | undefined>;

/** Runs those of the given SQL steps that the schema lacks (`missingSteps`). */
export async function migrateBy(
  steps: readonly string[],
  pool: MysqlPool,
  { timeoutMs = 60_000 }: MigrateOptions = {},
): Promise<{ from: number; to: number }> {
  const connection = await checkOut(pool, timeoutMs).catch((error: unknown) => {
    throw wronglyGiven('migrate', error) ?? asFault(error);
  });
  const run: RunSql = async (sql) => {
    const [rows] = await within(connection.query(sql), timeoutMs, 'MySQL: a statement of migrate()');
    return Array.isArray(rows) ? (rows as readonly Columns[])[0] : undefined;
  };
  try {
    await databaseOf('migrate', askOn(connection, timeoutMs));
    // Procedures keep the `sql_mode` and the character set of the session that created them, so both are set first.
    await run("SET SESSION sql_mode = 'STRICT_ALL_TABLES'");
    await run('SET NAMES utf8mb4');
    return { from: await runMissing(steps, run, timeoutMs), to: newest(steps) };
  } catch (error) {
    throw refusal(error);
  } finally {
    // Closing the connection ends the session, which releases its lock and drops its settings.
    connection.destroy();
  }
}

/**
 * Runs the migration steps that the database lacks, in one process at a time.
 *
 * @returns the version before.
 */
async function runMissing(steps: readonly string[], run: RunSql, timeoutMs: number): Promise<number> {
  const waitS = Math.ceil((timeoutMs * 0.75) / 1000);
  const lock = await run(`SELECT GET_LOCK(CONCAT('proto-webhooks ', SHA1(DATABASE())), ${waitS}) AS got`);
  if (Number(lock?.['got']) !== 1) throw new Error('another process is migrating');
  await run(
    'CREATE TABLE IF NOT EXISTS webhook_schema (one TINYINT NOT NULL PRIMARY KEY, version INT NOT NULL) ENGINE=InnoDB',
  );
  const from = Number((await run('SELECT version FROM webhook_schema'))?.['version'] ?? 0);
  const missing = missingSteps(STORE, steps, from);
  let version = newest(steps) - missing.length;
  for (const step of missing) {
    for (const sql of step.split(END)) if (sql.trim() !== '') await run(sql);
    version += 1;
    await run(`REPLACE INTO webhook_schema (one, version) VALUES (1, ${version})`);
  }
  return from;
}

const STORE = { store: 'mysqlStore', place: 'the database has', own: 'a database' };

/**
 * Checks the version of the tables.
 *
 * @param version 0 if there are no tables.
 * @throws ConfigError with advice, unless it is the version of this package.
 */
export function checkVersion(version: number, database: string): void {
  checkVersionOf(STORE, SCHEMA_VERSION, version, `the database "${database}"`);
}

function refusal(error: unknown): Error {
  if (error instanceof ConfigError || !isServerError(error) || isRetryable(error)) return asFault(error);
  const reason = messageOf(error);
  return new ConfigError(
    `migrate: ${reason}. Run it as a user that may create tables and procedures in the database (CREATE, CREATE ROUTINE, ALTER ROUTINE), the same one as before, on MariaDB 10.6 or MySQL 8.0.19 or newer.`,
    { cause: error },
  );
}
