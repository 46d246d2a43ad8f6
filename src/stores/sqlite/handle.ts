import { ConfigError, Fault, messageOf } from '../../shared/errors.ts';
import { isError } from '../../shared/realms.ts';

/**
 * A prepared SQLite statement, as `SqliteHandle.prepare` returns it, reduced to the parts that the store uses; that
 * of `node:sqlite` fits.
 */
export interface SqliteStatement {
  run(...parameters: SqliteValue[]): { readonly changes: number | bigint };
  get(...parameters: SqliteValue[]): unknown;
  all(...parameters: SqliteValue[]): unknown[];
}

/**
 * A synchronous connection to SQLite, reduced to the parts that the store uses. `DatabaseSync` of `node:sqlite`
 * fits.
 */
export interface SqliteHandle {
  exec(sql: string): unknown;
  prepare(sql: string): SqliteStatement;
  close(): unknown;
}

/** A value that the store binds to a parameter of an SQLite statement. */
export type SqliteValue = null | number | string | Uint8Array;

/** A row as read. */
export type SqliteRow = Readonly<Record<string, null | number | string | Uint8Array>>;

/** A text column that is never null. */
export function textOf(row: SqliteRow, column: string): string {
  return row[column] as string;
}

type LoadModule = (name: string) => unknown;

function builtinModule(name: string): unknown {
  return globalThis.process?.getBuiltinModule?.(name);
}

/** What `node:sqlite` has. */
interface NodeSqlite {
  readonly DatabaseSync: new (file: string) => SqliteHandle;
}

/**
 * The runtime's own SQLite.
 * @throws ConfigError where it has none (Node before 22.13).
 */
export function nodeSqlite(load: LoadModule = builtinModule): NodeSqlite {
  const sqlite = load('node:sqlite') as NodeSqlite | undefined;
  if (sqlite) return sqlite;
  throw new ConfigError(
    'proto-webhooks/sqlite: this runtime has no node:sqlite. Use Node >= 22.13, or the store of another subpath: ' +
      'proto-webhooks/postgres, proto-webhooks/mysql or proto-webhooks/redis.',
  );
}

/** Taken at import, so that a runtime without it is told before there is a receiver. */
const { DatabaseSync }: NodeSqlite = nodeSqlite();

/** Opens a file. */
export function openFile(file: string): SqliteHandle {
  return new DatabaseSync(file);
}

/**
 * SQLite's primary result codes (sqlite.org/rescode.html), and how its messages of them read: on Deno errors of `exec`
 * have a message alone.
 */
const BUSY = { numbers: [5, 6], message: /^database (?:table |schema )?is locked/ };
const CONSTRAINT = { numbers: [19], message: /constraint failed/ };

/** The owner's code has a transaction open on this handle: no BEGIN and no PRAGMA synchronous until it ends. */
const OPEN_TRANSACTION = /(?:within|inside) a transaction/;

function isResult(error: unknown, of: { numbers: readonly number[]; message: RegExp }): boolean {
  if (!isError(error)) return false;
  const { errcode } = error as { readonly errcode?: unknown };
  // The low byte is the primary code; the rest says more than is needed here.
  return typeof errcode === 'number' ? of.numbers.includes(errcode & 0xff) : of.message.test(error.message);
}

/** Worth trying again in a moment. */
export function isBusy(error: unknown): boolean {
  return isResult(error, BUSY) || (isError(error) && OPEN_TRANSACTION.test(error.message));
}

export function isConstraint(error: unknown): boolean {
  return isResult(error, CONSTRAINT);
}

/** What callers see of a driver's error: a fault of ours, 503. Faults and configuration errors pass. */
export function asFault(error: unknown): Error {
  if (error instanceof Fault || error instanceof ConfigError) return error;
  const reason = messageOf(error);
  return new Fault('store_unavailable', `SQLite: ${reason}`, { cause: error });
}
