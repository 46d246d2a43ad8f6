// `migrate` for Postgres, and the check of the schema's version (admission.md §7.7, §9.4).
// Called by users when they deploy, and by the backend.
import { ConfigError, messageOf } from '../../shared/errors.ts';
import { requireOptions } from '../text.ts';
import { checkVersion as checkVersionOf, missingSteps, newest } from '../schema-version.ts';
import {
  type PgClient,
  type PgPool,
  checkOut,
  giveBack,
  requirePool,
  survive,
  asFault,
  isServerError,
  sqlState,
  wronglyGiven,
} from './postgres-client.ts';
import { within } from '../sql/sql-transaction.ts';

/**
 * The version of the schema that this package works with: the number of the last file of `migrations/`. The README
 * there says what a version is, and how a newer one is made.
 */
export const SCHEMA_VERSION = 4;

/** The schema of the tables if the options name none. */
export const DEFAULT_SCHEMA = 'proto_webhooks';

/** Quotes an SQL identifier. @throws ConfigError for a name that PostgreSQL would shorten or refuse. */
export function quoted(schema: string): string {
  const bytes = new TextEncoder().encode(schema).length;
  if (typeof schema !== 'string' || bytes === 0 || bytes > 63 || schema.includes('\0')) {
    throw new ConfigError('postgresStore: schema must be a name of 1 to 63 bytes.');
  }
  return `"${schema.replaceAll('"', '""')}"`;
}

/**
 * Options of `migrate`, which creates or upgrades the tables of the PostgreSQL store: the schema, and the time limit
 * of each statement.
 */
export interface MigrateOptions {
  /**
   * The schema of the tables. It is created if it does not exist and the role has the right. Default:
   * `proto_webhooks`.
   */
  readonly schema?: string;
  /** The time limit of one statement, ms. It includes the wait for another process that migrates. Default: 60 000. */
  readonly timeoutMs?: number;
}

/**
 * Creates or upgrades the store's tables to the version of this package. Run it when you deploy, as a role that may
 * create tables; the store itself only checks the version.
 *
 * It is one transaction under an advisory lock. If several processes call it together, one does the work and
 * the others find it done.
 * @returns the versions before and after; 0 means no tables.
 * @throws ConfigError if the schema has a newer version or one from before the first release, or if the server
 *   refuses. Fault `store_unavailable` if the server is unreachable.
 * @example
 * ```ts
 * import pg from 'pg';
 * import { migrate } from 'proto-webhooks/postgres';
 *
 * const pool = new pg.Pool({ connectionString: 'postgres://owner@localhost/buyer' });
 * console.log(await migrate(pool, { schema: 'webhooks' }));
 * await pool.end();
 * ```
 */
export async function migrate(
  pool: PgPool,
  options: MigrateOptions = {},
): Promise<{ from: number; to: number }> {
  requirePool('migrate', 'await migrate(pool)', pool);
  requireOptions('migrate', options, { schema: true, timeoutMs: true });
  // The SQL is loaded only here, because most processes never migrate.
  const { MIGRATIONS } = await import('./postgres-migrations.ts');
  return migrateBy(MIGRATIONS, pool, options);
}

/** Runs those of the given SQL steps that the schema lacks (`missingSteps`). */
export async function migrateBy(
  steps: readonly string[],
  pool: PgPool,
  { schema = DEFAULT_SCHEMA, timeoutMs = 60_000 }: MigrateOptions = {},
): Promise<{ from: number; to: number }> {
  const name = quoted(schema);
  const end = survive(pool);
  try {
    return await migrateOn(pool, { steps, schema, name, timeoutMs });
  } finally {
    end();
  }
}

interface Migration extends Required<MigrateOptions> {
  readonly steps: readonly string[];
  /** The name of the schema, quoted. */
  readonly name: string;
}

async function migrateOn(pool: PgPool, migration: Migration): Promise<{ from: number; to: number }> {
  const { timeoutMs, steps } = migration;
  const client = await checkOut(pool, timeoutMs).catch((error: unknown) => {
    throw wronglyGiven('migrate', error) ?? asFault(error);
  });
  const run = (sql: string, values?: unknown[]): ReturnType<PgClient['query']> =>
    within(client.query(sql, values), timeoutMs, 'Postgres: a statement of migrate()');
  try {
    const from = await migrateIn(run, migration);
    giveBack(client);
    return { from, to: newest(steps) };
  } catch (error) {
    await run('ROLLBACK').catch(() => undefined);
    giveBack(client, error instanceof ConfigError ? undefined : error);
    throw refusal(error);
  }
}

type RunSql = (sql: string, values?: unknown[]) => ReturnType<PgClient['query']>;

async function migrateIn(run: RunSql, { steps, schema, name }: Migration): Promise<number> {
  await run('BEGIN ISOLATION LEVEL READ COMMITTED');
  await run("SELECT pg_advisory_xact_lock(hashtext('proto-webhooks migrate'), hashtext($1))", [schema]);
  // The schema is looked for first, because CREATE SCHEMA IF NOT EXISTS needs the right to create it even if it exists.
  const known = await run('SELECT FROM pg_namespace WHERE nspname = $1', [schema]);
  if (known.rows.length === 0) await run(`CREATE SCHEMA ${name}`);
  // The functions of the schema keep this search path (SET search_path FROM CURRENT). The schema pg_temp is last, so
  // that no temporary table hides a table of the store.
  await run(`SET LOCAL search_path TO ${name}, pg_temp`);
  await run('CREATE TABLE IF NOT EXISTS webhook_schema (version integer NOT NULL)');
  const [found] = (await run('SELECT coalesce(max(version), 0) AS version FROM webhook_schema')).rows;
  const from = Number((found as { readonly version: unknown }).version);
  const missing = missingSteps(STORE, steps, from);
  for (const step of missing) await run(step);
  if (missing.length > 0) {
    await run('DELETE FROM webhook_schema');
    await run(`INSERT INTO webhook_schema (version) VALUES (${newest(steps)})`);
  }
  await run('COMMIT');
  return from;
}

const STORE = { store: 'postgresStore', place: 'the database has', own: 'a schema' };

/**
 * Checks the version of the schema.
 *
 * @param version 0 if there are no tables.
 * @throws ConfigError with advice, unless it is the version of this package.
 */
export function checkVersion(version: number, schema: string): void {
  checkVersionOf(STORE, SCHEMA_VERSION, version, `the schema "${schema}"`);
}

/**
 * True for an error that other transactions caused: they kept tables locked, or there was a deadlock. A later try may
 * succeed.
 */
function isOfOthers(error: unknown): boolean {
  const state = sqlState(error);
  return state === '55P03' || state === '40P01';
}

function refusal(error: unknown): Error {
  if (error instanceof ConfigError || !isServerError(error) || isOfOthers(error)) return asFault(error);
  const reason = messageOf(error);
  return new ConfigError(
    `migrate: ${reason}. Run it as a role that may write and may create tables in the schema, the same one as before, on PostgreSQL 12 or newer.`,
    { cause: error },
  );
}
