// The interface that a database implements for `storeOf`: rows, versions and times, without the rules of `Store`
// (admission.md §8.1).
// Implemented by Postgres, MySQL and Redis, and by users; called by the optimistic store alone. Types only.
import type { Durability, InboxQuery, RegistrationKind, StoreIdentity, TransactionRequest } from './store.ts';

/**
 * The operations of a database that `storeOf` needs: read rows, replace those that are unchanged, and find those
 * that are due. You implement it for a database that this package has no store for. Unstable: members may change in
 * any release.
 *
 * The rules of `Store` are not part of it. `storeOf` reads rows, decides by them and calls `commit` with the
 * changes. A change takes effect only if the rows that it was decided by are unchanged (optimistic locking).
 *
 * Words that the members use:
 *
 * - A *row* is an event's record, the state of a task, a nonce, or another item of `RowKind`. It is named by its
 *   scope, kind and id. It has a version, which its writer chooses and never reuses.
 * - A *scope* is a set of rows that is counted, and cleared of expired rows, by itself. It is the rows of one sender,
 *   or the nonces of one of its key ids.
 * - A *unit* is a group of changes that take effect together or not at all.
 * - A row is *due* when its `dueAt` has come: a worker may then run its event.
 * - A *suspect* is an event whose run ended by a crash. It is due separately, because it must run alone.
 *
 * Rules:
 *
 * - `commit` takes each unit whole or not at all: it takes it if each of its rows has the version that the unit
 *   expects. All units that it takes are one commit, as durable as `durability()` says. A unit without a write makes
 *   a commit too, because an answer depends on it.
 * - Rows whose `expiresAt` is over stay until `sweep` deletes them, and are read, compared and written like others.
 * - The backend counts, per scope, the rows and the sum of their `bytes`, and the nonces over all scopes. Counts that
 *   `commit` and later calls return include all that was written and deleted before.
 */
