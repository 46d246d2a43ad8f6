// Connections of a `mysql2` pool: taking and returning them, results, and errors by number (admission.md §9.3, §9.6).
// Called by the backend, the settings and `migrate` of MySQL.
import type { EventEmitter } from 'node:events';
import { ConfigError, Fault } from '../../shared/errors.ts';
import { causesOf, type Connections, type MadeAt } from '../sql/connections.ts';
import { type Query, within } from '../sql/sql-transaction.ts';
import { isBytes, isError } from '../../shared/realms.ts';

/**
 * A MySQL connection, reduced to the parts that the store uses; a connection of `mysql2/promise` fits.
 * `ctx.transaction` passes such a connection to its function.
 */
export interface MysqlConnection {
  query(sql: string, values?: unknown): Promise<[unknown, unknown]>;
  execute(sql: string, values?: unknown): Promise<[unknown, unknown]>;
  release(): void;
  destroy(): void;
}

/**
 * A pool of MySQL connections, reduced to the parts that the store uses; a pool of `mysql2/promise` fits. The caller
 * ends the pool.
 */
export interface MysqlPool {
  getConnection(): Promise<MysqlConnection>;
}

/** A row of a result: its columns by name. */
export type Columns = Readonly<Record<string, unknown>>;

/**
 * The rows of each result of a statement. The result of a statement that changes rows is one row about these changes.
 */
export type ResultSets = readonly (readonly Columns[])[];

/** Options of each statement, by which rows have the form that the store reads. They override those of `createPool`. */
const AS_IT_IS = { rowsAsArray: false, nestTables: false, namedPlaceholders: false, typeCast: true };

/** The largest number of connections of a `mysql2` pool whose options have no `connectionLimit`. */
const DEFAULT_MAX = 10;

/** Returns the largest number of connections in a pool. */
export function poolMax(mysqlPool: MysqlPool): number {
  const { pool } = mysqlPool as {
    readonly pool?: { readonly config?: { readonly connectionLimit?: number } };
  };
  return pool?.config?.connectionLimit ?? DEFAULT_MAX;
}

/**
 * Checks that a value is a pool of `mysql2/promise`.
 *
 * @throws ConfigError, with the correct line of code, if the value is e.g. a connection, a URL, a callback pool, or
 *   undefined.
 */
export function requirePool(who: string, write: string, value: unknown): void {
  const { getConnection, pool } = (value ?? {}) as {
    readonly getConnection?: unknown;
    readonly pool?: unknown;
  };
  // A pool of the callback API of `mysql2` has `getConnection` as well, but it returns no promise.
  if (typeof getConnection === 'function' && typeof pool === 'object') return;
  throw new ConfigError(
    `${who}: pool is not a pool of mysql2/promise. Write: import { createPool } from 'mysql2/promise'; const pool = createPool(…); ${write}.`,
  );
}

/**
 * Takes a connection from the pool. The caller has to return the connection by `giveBack`.
 *
 * @throws Fault `store_unavailable` if no connection comes in time: the server is unreachable, or all are in use.
 */
export function checkOut(pool: MysqlPool, timeoutMs: number): Promise<MysqlConnection> {
  const what = 'MySQL: waiting for a connection of the pool';
  return within(pool.getConnection(), timeoutMs, what, (late) => late.release());
}

/**
 * Returns a connection to the pool. The connection is closed after an error that is not the server's answer to a
 * statement, because its state is then unknown. It is also closed if its server cannot write.
 */
export function giveBack(connection: MysqlConnection, error?: unknown): void {
  if (error === undefined || (isServerError(error) && !isReadOnly(error))) connection.release();
  else connection.destroy();
}

/** Errors of a read-only server: `read_only` and similar settings, a read-only transaction, read-only InnoDB. */
const READ_ONLY: readonly number[] = [1290, 1792, 1836, 1874];

/** Errors of a Galera node outside its cluster, and of a member that has left its group. */
const LEFT: readonly number[] = [1047, 3100];

/**
 * Returns the first error in the chain of causes that says that the server cannot write; undefined if there is none.
 */
export const readOnlyIn = (error: unknown): unknown =>
  [...causesOf(error)].find((one) => [...READ_ONLY, ...LEFT].includes(errorNumber(one) ?? 0));

const isReadOnly = (error: unknown): boolean => readOnlyIn(error) !== undefined;

/**
 * Saves in `madeAt` the time at which the pool makes each connection.
 *
 * @returns a function that ends this.
 */
export function watchMade(mysqlPool: MysqlPool, madeAt: MadeAt): () => void {
  const { pool } = mysqlPool as { readonly pool?: Partial<Pick<EventEmitter, 'on' | 'removeListener'>> };
  const made = (connection: object): void => void madeAt.set(connection, performance.now());
  pool?.on?.('connection', made);
  return () => void pool?.removeListener?.('connection', made);
}

export function connectionsOf(
  pool: MysqlPool,
  timeoutMs: number,
  madeAt: MadeAt,
): Connections<MysqlConnection> {
  const madeWhen = ({ connection }: { readonly connection?: object }): number =>
    (connection && madeAt.get(connection)) ?? -Infinity;
  return {
    max: poolMax(pool),
    checkOut: () => checkOut(pool, timeoutMs),
    giveBack,
    // The pool wraps a connection anew for each caller. `madeAt` has the time of the wrapped connection.
    isNewer: (wrapped, since) => madeWhen(wrapped as object) >= since,
    isReadOnly,
  };
}

