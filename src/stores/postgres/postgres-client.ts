import { ConfigError, Fault } from '../../shared/errors.ts';
import { causesOf, type Connections, type MadeAt } from '../sql/connections.ts';
import { within } from '../sql/sql-transaction.ts';
import { isError } from '../../shared/realms.ts';

/** The result of a PostgreSQL query, as `pg` returns it, reduced to its rows. */
export interface PgResult {
  readonly rows: readonly unknown[];
}

/**
 * A PostgreSQL connection as the event `connect` of a pool passes it, reduced to its event `error`, which it emits
 * when it breaks.
 */
export interface PgConnection {
  on(event: 'error', listener: (error: Error) => void): unknown;
  removeListener(event: 'error', listener: (error: Error) => void): unknown;
}

/** What the server says beside its answer. */
interface PgNotice {
  /** The function of the server that says it; messages are in its language. */
  readonly routine?: string | undefined;
}

/**
 * A PostgreSQL client that was checked out of a pool, reduced to the parts that the store uses; `PoolClient` of `pg`
 * fits. `ctx.transaction` passes one to its function.
 */
export interface PgClient extends PgConnection {
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'notice', listener: (notice: { readonly routine?: string | undefined }) => void): unknown;
  removeListener(event: 'error', listener: (error: Error) => void): unknown;
  removeListener(
    event: 'notice',
    listener: (notice: { readonly routine?: string | undefined }) => void,
  ): unknown;
  query(text: string, values?: unknown[]): Promise<PgResult>;
  release(error?: Error | boolean): void;
}

/**
 * A pool of PostgreSQL connections, reduced to the parts that the store uses; `Pool` of `pg` fits. The caller ends
 * it.
 */
export interface PgPool {
  connect(): Promise<PgClient>;
  readonly options: {
    readonly max?: number | undefined;
    readonly connectionTimeoutMillis?: number | undefined;
  };
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'connect', listener: (client: PgConnection) => void): unknown;
  removeListener(event: 'error', listener: (error: Error) => void): unknown;
  removeListener(event: 'connect', listener: (client: PgConnection) => void): unknown;
}

/** `pg`'s own default for a pool without `max`. */
const DEFAULT_MAX = 10;

export function poolMax(pool: PgPool): number {
  return pool.options.max ?? DEFAULT_MAX;
}

/** A connection that breaks while nothing is asked of it says so here; without a listener that ends the process. */
export const ignoreError = (): void => undefined;

/**
 * A server that shuts down can tell a connection so in the packet that says it is ready: then the pool listens to it no
 * more, and its caller does not have it yet. So each one is listened to from its first moment.
 * @param madeAt is told of each.
 * @returns what ends it, for connections to come.
 */
export function survive(pool: PgPool, madeAt?: MadeAt): () => void {
  const connected = (client: PgConnection): void => {
    madeAt?.set(client, performance.now());
    // The same function for all, which a client has once, however many stores share its pool.
    client.removeListener('error', ignoreError);
    client.on('error', ignoreError);
  };
  pool.on('error', ignoreError);
  pool.on('connect', connected);
  return () => {
    pool.removeListener('error', ignoreError);
    pool.removeListener('connect', connected);
  };
}

/** A connection that is never answered keeps its place in the pool until this time is over; `pg` has none by default. */
function hintOf({ options }: PgPool): string {
  return options.connectionTimeoutMillis ? '' : ' (which has no connectionTimeoutMillis: set it)';
}

/**
 * A client of the pool. It has to be released by `giveBack`.
 * @throws Fault `store_unavailable` where none comes in time: the server is away, or the pool is used up.
 */
export async function checkOut(pool: PgPool, timeoutMs: number): Promise<PgClient> {
  const what = `Postgres: waiting for a connection of the pool${hintOf(pool)}`;
  const client = await within(pool.connect(), timeoutMs, what, (late) => late.release());
  client.on('error', ignoreError);
  return client;
}

/**
 * After an error that is not the server's word on a statement the connection is in an unknown state: it is closed. So is
 * one whose server cannot write.
 */
export function giveBack(client: PgClient, error?: unknown): void {
  client.removeListener('error', ignoreError);
  client.release(error !== undefined && (!isServerError(error) || isReadOnly(error)));
}

/** `read_only_sql_transaction`: a standby says so, and a server that was made read-only. */
const READ_ONLY = '25006';

/** What says in an error, or its cause, that the server cannot write. */
export const readOnlyIn = (error: unknown): unknown =>
  [...causesOf(error)].find((one) => sqlState(one) === READ_ONLY);

const isReadOnly = (error: unknown): boolean => readOnlyIn(error) !== undefined;

export function connectionsOf(pool: PgPool, timeoutMs: number, madeAt: MadeAt): Connections<PgClient> {
  return {
    max: poolMax(pool),
    checkOut: () => checkOut(pool, timeoutMs),
    giveBack,
    isNewer: (client, since) => (madeAt.get(client) ?? -Infinity) >= since,
    isReadOnly,
  };
}

/** Where the server waits for its standbys at a commit. */
const WAITING = 'SyncRepWaitForLSN';

/**
 * Runs what commits. The server says as a warning that its wait for the standby was cancelled: it has committed, and
 * answers as if the standby had.
 * @throws Fault `not_durable` then.
 */