export interface Backend<Tx = unknown> {
  /** The name for logs, e.g. `postgres`. */
  readonly name: string;
  /** The number of batches that may run at the same time: one is prepared while another is written. */
  readonly concurrency: number;
  /** True if all units of one `commit`, and all rows of one `load`, must belong to one sender. */
  readonly bySender: boolean;
  /** The longest time that a call waits for a connection or a free batch before it fails, ms. */
  readonly timeoutMs: number;
  /** Opens the backend and checks schema, settings and rights. Idempotent. */
  open(): Promise<void>;
  /** Reads the durability from the database's settings, as `Store.durability`. */
  durability(): Promise<Durability | 'unknown'>;
  /** Returns the identity, as `Store.identity`. Absent if the database has none. */
  readonly identity?: () => Promise<StoreIdentity>;
  /** Watches the durability of commits, as `Store.keepDurability`. Absent if a commit does not show its durability. */
  readonly keepDurability?: (required: Durability, lowered: (message: string) => void) => void;
  /** Watches the identity, as `Store.watchIdentity`. Absent if the backend cannot check it. */
  readonly watchIdentity?: (changed: (identity: StoreIdentity) => void) => void;
  /** Returns the settings that the operator has to change if `durability()` is too weak, in one sentence. */
  advice(): string;
  /** Returns the store's clock, Unix ms. */
  clock(): Promise<number>;
  /** Applies each unit of changes whole or not at all. All units that it applies are one commit of the database. */
  commit(request: CommitRequest): Promise<CommitResult>;
  /** Reads rows by their names. */
  load(request: LoadRequest): Promise<LoadResult>;
  /**
   * Returns rows that are due at the store's clock, with their bodies and the rows that belong to them
   * (`LoadResult`). Each returned row is due again after `holdMs` if nobody writes it, so that two workers do not
   * take the same row.
   *
   * Senders take turns by name, from the one after `after`: the earliest row of each, then the second of each.
   */
  due(request: DueRequest): Promise<DueResult>;
  /** Returns a page of the rows on one of the lists for operators (`Write.list`), oldest first. */
  page(query: InboxQuery): Promise<Page>;
  /**
   * Counts the unexpired rows on each list for operators (`Write.list`), by sender. Absent if the backend cannot count
   * them.
   */
  listCounts?(): Promise<readonly ListCount[]>;
  /** Finds the rows of `Store.registrations`; neither method writes. Absent if the store keeps no registrations. */
  readonly registrations?: {
    /**
     * Returns the rows of a kind that are due at the store's clock, i.e. the instant in `Write.waitsFor` has come.
     * Senders take turns as in `due`, each with its earliest row first.
     */
    due(request: TurnRequest): Promise<TurnResult>;
    /**
     * Returns at most `limit` rows of one kind, in the order of sender and id. They begin after the row that `after`
     * names. Expired rows are included.
     */
    list(request: ListRequest): Promise<readonly Row[]>;
  };
  /**
   * Returns the ms for which the row that came due first has been due. Suspects are included. Undefined if no row is
   * due.
   */
  overdueMs(): Promise<number | undefined>;
  /**
   * Deletes at most `most` expired rows of a scope, or expired nonces of a sender or of all senders (`nonces`).
   * @returns the number of deleted rows.
   */
  sweep(of: Scope | NoncesOf | 'nonces', most: number): Promise<number>;
  /**
   * Runs `work` in a transaction of the database, with `within` to read and write rows inside it. It commits if
   * `work` resolves; otherwise it rolls back and rejects with the error.
   *
   * If `over` aborts, `work` may still write on `tx`, so no other caller may receive that connection.
   */
  readonly transaction?: <T>(
    request: TransactionRequest,
    work: (tx: Tx, within: Within) => Promise<T>,
    over?: AbortSignal,
  ) => Promise<T>;
  /**
   * Returns true if a `commit` of several units may have failed because of the contents of one of them. Each unit is
   * then committed alone.
   */
  isAboutOne(error: unknown): boolean;
  /** Converts an error to the one that callers see: a `Fault` or a ConfigError. */
  asFault(error: unknown): Error;
  /** Releases the backend. It is called when no operation is running. */
  close(): Promise<void>;
}

/**
 * The operations of a `Backend` that `Backend.transaction` passes to its function. They read and write inside the
 * running database transaction.
 */
export type Within = Pick<Backend, 'commit' | 'load' | 'sweep' | 'isAboutOne'>;

/**
 * The kind of a row that a `Backend` keeps, e.g. `record` for an event or `nonce` for a signature's nonce. Later
 * releases may add kinds.
 */
export type RowKind = 'record' | 'task' | 'nonce' | 'notification' | 'process' | RegistrationKind;

/**
 * A set of rows of a `Backend` that is counted, and cleared of expired rows, by itself. It is either all rows of a
 * sender except nonces, or the nonces of one of its key ids. The sender '' has the rows of processes, and registrations
 * that belong to no single sender.
 */
export interface Scope {
  readonly sender: string;
  readonly keyid?: string;
}

/**
 * The name of a row in a `Backend`, as requests and rows contain it. Scope, kind and id together are unique in the
 * store.
 */
export interface RowId {
  readonly scope: Scope;
  readonly kind: RowKind;
  /** The id, at most 512 characters. */
  readonly id: string;
}

/** A row as a `Backend` returns it: its name, version, text, and for an event its body. */
export interface Row extends RowId {
  /** The version that its last writer chose (`Write.next`). */
  readonly version: number;
  /** The text that was written. The backend does not interpret it. */
  readonly data: string;
  readonly body?: Uint8Array;
}

/**
 * The version that a row of a `Backend` must still have for a unit of a commit to take effect (optimistic locking).
 * It is a member of `Unit.expects`. If `version` is undefined, the row must not exist.
 */
export interface Expected extends RowId {
  readonly version: number | undefined;
}

