import { ConfigError, Fault, messageOf } from '../../errors.ts';
import { isError } from '../../realms.ts';

/** A prepared statement, as `node:sqlite`, `better-sqlite3` and `libsql` give it. */
export interface SqliteStatement {
  run(...parameters: SqliteValue[]): { readonly changes: number | bigint };
  get(...parameters: SqliteValue[]): unknown;
  all(...parameters: SqliteValue[]): unknown[];
}

/** A synchronous connection: `DatabaseSync` of `node:sqlite`, `Database` of `better-sqlite3` or `libsql`. */
export interface SqliteHandle {
  exec(sql: string): unknown;
  prepare(sql: string): SqliteStatement;
  close(): unknown;
}

/** What is bound to a statement's parameters. */
export type SqliteValue = null | number | string | Uint8Array;

/** A row as read: `libsql` gives blobs as ArrayBuffer, the others as Uint8Array. */
export type SqliteRow = Readonly<Record<string, null | number | string | Uint8Array | ArrayBuffer>>;

/** A text column that is never null. */
export function textOf(row: SqliteRow, column: string): string {
  return row[column] as string;
}

type LoadModule = (name: string) => unknown;

function builtinModule(name: string): unknown {
  return globalThis.process?.getBuiltinModule?.(name);
}

/** Opens a file with the runtime's own driver. */
export type OpenFile = (file: string) => SqliteHandle;

/**
 * The runtime's own driver.
 * @throws ConfigError where it has none (Node before 22.13).
 */
export function fileOpener(load: LoadModule = builtinModule): OpenFile {
  const sqlite = load('node:sqlite') as
    { readonly DatabaseSync: new (file: string) => SqliteHandle } | undefined;
  if (!sqlite) {
    throw new ConfigError(
      'sqliteStore: this runtime has no node:sqlite. Use Node >= 22.13, or pass a handle: ' +
        "import Database from 'libsql' (or 'better-sqlite3'), then sqliteStore(new Database('webhooks.db')).",
    );
  }
  return (file) => new sqlite.DatabaseSync(file);
}

/** `errcode` is node:sqlite's, `rawCode` libsql's, both perhaps extended; `code` is better-sqlite3's name. */
interface DriverError {
  readonly code?: unknown;
  readonly errcode?: unknown;
  readonly rawCode?: unknown;
}

/** SQLite's primary result codes (sqlite.org/rescode.html), by number and by the name that drivers give. */
const BUSY = { numbers: [5, 6], name: /^SQLITE_(?:BUSY|LOCKED)/ };
const CONSTRAINT = { numbers: [19], name: /^SQLITE_CONSTRAINT/ };

/** The owner's code has a transaction open on this handle: no BEGIN and no PRAGMA synchronous until it ends. */
const OPEN_TRANSACTION = /(?:within|inside) a transaction/;

function isResult(error: unknown, of: { numbers: readonly number[]; name: RegExp }): boolean {
  if (typeof error !== 'object' || error === null) return false;
  const { code, errcode, rawCode } = error as DriverError;
  const number = typeof errcode === 'number' ? errcode : rawCode;
  // The low byte is the primary code; the rest says more than is needed here.
  if (typeof number === 'number') return of.numbers.includes(number & 0xff);
  return typeof code === 'string' && of.name.test(code);
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
