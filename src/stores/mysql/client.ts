import { ConfigError } from '../../errors.ts';
import type { Query } from '../sql/transaction.ts';
import { within } from '../sql/within.ts';
import { isServerError } from './faults.ts';

/** A connection that was checked out of a pool: `mysql2/promise`'s fits. What `ctx.transaction` hands to its function. */
export interface MysqlConnection {
  query(sql: string, values?: unknown): Promise<[unknown, unknown]>;
  execute(sql: string, values?: unknown): Promise<[unknown, unknown]>;
  release(): void;
  destroy(): void;
}

/** A pool: that of `mysql2/promise` fits. It stays its owner's to end. */
export interface MysqlPool {
  getConnection(): Promise<MysqlConnection>;
}

/** A row of a result. */
export type Columns = Readonly<Record<string, unknown>>;

/** Rows of each result that a statement gives; of one that changes something what it changed. */
export type ResultSets = readonly (readonly Columns[])[];

/** What the owner's pool has otherwise, by `createPool`, says nothing here. */
const AS_IT_IS = { rowsAsArray: false, nestTables: false, namedPlaceholders: false, typeCast: true };

/** `mysql2`'s own default. */
const DEFAULT_MAX = 10;

/** Connections of a pool at most. */
export function poolMax(given: MysqlPool): number {
  const { pool } = given as { readonly pool?: { readonly config?: { readonly connectionLimit?: number } } };
  return pool?.config?.connectionLimit ?? DEFAULT_MAX;
}

/** @throws ConfigError, with the line to write, for a connection, a URL, a pool of callbacks, nothing. */
export function requirePool(who: string, write: string, given: unknown): void {
  const { getConnection, pool } = (given ?? {}) as {
    readonly getConnection?: unknown;
    readonly pool?: unknown;
  };
  // A pool of callbacks has the method too, which gives no promise.
  if (typeof getConnection === 'function' && typeof pool === 'object') return;
  throw new ConfigError(
    `${who}: pool is not a pool of mysql2/promise. Write: import { createPool } from 'mysql2/promise'; const pool = createPool(…); ${write}.`,
  );
}

/**
 * A connection of the pool. It has to be released by `giveBack`.
 * @throws Fault `store_unavailable` where none comes in time: the server is away, or the pool is used up.
 */
export function checkOut(pool: MysqlPool, timeoutMs: number): Promise<MysqlConnection> {
  const what = 'MySQL: waiting for a connection of the pool';
  return within(pool.getConnection(), timeoutMs, what, (late) => late.release());
}

/** After an error that is not the server's word on a statement the connection is in an unknown state: it is closed. */
export function giveBack(connection: MysqlConnection, error?: unknown): void {
  if (error === undefined || isServerError(error)) connection.release();
  else connection.destroy();
}

/** Text is sent as bytes, so that no connection's charset comes in. */
function sent(value: unknown): unknown {
  if (typeof value === 'string') return Buffer.from(value);
  if (!(value instanceof Uint8Array)) return value;
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
}

export function askOn(connection: MysqlConnection, timeoutMs: number): Query<ResultSets> {
  return async (sql, values) => {
    const statement = { ...AS_IT_IS, sql, values: values.map(sent) } as unknown as string;
    const [results] = await within(connection.execute(statement), timeoutMs, 'MySQL: a statement');
    // Of a call: the rows of each SELECT, and what was changed. Of one SELECT: its rows.
    const lists = Array.isArray(results) && Array.isArray(results[0]) ? (results as unknown[]) : [results];
    return lists.map((list) => (Array.isArray(list) ? list : [list]) as readonly Columns[]);
  };
}

/** One statement, on a connection of its own. */
export async function askOnce(
  pool: MysqlPool,
  timeoutMs: number,
  ...[sql, values]: Parameters<Query<ResultSets>>
): Promise<ResultSets> {
  const connection = await checkOut(pool, timeoutMs);
  try {
    const results = await askOn(connection, timeoutMs)(sql, values);
    giveBack(connection);
    return results;
  } catch (error) {
    giveBack(connection, error);
    throw error;
  }
}

/** Of a binary column. */
export const textOf = (column: unknown): string => Buffer.from(column as Uint8Array).toString('utf8');