/**
 * A row that `Backend.commit` inserts or replaces, if it still has the expected version. It contains the new text
 * and the values that the backend indexes. `body` keeps its value if it is undefined.
 */
export interface Write extends Expected {
  /** The new version of the row. */
  readonly next: number;
  readonly data: string;
  /** The body; null deletes it, undefined keeps it. */
  readonly body: Uint8Array | null | undefined;
  /** The time of expiry, Unix ms; null: never. */
  readonly expiresAt: number | null;
  /** The time from which workers may take the row, Unix ms; null: never, or the row is a suspect. */
  readonly dueAt: number | null;
  /** Set if the row is a suspect that workers may take; otherwise null. */
  readonly suspect: DueSuspect | null;
  /** The list for operators that contains the row; null: none. */
  readonly list: InboxQuery['state'] | null;
  /**
   * The id of the task that the row waits for. For a due row of a registration, it is a text of the due time, so that
   * such rows are found. The text is U+0001, the letter of the kind, and Unix ms as 16 digits.
   */
  readonly waitsFor: string | null;
  /**
   * The id of a related row: for a record its task, for a task the record that holds it. For a registration it is
   * the name of its list.
   */
  readonly link: string | null;
  /** The bytes that are counted for the row; `bytesBefore` were counted for the row that it replaces. */
  readonly bytes: number;
  readonly bytesBefore: number;
  /** The values of the replaced row, for backends that maintain an index themselves. */
  readonly before: Pick<Write, 'dueAt' | 'suspect' | 'list' | 'waitsFor' | 'expiresAt'> | undefined;
}

/**
 * The time from which a suspect may run, Unix ms, and the number of crashes charged to it: the member `suspect` of a
 * `Write`. A suspect is an event whose run ended by a crash. Those with the fewest crashes run first.
 */
export interface DueSuspect {
  readonly at: number;
  readonly crashes: number;
}

/**
 * A group of changes that `Backend.commit` makes together or not at all. It takes effect only if every row in it has
 * the expected version. No two units of one request write the same row.
 */
export interface Unit {
  /** The rows on which the changes depend without writing them, each with the version that it must have. */
  readonly expects: readonly Expected[];
  readonly writes: readonly Write[];
}

/**
 * The number of rows and bytes that one scope (a sender, or one of its key ids) uses, as `Backend.load` counts them.
 * `storeOf` compares them with `StoreLimits`.
 */
export interface Counted {
  readonly scope: Scope;
  readonly rows: number;
  readonly bytes: number;
  /** The nonces of all key ids, present if the scope is a sender's. */
  readonly nonces?: number;
}

/** Selects the nonces of one sender, over all its key ids, of which `Backend.sweep` deletes the expired ones. */
export interface NoncesOf {
  readonly noncesOf: string;
}

/**
 * Groups of changes for `Backend.commit` to write in one commit of the database. Each group takes effect or is
 * refused independently of the others. `counts` names the scopes whose size the result reports.
 */
export interface CommitRequest {
  /**
   * The store's clock when the changes were decided, Unix ms. The commit is refused if `at` is in the future or too
   * old. It may be 1 s old, or 1 ms for each row of the units if that is more.
   */
  readonly at: number;
  readonly units: readonly Unit[];
  /** The scopes whose counts are to be returned, together with the count of all nonces. */
  readonly counts: readonly Scope[];
}

/**
 * The result of `Backend.commit`: the groups of changes that were refused because a row had changed, with the
 * present state of those rows.
 */
export interface CommitResult extends LoadResult {
  /** True if `at` was too old or in the future, so that nothing was done. */
  readonly isOld: boolean;
  /** The positions of the refused units in the request. The existing rows of these units are in `rows`. */
  readonly refused: readonly number[];
}

/** The rows that `Backend.load` is to read, by scope, kind and id, and the scopes whose size it is to count. */
export interface LoadRequest {
  readonly rows: readonly RowId[];
  /** The rows to read with their bodies. */
  readonly bodies: readonly RowId[];
  readonly counts: readonly Scope[];
}