export async function committing<T>(client: PgClient, run: () => Promise<T>): Promise<T> {
  let isCancelled = false;
  const hear = ({ routine }: PgNotice): void => {
    if (routine === WAITING) isCancelled = true;
  };
  client.on('notice', hear);
  try {
    const result = await run();
    if (!isCancelled) return result;
  } finally {
    client.removeListener('notice', hear);
  }
  throw new Fault(
    'not_durable',
    'Postgres: the wait for the standby was cancelled, so it may not have the commit.',
  );
}

/** One statement, which is a transaction by itself. */
export async function query(
  client: PgClient,
  timeoutMs: number,
  text: string,
  values: unknown[],
): Promise<readonly unknown[]> {
  const asking = (): Promise<PgResult> =>
    within(client.query(text, values), timeoutMs, 'Postgres: a statement');
  const result = await committing(client, asking);
  return result.rows;
}

/** @throws ConfigError, with the line to write, for a client, a URL, options of a pool, nothing. */
export function requirePool(who: string, write: string, pool: unknown): void {
  const { connect, options } = (pool ?? {}) as Partial<PgPool>;
  if (typeof connect === 'function' && typeof options === 'object') return;
  throw new ConfigError(`${who}: pool is not a pool of pg. Write: const pool = new pg.Pool(…); ${write}.`);
}

/** SQLSTATE of an error that the server reported; undefined for any other error: the connection broke, or the driver. */
export function sqlState(error: unknown): string | undefined {
  if (!isError(error)) return undefined;
  const { code, severity } = error as { readonly code?: unknown; readonly severity?: unknown };
  // Node's network errors have a code too (`EPIPE` has five letters), but no severity.
  return typeof code === 'string' && typeof severity === 'string' ? code : undefined;
}

/** FATAL and the classes of shutdown end the connection. */
export function isServerError(error: unknown): boolean {
  const state = sqlState(error);
  if (state === undefined || state.startsWith('57P') || state.startsWith('08')) return false;
  return (error as { readonly severity?: unknown }).severity === 'ERROR';
}

/** Rolled back because of others who were there at the same time: deadlock, serialization failure. */
export function isRetryable(error: unknown): boolean {
  const state = sqlState(error);
  return state === '40P01' || state === '40001';
}

/** Classes of SQLSTATE that are about what was sent: data, constraints, sizes; and the server's own mistakes. */
const ABOUT_INPUT: readonly string[] = ['21', '22', '23', '54', 'XX', 'P0'];

/** One call of a batch may be the reason: the others must not fail with it. */
export function mayBeOneCalls(error: unknown): boolean {
  return ABOUT_INPUT.includes(sqlState(error)?.slice(0, 2) ?? '');
}

/** `pg` asks no server whether it is the primary. */
export const ADDRESS =
  'Set its host (or connectionString) to an address that leads to the primary, also after a failover: pg tries no other one.';

/** Data, constraints, views with a check, and what triggers raise: the server refuses what was written. */
const CONTENT: readonly string[] = ['22', '23', '44', 'P0'];

export function isOfContent(error: unknown): boolean {
  return isServerError(error) && CONTENT.includes(sqlState(error)?.slice(0, 2) ?? '');
}

/** Where the owner has to do something, and what. */
const FIX: Readonly<Record<string, string>> = {
  [READ_ONLY]: ` The server is read-only: connect the pool to the primary. ${ADDRESS}`,
  '42501': ' Grant the role the rights that docs/operations.md#postgres lists.',
  '3F000': ' Run migrate(pool).',
  '42P01': ' Run migrate(pool).',
  '42883': ' Run migrate(pool).',
  PW002: ' Set default_transaction_isolation to read committed for the role.',
};

/** Mistakes in what the pool was given: SQLSTATE, and what to do. Trying again does not mend them. */
const WRONGLY_GIVEN: Readonly<Record<string, string>> = {
  '3D000': "Give the pool the name of the database in which migrate(pool) made the store's tables.",
  '28P01': 'Give the pool the password of its role.',
  '28000': 'Give the pool a role that may connect.',
};

/** PgBouncer says it as a violation of the protocol. */
const isOfPooler = (state: string, message: string): boolean =>
  state === '08P01' && /^(?:no such database|database ".*" does not exist)/.test(message);

/** A pool that leads to no database. @param who e.g. `postgresStore`. */
export function wronglyGiven(who: string, error: unknown): ConfigError | undefined {
  for (const one of causesOf(error)) {
    const state = sqlState(one) ?? '';
    const fix = WRONGLY_GIVEN[isOfPooler(state, one.message) ? '3D000' : state];
    if (fix !== undefined)
      return new ConfigError(`${who}: ${one.message} (${state}). ${fix}`, { cause: error });
  }
  return undefined;
}

/** What callers see: a fault of ours, 503. Faults and configuration errors pass. */
export function asFault(error: unknown): Error {
  if (error instanceof Fault || error instanceof ConfigError) return error;
  const state = sqlState(error);
  const reason = isError(error) && error.message !== '' ? error.message : String(error);
  const code = state === undefined ? '' : ` (${state})`;
  return new Fault('store_unavailable', `Postgres: ${reason}${code}.${FIX[state ?? ''] ?? ''}`, {
    cause: error,
  });
}
