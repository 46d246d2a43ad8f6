// The parts of `node:sqlite` that the store uses, and the errors of its connections (admission.md §9.2).
// Called by the other files of this folder and by `src/stores/sqlite.ts`.
import { ConfigError, Fault, messageOf } from '../../shared/errors.ts';
import { isError } from '../../shared/realms.ts';

/**
 * A prepared SQLite statement, as `SqliteHandle.prepare` returns it, reduced to the parts that the store uses. The
 * statements of `node:sqlite` fit.
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

/** A row of a result, as the driver returns it: its columns by name. */
export type SqliteRow = Readonly<Record<string, null | number | string | Uint8Array>>;

/** Reads a text column that is never null. */
export function textOf(row: SqliteRow, column: string): string {
  return row[column] as string;
}

type LoadModule = (name: string) => unknown;

function builtinModule(name: string): unknown {
  return globalThis.process?.getBuiltinModule?.(name);
}

/** The part of the module `node:sqlite` that the store uses. */
interface NodeSqlite {
  readonly DatabaseSync: new (file: string) => SqliteHandle;
}

/**
 * Returns the runtime's own SQLite.
 *
 * @throws ConfigError if the runtime has none (Node before 22.13).
 */
export function nodeSqlite(load: LoadModule = builtinModule): NodeSqlite {
  const sqlite = load('node:sqlite') as NodeSqlite | undefined;
  if (sqlite) return sqlite;
  throw new ConfigError(
    'proto-webhooks/sqlite: this runtime has no node:sqlite. Use Node >= 22.13, or the store of another subpath: ' +
      'proto-webhooks/postgres, proto-webhooks/mysql or proto-webhooks/redis.',
  );
}

/** The module is loaded at import, so that a runtime without `node:sqlite` fails before a receiver is created. */
const { DatabaseSync }: NodeSqlite = nodeSqlite();

export function openFile(file: string): SqliteHandle {
  return new DatabaseSync(file);
}

/**
 * Errors by SQLite's primary result codes (sqlite.org/rescode.html), or by their messages: on Deno, errors of `exec`
 * have no code.
 */
const BUSY = { numbers: [5, 6], message: /^database (?:table |schema )?is locked/ };
const CONSTRAINT = { numbers: [19], message: /constraint failed/ };

/**
 * The message of BEGIN and PRAGMA synchronous while the user's code has an open transaction on this handle. Both fail
 * until that transaction ends.
 */
const OPEN_TRANSACTION = /(?:within|inside) a transaction/;

function isResult(error: unknown, of: { numbers: readonly number[]; message: RegExp }): boolean {
  if (!isError(error)) return false;
  const { errcode } = error as { readonly errcode?: unknown };
  // The low byte of `errcode` is the primary code; the higher bytes are not needed here.
  return typeof errcode === 'number' ? of.numbers.includes(errcode & 0xff) : of.message.test(error.message);
}

/** True if a later try may succeed: another connection has a lock, or the user's code has an open transaction. */
export function isBusy(error: unknown): boolean {
  return isResult(error, BUSY) || (isError(error) && OPEN_TRANSACTION.test(error.message));
}

export function isConstraint(error: unknown): boolean {
  return isResult(error, CONSTRAINT);
}

/**
 * Converts a driver's error to the one that callers see: a `Fault`, answered 503. Faults and ConfigErrors are returned
 * unchanged.
 */
export function asFault(error: unknown): Error {
  if (error instanceof Fault || error instanceof ConfigError) return error;
  const reason = messageOf(error);
  return new Fault('store_unavailable', `SQLite: ${reason}`, { cause: error });
}