/**
 * Rows that a `Backend` has read, with its clock and the requested counts. A requested row that is missing here does
 * not exist.
 */
export interface LoadResult {
  /** The store's clock, Unix ms. */
  readonly now: number;
  /**
   * The rows, with those that are usually needed next. A record comes with its task. A task comes with the record
   * that holds it, and with the two oldest records that wait for it, oldest first. If fewer than two come, no
   * others wait.
   */
  readonly rows: readonly Row[];
  readonly counts: readonly Counted[];
  /** The number of nonces in all scopes; undefined if no counts were requested. */
  readonly nonces: number | undefined;
}

/**
 * Asks `Backend.due` for events whose handlers may run now. Each returned row is withheld from other callers for
 * `holdMs`.
 */
export interface DueRequest {
  /**
   * True: returns only suspects, of any sender: the fewest crashes first, then the oldest. False: returns no suspects.
   */
  readonly suspects: boolean;
  readonly max: number;
  readonly holdMs: number;
  /**
   * The longest time for which a row may wait, ms. A row that is due even later counts as due now, because the store's
   * clock was set back. Such rows come after the other due rows.
   */
  readonly longestMs: number;
  /** Senders to consider in addition to those that the backend knows. */
  readonly senders: readonly string[];
  /** The sender that had the last turn in the previous call; '' in the first call. */
  readonly after: string;
}

/**
 * The rows of events whose handlers may run now, as `Backend.due` returns them, with the rows of their tasks. `due`
 * names the events in the order in which they run.
 */
export interface DueResult extends LoadResult {
  /** The names of those `rows` that are due, in the order in which they are taken. */
  readonly due: readonly RowId[];
  /**
   * The time until the next row that is not a suspect comes due, ms. Undefined if none is known, or if suspects
   * were requested.
   */
  readonly nextDueMs: number | undefined;
  /**
   * True if a suspect is due that is not in the result. A backend that queries senders one after another, until it
   * has `max` rows, may leave the suspects of the others to a later call.
   */
  readonly isSuspectDue: boolean;
}

/**
 * One page of events from `Backend.page`, oldest first. Pass `next`, 1 to 16 digits, as `after` to get the next
 * page; it is absent on the last page.
 */
export interface Page {
  readonly rows: readonly Row[];
  readonly next?: string;
}

/** The unexpired rows of a sender on one list: how many, at least one, and the oldest. */
export interface ListCount {
  readonly list: InboxQuery['state'];
  readonly count: number;
  readonly oldest: Row;
}

/** Asks `Backend.registrations.due` for rows of one kind whose time has come, e.g. tasks to poll next. */
export interface TurnRequest extends Pick<DueRequest, 'max' | 'longestMs' | 'senders' | 'after'> {
  readonly kind: RegistrationKind;
}

/**
 * The rows whose time has come, as `Backend.registrations.due` returns them, e.g. tasks to poll, in the order in
 * which they are to be processed.
 */
export interface TurnResult {
  /** The store's clock, Unix ms. */
  readonly now: number;
  readonly rows: readonly Row[];
  /**
   * The time until the next row that is not in the result comes due, ms; 0 if one is due. Undefined if none is
   * known.
   */
  readonly nextDueMs: number | undefined;
}

/**
 * Selects the rows of `createRegistrations` and pollers that `Backend.registrations.list` returns: those of one
 * kind, and of one sender or list if given. They begin after the last row of the previous page.
 */
export interface ListRequest {
  readonly kind: RegistrationKind;
  /** The `link` of the rows; undefined: all rows. */
  readonly list: string | undefined;
  /** The sender of the rows; undefined: all senders but ''. */
  readonly sender: string | undefined;
  readonly limit: number;
  /** The sender and id of the row after which the result begins; undefined: from the first row. */
  readonly after: { readonly sender: string; readonly id: string } | undefined;
}
