// Connections of a `pg` pool: taking and returning them, and their errors by SQLSTATE (admission.md §9.3, §2.16).
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
 * A PostgreSQL connection as the event `connect` of a pool passes it, reduced to its event `error`. It emits `error`
 * when it breaks.
 */
export interface PgConnection {
  on(event: 'error', listener: (error: Error) => void): unknown;
  removeListener(event: 'error', listener: (error: Error) => void): unknown;
}

/** A notice that the server sends beside its result. */
interface PgNotice {
  /**
   * The server's internal function that sent the notice. It identifies the notice, because the text of the message is
   * in the server's language.
   */
  readonly routine?: string | undefined;
}

/**
 * A PostgreSQL client that was checked out of a pool, reduced to the parts that the store uses; `PoolClient` of `pg`
 * fits. `ctx.transaction` passes such a client to its function.
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
 * A pool of PostgreSQL connections, reduced to the parts that the store uses; `Pool` of `pg` fits. The caller ends the
 * pool.
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

/** The largest number of connections of a `pg` pool whose options have no `max`. */
const DEFAULT_MAX = 10;

export function poolMax(pool: PgPool): number {
  return pool.options.max ?? DEFAULT_MAX;
}

/** Does nothing. It listens for errors of idle connections, because an error without a listener ends the process. */
export const ignoreError = (): void => undefined;

/**
 * Listens for errors of each connection of a pool from its first moment. A server that shuts down may say so in the
 * same packet that says that the connection is ready. At that moment the pool no longer listens, and the caller does
 * not have the connection yet.
 *
 * @param madeAt receives the time at which each connection was made.
 * @returns a function that stops listening to new connections.
 */
