// Connections of a `pg` pool: taking and giving back, and the meaning of errors by SQLSTATE (admission.md §9.3, §2.16).
// Called by the backend, the sessions and `migrate` of Postgres.
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

/** A notice that the server sends beside its answer. */
interface PgNotice {
  /** The function of the server that sends it; messages come in the server's language. */
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

/** The default of `pg` for a pool without `max`. */
const DEFAULT_MAX = 10;

export function poolMax(pool: PgPool): number {
  return pool.options.max ?? DEFAULT_MAX;
}

/** Listens to errors of idle connections: without a listener a connection that breaks ends the process. */
export const ignoreError = (): void => undefined;

/**
 * Listens to each connection of a pool from its first moment. A server that shuts down may say so in the very packet
 * that says that the connection is ready. By then the pool listens to it no more, and its caller does not have it yet.
 *
 * @param madeAt notes when each connection was made.
 * @returns a function that ends it, for connections to come.
 */
export function survive(pool: PgPool, madeAt?: MadeAt): () => void {
  const connected = (client: PgConnection): void => {
    madeAt?.set(client, performance.now());
    // All stores use the same function, so a client has it once, however many stores share its pool.
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

/**
 * Advises a time limit of the pool. A connection that is never answered keeps its place in the pool until that time is
 * over; `pg` has none by default.
 */
function hintOf({ options }: PgPool): string {
  return options.connectionTimeoutMillis ? '' : ' (which has no connectionTimeoutMillis: set it)';
}

/**
 * Takes a client of the pool. It has to be released by `giveBack`.
 *
 * @throws Fault `store_unavailable` if none comes in time: the server cannot be reached, or the pool is used up.
 */
export async function checkOut(pool: PgPool, timeoutMs: number): Promise<PgClient> {
  const what = `Postgres: waiting for a connection of the pool${hintOf(pool)}`;
  const client = await within(pool.connect(), timeoutMs, what, (late) => late.release());
  client.on('error', ignoreError);
  return client;
}

/**
 * Releases a client. It is closed after an error that is not the server's answer to a statement, because its state is
 * unknown. It is closed as well if its server cannot write.
 */
export function giveBack(client: PgClient, error?: unknown): void {
  client.removeListener('error', ignoreError);
  client.release(error !== undefined && (!isServerError(error) || isReadOnly(error)));
}

/** `read_only_sql_transaction`: the answer of a standby, and of a server that was made read-only. */
const READ_ONLY = '25006';

/** Returns the error, or the cause of it, that says that the server cannot write. */
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

/** The function in which the server waits for its standbys at a commit. */
const WAITING = 'SyncRepWaitForLSN';

/**
 * Runs a statement that commits. If the server's wait for the standby is cancelled, it has committed, and answers as if
 * the standby had. Only a warning says so.
 *
 * @throws Fault `not_durable` in that case.
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

/** Runs one statement, which is a transaction by itself. */
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

/**
 * Checks a pool.
 *
 * @throws ConfigError, with the line to write, for a client, a URL, options of a pool, nothing.
 */
export function requirePool(who: string, write: string, pool: unknown): void {
  const { connect, options } = (pool ?? {}) as Partial<PgPool>;
  if (typeof connect === 'function' && typeof options === 'object') return;
  throw new ConfigError(`${who}: pool is not a pool of pg. Write: const pool = new pg.Pool(…); ${write}.`);
}

/**
 * Returns the SQLSTATE of an error that the server reported; undefined for any other error, of the connection or the
 * driver.
 */
export function sqlState(error: unknown): string | undefined {
  if (!isError(error)) return undefined;
  const { code, severity } = error as { readonly code?: unknown; readonly severity?: unknown };
  // Node's network errors have a code too (`EPIPE` has five letters), but no severity.
  return typeof code === 'string' && typeof severity === 'string' ? code : undefined;
}

/** True for an error that leaves the connection usable. FATAL and the classes of shutdown end it. */
export function isServerError(error: unknown): boolean {
  const state = sqlState(error);
  if (state === undefined || state.startsWith('57P') || state.startsWith('08')) return false;
  return (error as { readonly severity?: unknown }).severity === 'ERROR';
}

/** True for a transaction that was rolled back because of others at the same time: deadlock, serialization failure. */
export function isRetryable(error: unknown): boolean {
  const state = sqlState(error);
  return state === '40P01' || state === '40001';
}

/** Classes of SQLSTATE about the input (data, constraints, sizes), and about the server's own mistakes. */
const ABOUT_INPUT: readonly string[] = ['21', '22', '23', '54', 'XX', 'P0'];

/** True if one call of a batch may be the cause: the others must not fail with it. */
export function mayBeOneCalls(error: unknown): boolean {
  return ABOUT_INPUT.includes(sqlState(error)?.slice(0, 2) ?? '');
}

/** The advice to give an address of the primary: `pg` asks no server whether it is one. */
export const ADDRESS =
  'Set its host (or connectionString) to an address that leads to the primary, also after a failover: pg tries no other one.';

/** Classes in which the server refuses the written content: data, constraints, views with a check, errors of triggers. */
const CONTENT: readonly string[] = ['22', '23', '44', 'P0'];

export function isOfContent(error: unknown): boolean {
  return isServerError(error) && CONTENT.includes(sqlState(error)?.slice(0, 2) ?? '');
}

/** The fixes for errors that the operator has to mend. */
const FIX: Readonly<Record<string, string>> = {
  [READ_ONLY]: ` The server is read-only: connect the pool to the primary. ${ADDRESS}`,
  '42501': ' Grant the role the rights that docs/operations.md#postgres lists.',
  '3F000': ' Run migrate(pool).',
  '42P01': ' Run migrate(pool).',
  '42883': ' Run migrate(pool).',
  PW002: ' Set default_transaction_isolation to read committed for the role.',
};

/** The fixes for wrong settings of the pool, by SQLSTATE. Trying again does not mend them. */
const WRONGLY_GIVEN: Readonly<Record<string, string>> = {
  '3D000': "Give the pool the name of the database in which migrate(pool) made the store's tables.",
  '28P01': 'Give the pool the password of its role.',
  '28000': 'Give the pool a role that may connect.',
};

/** True for an unknown database behind PgBouncer, which calls it a violation of the protocol. */
const isOfPooler = (state: string, message: string): boolean =>
  state === '08P01' && /^(?:no such database|database ".*" does not exist)/.test(message);

/** Makes a ConfigError for a pool that leads to no database. @param who e.g. `postgresStore`. */
export function wronglyGiven(who: string, error: unknown): ConfigError | undefined {
  for (const one of causesOf(error)) {
    const state = sqlState(one) ?? '';
    const fix = WRONGLY_GIVEN[isOfPooler(state, one.message) ? '3D000' : state];
    if (fix !== undefined)
      return new ConfigError(`${who}: ${one.message} (${state}). ${fix}`, { cause: error });
  }
  return undefined;
}

/** Converts an error to the one that callers see: a fault, answered 503. Faults and configuration errors pass. */
export function asFault(error: unknown): Error {
  if (error instanceof Fault || error instanceof ConfigError) return error;
  const state = sqlState(error);
  const reason = isError(error) && error.message !== '' ? error.message : String(error);
  const code = state === undefined ? '' : ` (${state})`;
  return new Fault('store_unavailable', `Postgres: ${reason}${code}.${FIX[state ?? ''] ?? ''}`, {
    cause: error,
  });
}
