import { ConfigError } from '../../errors.ts';
import { requireOptions } from '../given.ts';
import type { PgClient, PgPool } from './client.ts';
import { checkOut, giveBack, requirePool, survive, within } from './client.ts';
import { asFault, sqlState } from './faults.ts';
import { ACCEPT } from './sql/accept.ts';
import { CAPS } from './sql/caps.ts';
import { CLAIM } from './sql/claim.ts';
import { COUNTS } from './sql/counts.ts';
import { DECIDE } from './sql/decide.ts';
import { ENDS } from './sql/ends.ts';
import { FINISH } from './sql/finish.ts';
import { FRESH } from './sql/fresh.ts';
import { FRESH_LONE } from './sql/fresh-lone.ts';
import { INBOX } from './sql/inbox.ts';
import { LOCK } from './sql/lock.ts';
import { LONE } from './sql/lone.ts';
import { RUN } from './sql/run.ts';
import { SETTLE } from './sql/settle.ts';
import { STEP } from './sql/step.ts';
import { TABLES } from './sql/tables.ts';

const VERSION_1 = [
  TABLES,
  STEP,
  CAPS,
  CLAIM,
  ACCEPT,
  DECIDE,
  SETTLE,
  FRESH,
  FRESH_LONE,
  ENDS,
  LOCK,
  LONE,
  COUNTS,
  RUN,
  FINISH,
  INBOX,
].join('\n');

/** One step a version: step n takes a schema of version n to n + 1. */
const MIGRATIONS: readonly string[] = [VERSION_1];

/** The schema that this package works with. */
export const SCHEMA_VERSION: number = MIGRATIONS.length;

/** Where the tables are unless another schema is named. */
export const DEFAULT_SCHEMA = 'proto_webhooks';

/** An SQL identifier. @throws ConfigError for a name that PostgreSQL would cut or refuse. */
export function quoted(schema: string): string {
  const bytes = new TextEncoder().encode(schema).length;
  if (typeof schema !== 'string' || bytes === 0 || bytes > 63 || schema.includes('\0')) {
    throw new ConfigError('postgresStore: schema must be a name of 1 to 63 bytes.');
  }
  return `"${schema.replaceAll('"', '""')}"`;
}

/** `migrate`'s options. */
export interface MigrateOptions {
  /** Where the tables are. `proto_webhooks`; made where it does not exist and the role may. */
  readonly schema?: string;
  /** How long one statement may take, waiting for another process that migrates included. Ms; 60 000. */
  readonly timeoutMs?: number;
}

/**
 * Brings the store's schema to the version of this package. Explicit: run it when you deploy, as a role that may create
 * tables; the store itself only checks. In one transaction under an advisory lock, so that of several processes that
 * start at once one does it and the others find it done.
 * @returns versions before and after; 0 is none.
 * @throws ConfigError where a newer version of the package made the schema, or the server refuses; Fault
 *   `store_unavailable` where it cannot be reached.
 */
export async function migrate(
  pool: PgPool,
  options: MigrateOptions = {},
): Promise<{ from: number; to: number }> {
  requirePool('migrate', 'await migrate(pool)', pool);
  requireOptions('migrate', options, { schema: true, timeoutMs: true });
  const { schema = DEFAULT_SCHEMA, timeoutMs = 60_000 } = options;
  const name = quoted(schema);
  const end = survive(pool);
  try {
    return await migrateOn(pool, { schema, name, timeoutMs });
  } finally {
    end();
  }
}

async function migrateOn(
  pool: PgPool,
  { schema, name, timeoutMs }: Required<MigrateOptions> & { readonly name: string },
): Promise<{ from: number; to: number }> {
  const client = await checkOut(pool, timeoutMs).catch((error: unknown) => {
    throw asFault(error);
  });
  const run = (sql: string, values?: unknown[]): ReturnType<PgClient['query']> =>
    within(client.query(sql, values), timeoutMs, 'a statement of migrate()');
  try {
    const from = await migrateIn(run, schema, name);
    giveBack(client);
    return { from, to: SCHEMA_VERSION };
  } catch (error) {
    await run('ROLLBACK').catch(() => undefined);
    giveBack(client, error instanceof ConfigError ? undefined : error);
    throw refusal(error);
  }
}

type Run = (sql: string, values?: unknown[]) => ReturnType<PgClient['query']>;

async function migrateIn(run: Run, schema: string, name: string): Promise<number> {
  await run('BEGIN ISOLATION LEVEL READ COMMITTED');
  await run("SELECT pg_advisory_xact_lock(hashtext('proto-webhooks migrate'), hashtext($1))", [schema]);
  // Asked first: CREATE SCHEMA IF NOT EXISTS needs the right to create one also where it exists.
  const known = await run('SELECT FROM pg_namespace WHERE nspname = $1', [schema]);
  if (known.rows.length === 0) await run(`CREATE SCHEMA ${name}`);
  // Functions keep it (SET search_path FROM CURRENT); pg_temp last, so that nobody's temporary table hides one of ours.
  await run(`SET LOCAL search_path TO ${name}, pg_temp`);
  await run('CREATE TABLE IF NOT EXISTS webhook_schema (version integer NOT NULL)');
  const found = (await run('SELECT version FROM webhook_schema')).rows[0] as
    { readonly version: number } | undefined;
  const from = found?.version ?? 0;
  if (from > SCHEMA_VERSION) throw newer(from);
  for (const step of MIGRATIONS.slice(from)) await run(step);
  if (from < SCHEMA_VERSION) {
    await run('DELETE FROM webhook_schema');
    await run(`INSERT INTO webhook_schema (version) VALUES (${SCHEMA_VERSION})`);
  }
  await run('COMMIT');
  return from;
}

export function newer(version: number): ConfigError {
  return new ConfigError(
    `postgresStore: the database has schema version ${version}, this package knows ${SCHEMA_VERSION}. ` +
      'Upgrade proto-webhooks in this process, or give it a schema of its own.',
  );
}

function refusal(error: unknown): Error {
  if (error instanceof ConfigError || sqlState(error) === undefined) return asFault(error);
  const reason = error instanceof Error ? error.message : String(error);
  return new ConfigError(
    `migrate: ${reason}. Run it as a role that may write and may create tables in the schema, on PostgreSQL 12 or newer.`,
    { cause: error },
  );
}