/** Converts text to bytes before it is sent, so that the connection's charset cannot change it. */
function sent(value: unknown): unknown {
  if (typeof value === 'string') return Buffer.from(value);
  if (!isBytes(value)) return value;
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
}

export function askOn(connection: MysqlConnection, timeoutMs: number): Query<ResultSets> {
  return async (sql, values) => {
    const statement = { ...AS_IT_IS, sql, values: values.map(sent) } as unknown as string;
    const [results] = await within(connection.execute(statement), timeoutMs, 'MySQL: a statement');
    // A procedure call returns several results: the rows of each SELECT, then one about changes. A SELECT returns only
    // rows.
    const lists = Array.isArray(results) && Array.isArray(results[0]) ? (results as unknown[]) : [results];
    return lists.map((list) => (Array.isArray(list) ? list : [list]) as readonly Columns[]);
  };
}

/** Reads a binary column as text. */
export const textOf = (column: unknown): string => Buffer.from(column as Uint8Array).toString('utf8');

/** Returns the number of an error that the server reported; undefined for errors of the connection or the driver. */
export function errorNumber(error: unknown): number | undefined {
  if (!isError(error)) return undefined;
  const { errno, sqlState } = error as { readonly errno?: unknown; readonly sqlState?: unknown };
  return typeof errno === 'number' && typeof sqlState === 'string' ? errno : undefined;
}

/**
 * Errors after which the server closes the connection: a shutdown, a killed connection, a packet that is too large.
 */
const CLOSING: readonly number[] = [1053, 1152, 1153, 1158, 1159, 1160, 1161, 1184, 1927, 2013, 4031];

export function isServerError(error: unknown): boolean {
  const number = errorNumber(error);
  return number !== undefined && !CLOSING.includes(number);
}

/**
 * Errors after which the server has rolled back the transaction: a deadlock, and a row that changed. A deadlock over
 * the next AUTO_INCREMENT value has a number of its own.
 */
const ROLLED_BACK: readonly number[] = [1213, 1020, 1467];

/**
 * True for a transaction that was rolled back because of other transactions. False if a lock was not released in time,
 * because that wait has used up the time for retries.
 */
export function isRetryable(error: unknown): boolean {
  return ROLLED_BACK.includes(errorNumber(error) ?? 0);
}

/** Classes of SQLSTATE that one row of a batch may cause: errors of data and constraints. */
const ABOUT_INPUT: readonly string[] = ['21', '22', '23'];

/**
 * Errors for a packet, a value or a JSON text that the server does not accept. Their SQLSTATE is not in `ABOUT_INPUT`.
 */
const INPUTS: readonly number[] = [1153, 1366, 4035, 4036, 4037, 4038];

/** True if one call of a batch may have caused the error. Each call is then repeated alone. */
export function mayBeOneCalls(error: unknown): boolean {
  const number = errorNumber(error);
  if (number === undefined) return false;
  const { sqlState } = error as { readonly sqlState?: string };
  return INPUTS.includes(number) || ABOUT_INPUT.includes((sqlState ?? '').slice(0, 2));
}

const PRIMARY =
  ' The server is read-only: connect the pool to the primary, by an address that leads to it also after a failover.';
const GRANT = ' Grant the user the rights that docs/operations.md#mysql lists.';
const MIGRATE = ' Run migrate(pool).';

/** Advice for errors that an operator has to correct, by error number. */
const FIX: Readonly<Record<number, string>> = {
  ...Object.fromEntries(READ_ONLY.map((number) => [number, PRIMARY])),
  1044: GRANT,
  1142: GRANT,
  1143: GRANT,
  1370: GRANT,
  1146: MIGRATE,
  1305: MIGRATE,
  1114: ' The disk, or the table space, is full.',
  1153: ' Set max_allowed_packet higher.',
};

/** True for a constraint that failed: the server refuses the written content. */
export function isOfContent(error: unknown): boolean {
  const { sqlState } = (error ?? {}) as { readonly sqlState?: unknown };
  return isServerError(error) && String(sqlState).startsWith('23');
}

/** Advice for wrong settings of the pool, by error number. A retry would not help. */
const WRONGLY_GIVEN: Readonly<Record<number, string>> = {
  1049: "Give the pool the name of the database in which migrate(pool) made the store's tables.",
  1044: 'Give the pool a user that may use this database.',
  1045: 'Give the pool a user that may connect, and its password.',
  1698: 'Give the pool a user that may connect, and its password.',
};

/**
 * Makes a ConfigError if the error means that the pool's settings name a wrong database, user or password. Otherwise
 * returns undefined.
 *
 * @param who the caller's name for the message, e.g. `mysqlStore`.
 */
export function wronglyGiven(who: string, error: unknown): ConfigError | undefined {
  for (const one of causesOf(error)) {
    const number = errorNumber(one) ?? 0;
    const fix = WRONGLY_GIVEN[number];
    if (fix !== undefined)
      return new ConfigError(`${who}: ${one.message} (${number}). ${fix}`, { cause: error });
  }
  return undefined;
}

/**
 * Converts an error to the one that callers see: a `Fault`, answered 503. Faults and ConfigErrors are returned
 * unchanged.
 */
export function asFault(error: unknown): Error {
  if (error instanceof Fault || error instanceof ConfigError) return error;
  const number = errorNumber(error) ?? 0;
  const { code } = (error ?? {}) as { readonly code?: unknown };
  const reason = isError(error) && error.message !== '' ? error.message : String(code ?? error);
  const suffix = number === 0 ? '' : ` (${number})`;
  return new Fault('store_unavailable', `MySQL: ${reason}${suffix}.${FIX[number] ?? ''}`, { cause: error });
}