export function survive(pool: PgPool, madeAt?: MadeAt): () => void {
  const connected = (client: PgConnection): void => {
    madeAt?.set(client, performance.now());
    // All stores share the function `ignoreError`. Removing it first leaves each client with one listener, even if
    // several stores share the pool.
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
 * Returns a hint for the error message if the pool has no time limit for connecting; `pg` has none by default. Without
 * a limit, a connection that never answers occupies a place in the pool for ever.
 */
function hintOf({ options }: PgPool): string {
  return options.connectionTimeoutMillis ? '' : ' (which has no connectionTimeoutMillis: set it)';
}

/**
 * Takes a client from the pool. The caller has to return the client by `giveBack`.
 *
 * @throws Fault `store_unavailable` if no client comes in time: the server is unreachable, or all connections are in
 *   use.
 */
export async function checkOut(pool: PgPool, timeoutMs: number): Promise<PgClient> {
  const what = `Postgres: waiting for a connection of the pool${hintOf(pool)}`;
  const client = await within(pool.connect(), timeoutMs, what, (late) => late.release());
  client.on('error', ignoreError);
  return client;
}

/**
 * Returns a client to the pool. The client is closed after an error that is not the server's answer to a statement,
 * because its state is then unknown. It is also closed if its server cannot write.
 */
export function giveBack(client: PgClient, error?: unknown): void {
  client.removeListener('error', ignoreError);
  client.release(error !== undefined && (!isServerError(error) || isReadOnly(error)));
}

/** `read_only_sql_transaction`: the answer of a standby, or of a server that was set to read-only. */
const READ_ONLY = '25006';

/**
 * Returns the first error in the chain of causes that says that the server cannot write; undefined if there is none.
 */
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

/** The server's internal function that waits for the standbys at a commit. */
const WAITING = 'SyncRepWaitForLSN';

/**
 * Runs a statement that commits. If the server's wait for a standby is cancelled, the server keeps the commit, and
 * answers as if the standby had it too. Only a warning shows that the standby may lack it.
 *
 * @throws Fault `not_durable` if the server sent that warning.
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

/** Runs one statement, which is its own transaction. */
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
 * Checks that a value is a pool of `pg`.
 *
 * @throws ConfigError, with the correct line of code, if the value is e.g. a client, a URL, the options of a pool, or
 *   undefined.
 */
export function requirePool(who: string, write: string, pool: unknown): void {
  const { connect, options } = (pool ?? {}) as Partial<PgPool>;
  if (typeof connect === 'function' && typeof options === 'object') return;
  throw new ConfigError(`${who}: pool is not a pool of pg. Write: const pool = new pg.Pool(…); ${write}.`);
}

/**
 * Returns the SQLSTATE of an error that the server reported; undefined for errors of the connection or the driver.
 */
export function sqlState(error: unknown): string | undefined {
  if (!isError(error)) return undefined;
  const { code, severity } = error as { readonly code?: unknown; readonly severity?: unknown };
  // Node's network errors have a `code` too (`EPIPE` has five letters), but no severity.
  return typeof code === 'string' && typeof severity === 'string' ? code : undefined;
}

/**
 * True for an error after which the connection can still be used. A FATAL error, or an error about a shutdown or the
 * connection, ends the connection.
 */
export function isServerError(error: unknown): boolean {
  const state = sqlState(error);
  if (state === undefined || state.startsWith('57P') || state.startsWith('08')) return false;
  return (error as { readonly severity?: unknown }).severity === 'ERROR';
}

/**
 * True for a transaction that was rolled back because of other transactions: a deadlock or a serialization failure.
 */
export function isRetryable(error: unknown): boolean {
  const state = sqlState(error);
  return state === '40P01' || state === '40001';
}

/**
 * Classes of SQLSTATE that one row of a batch may cause: errors of data, constraints and sizes, and internal errors of
 * the server.
 */
const ABOUT_INPUT: readonly string[] = ['21', '22', '23', '54', 'XX', 'P0'];

/** True if one call of a batch may have caused the error. Each call is then repeated alone. */
export function mayBeOneCalls(error: unknown): boolean {
  return ABOUT_INPUT.includes(sqlState(error)?.slice(0, 2) ?? '');
}

/** The advice to connect to the primary, for error messages: `pg` does not check if a server is the primary. */
export const ADDRESS =
  'Set its host (or connectionString) to an address that leads to the primary, also after a failover: pg tries no other one.';

/**
 * Classes of SQLSTATE by which the server refuses what a user wrote: data, constraints, views with a check, errors of
 * triggers.
 */
const CONTENT: readonly string[] = ['22', '23', '44', 'P0'];

export function isOfContent(error: unknown): boolean {
  return isServerError(error) && CONTENT.includes(sqlState(error)?.slice(0, 2) ?? '');
}

/** Advice for errors that an operator has to correct, by SQLSTATE. */
const FIX: Readonly<Record<string, string>> = {
  [READ_ONLY]: ` The server is read-only: connect the pool to the primary. ${ADDRESS}`,
  '42501': ' Grant the role the rights that docs/operations.md#postgres lists.',
  '3F000': ' Run migrate(pool).',
  '42P01': ' Run migrate(pool).',
  '42883': ' Run migrate(pool).',
  PW002: ' Set default_transaction_isolation to read committed for the role.',
};

/** Advice for wrong settings of the pool, by SQLSTATE. A retry would not help. */
const WRONGLY_GIVEN: Readonly<Record<string, string>> = {
  '3D000': "Give the pool the name of the database in which migrate(pool) made the store's tables.",
  '28P01': 'Give the pool the password of its role.',
  '28000': 'Give the pool a role that may connect.',
};

/** True for the error of PgBouncer for an unknown database, which it reports as a protocol violation. */
const isOfPooler = (state: string, message: string): boolean =>
  state === '08P01' && /^(?:no such database|database ".*" does not exist)/.test(message);

/**
 * Makes a ConfigError if the error means that the pool's settings name a wrong database, role or password. Otherwise
 * returns undefined.
 *
 * @param who the caller's name for the message, e.g. `postgresStore`.
 */
export function wronglyGiven(who: string, error: unknown): ConfigError | undefined {
  for (const one of causesOf(error)) {
    const state = sqlState(one) ?? '';
    const fix = WRONGLY_GIVEN[isOfPooler(state, one.message) ? '3D000' : state];
    if (fix !== undefined)
      return new ConfigError(`${who}: ${one.message} (${state}). ${fix}`, { cause: error });
  }
  return undefined;
}

/**
 * Converts an error to the one that callers see: a `Fault`, answered 503. Faults and ConfigErrors are returned
 * unchanged.
 */
export function asFault(error: unknown): Error {
  if (error instanceof Fault || error instanceof ConfigError) return error;
  const state = sqlState(error);
  const reason = isError(error) && error.message !== '' ? error.message : String(error);
  const code = state === undefined ? '' : ` (${state})`;
  return new Fault('store_unavailable', `Postgres: ${reason}${code}.${FIX[state ?? ''] ?? ''}`, {
    cause: error,
  });
}
