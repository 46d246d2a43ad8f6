import type { Durability, InboxQuery, RegistrationKind, StoreIdentity, TransactionRequest } from './store.ts';

/**
 * What a database has to do for `storeOf`: keep rows, compare and set them, find those that are due. It knows no rule:
 * what is written is planned outside (`rules/`), over rows that were read or guessed, and holds only where they are
 * still as they were. Unstable: members may change in any release.
 *
 * - A row is named by its scope, kind and id, and has a version, which its writer makes up and never repeats.
 * - `commit` takes each unit whole or not at all: where each of its rows has the version that the unit expects. All
 *   that it takes is one commit, as durable as `durability()` says; a unit without a write makes one too, for an answer
 *   rests on it.
 * - Rows whose `expiresAt` is over stay until `sweep` deletes them, and are read, compared and written like others.
 * - `bytes` and rows are counted by scope, and nonces over all scopes too; what `commit` and `sweep` answer has the
 *   change in it.
 */
export interface Backend<Tx = unknown> {
  /** e.g. `postgres`: for logs. */
  readonly name: string;
  /** Batches under way at once: one is prepared while another is written. */
  readonly concurrency: number;
  /** Whether the units of one `commit`, and the rows of one `load`, are of one sender. */
  readonly bySender: boolean;
  /** A call that waited so long for its turn is given up. Ms. */
  readonly timeoutMs: number;
  /** Opens, checks schema, settings and rights. Idempotent. @throws ConfigError with the fix. */
  open(): Promise<void>;
  /** `Store.durability`: read from the backend's settings. */
  durability(): Promise<Durability | 'unknown'>;
  /** `Store.identity`, where it has one. */
  readonly identity?: () => Promise<StoreIdentity>;
  /** `Store.keepDurability`, where a commit can say what it rests on. */
  readonly keepDurability?: (required: Durability, lowered: (message: string) => void) => void;
  /** `Store.watchIdentity`, where it can look. */
  readonly watchIdentity?: (changed: (identity: StoreIdentity) => void) => void;
  /** For the owner whose `durability()` is too weak: the settings to change. One sentence. */
  advice(): string;
  /** The store's clock. Unix ms. */
  clock(): Promise<number>;
  /** Takes each unit whole or not at all, all in one commit. */
  commit(request: CommitRequest): Promise<CommitResult>;
  /** Reads rows by their names. */
  load(request: LoadRequest): Promise<LoadResult>;
  /**
   * Rows that are due at the store's clock, with their bodies and what comes with them (`LoadResult`). Senders take
   * turns, by their names from the one behind `after` on: the earliest of each, then the second of each. Each row that is
   * given is due again after `holdMs` if nobody writes it: so two workers do not plan for the same one.
   */
  due(request: DueRequest): Promise<DueResult>;
  /** Rows of one list, oldest first. */
  page(query: InboxQuery): Promise<Page>;
  /** For `Store.registrations`; absent where there are to be none. Both read only. */
  readonly registrations?: {
    /**
     * Rows of a kind that are due at the store's clock: those whose `waitsFor` (`Write.waitsFor`) says an instant that has come.
     * Senders take turns, as in `due`, of each its earliest first.
     */
    due(request: TurnRequest): Promise<TurnResult>;
    /** Rows of a kind behind a name, by sender and id, expired ones too, at most `limit`. */
    list(request: ListRequest): Promise<readonly Row[]>;
  };
  /** How long the row has been due that came due first, suspects too. Ms; undefined where none is due. */
  overdueMs(): Promise<number | undefined>;
  /** Deletes at most `most` expired rows of a scope, or nonces of a sender, or of any (`nonces`). @returns how many. */
  sweep(of: Scope | NoncesOf | 'nonces', most: number): Promise<number>;
  /**
   * Runs `work` in a transaction of the backend's own, `within` it, and commits it where that resolves; else rolls back
   * and rejects with what it threw. A `work` that was left because `over` aborted may go on writing on `tx`: nobody
   * else may get that.
   */
  readonly transaction?: <T>(
    request: TransactionRequest,
    work: (tx: Tx, within: Within) => Promise<T>,
    over?: AbortSignal,
  ) => Promise<T>;
  /** Whether a `commit` of several units may have failed because of what one of them holds. */
  isAboutOne(error: unknown): boolean;
  /** What callers see of an error: `Fault` or ConfigError. */
  asFault(error: unknown): Error;
  /** Releases the backend. Nothing is under way. */
  close(): Promise<void>;
}

/** What plans are made with. */
export type Within = Pick<Backend, 'commit' | 'load' | 'sweep' | 'isAboutOne'>;

/** What a row is of. Others may come. */
export type RowKind = 'record' | 'task' | 'nonce' | 'notification' | 'process' | RegistrationKind;

/** A sender, or one key id of it (nonces); sender '': processes, and registrations of no one sender. Counted and swept by itself. */
export interface Scope {
  readonly sender: string;
  readonly keyid?: string;
}

/** A row's name: unique in the store. */
export interface RowId {
  readonly scope: Scope;
  readonly kind: RowKind;
  /** At most 512 characters, as `fitted` makes them. */
  readonly id: string;
}

/** A row as it is. */
export interface Row extends RowId {
  readonly version: number;
  /** What was written: text, opaque to the backend. */
  readonly data: string;
  readonly body?: Uint8Array;
}

/** A row that has to be as it was read; `version` undefined: absent. */
export interface Expected extends RowId {
  readonly version: number | undefined;
}

/** A row to be written; what is not named stays. */
export interface Write extends Expected {
  /** Its new version. */
  readonly next: number;
  readonly data: string;
  /** null: dropped; undefined: stays. */
  readonly body: Uint8Array | null | undefined;
  /** Unix ms; null: never. */
  readonly expiresAt: number | null;
  /** When workers are to look at it, Unix ms; null: never, or it is a suspect. */
  readonly dueAt: number | null;
  /** Of a suspect that workers are to look at; null: it is none. */
  readonly suspect: DueSuspect | null;
  /** The list that it is on, for operators. */
  readonly list: InboxQuery['state'] | null;
  /** Id of the task that it waits for; of a row of a registration that is due, its instant: U+0001, the first letter of the kind, Unix ms as 16 digits. */
  readonly waitsFor: string | null;
  /** Of a record the id of its task, of a task that of the record which holds it, of a registration what it is listed as. */
  readonly link: string | null;
  /** Counted of it, and of the row in whose place it comes. */
  readonly bytes: number;
  readonly bytesBefore: number;
  /** What the row in whose place it comes said of these, for backends that keep an index by hand. */
  readonly before: Pick<Write, 'dueAt' | 'suspect' | 'list' | 'waitsFor' | 'expiresAt'> | undefined;
}

/** When a suspect is due, Unix ms, and what its turn goes by. */
export interface DueSuspect {
  readonly at: number;
  readonly crashes: number;
}

/** Rows that are taken together. No two units of a request write the same row. */
export interface Unit {
  /** Only read. */
  readonly expects: readonly Expected[];
  readonly writes: readonly Write[];
}

/** Rows and bytes of a scope. */
export interface Counted {
  readonly scope: Scope;
  readonly rows: number;
  readonly bytes: number;
  /** Told of a sender: the nonces of all its key ids. */
  readonly nonces?: number;
}

/** Nonces of all key ids of a sender, to be swept. */
export interface NoncesOf {
  readonly noncesOf: string;
}

/** Units to be taken, each by itself, in one commit. */
export interface CommitRequest {
  /** The store's clock as the plan had it; refused where it is over 1 s old or ahead. Unix ms. */
  readonly at: number;
  readonly units: readonly Unit[];
  /** To be told what is counted of these, and of all nonces. */
  readonly counts: readonly Scope[];
}

/** What came of the units. */
export interface CommitResult extends LoadResult {
  /** `at` was too old, or ahead: nothing was done. */
  readonly isOld: boolean;
  /** Places of the units that were not taken; their rows are in `rows`, those that exist. */
  readonly refused: readonly number[];
}

/** Rows to be read, by name. */
export interface LoadRequest {
  readonly rows: readonly RowId[];
  /** With their bodies. */
  readonly bodies: readonly RowId[];
  readonly counts: readonly Scope[];
}

/** A row that was asked for and is not here is absent. */
export interface LoadResult {
  /** The store's clock. Unix ms. */
  readonly now: number;
  /**
   * With a record comes its task, with a task the record that holds it and the two oldest of those that wait for it
   * (the oldest first): what a plan usually asks for next. So with every task, also one that came with a record: where
   * fewer than two come, no more wait.
   */
  readonly rows: readonly Row[];
  readonly counts: readonly Counted[];
  /** Of all scopes; undefined where no counts were asked for. */
  readonly nonces: number | undefined;
}

/** How many due rows a worker wants. */
export interface DueRequest {
  /** Suspects alone, the one with the fewest crashes first, of those the oldest, of any sender; else none. */
  readonly suspects: boolean;
  readonly max: number;
  readonly holdMs: number;
  /**
   * Rows that would come due later than so long from now are due too, behind those whose time has come: by the other end of
   * the same index. Ms.
   */
  readonly longestMs: number;
  /** Beside those that the backend knows. */
  readonly senders: readonly string[];
  /** The sender whose turn was last; '' before the first. */
  readonly after: string;
}

/** Due rows, and what comes with them. */
export interface DueResult extends LoadResult {
  /** Those of `rows` that are due, in the order in which they are to be taken. */
  readonly due: readonly RowId[];
  /** Ms until the next one that is not a suspect comes due; undefined where none is known to, or suspects were asked for. */
  readonly nextDueMs: number | undefined;
  /** A suspect is due that was not given. */
  readonly isSuspectDue: boolean;
}

/** `next`: the `after` of the page behind it, 1 to 16 digits; absent on the last one. */
export interface Page {
  readonly rows: readonly Row[];
  readonly next?: string;
}

/** How many due rows of registrations are looked for. */
export interface TurnRequest extends Pick<DueRequest, 'max' | 'longestMs' | 'senders' | 'after'> {
  readonly kind: RegistrationKind;
}

/** Due rows, in the order in which they are to be taken. */
export interface TurnResult {
  /** The store's clock. Unix ms. */
  readonly now: number;
  readonly rows: readonly Row[];
  /** Ms until the next one comes due that is not among them, 0 where one is; undefined where none is known to. */
  readonly nextDueMs: number | undefined;
}

/** Which rows of registrations are listed. */
export interface ListRequest {
  readonly kind: RegistrationKind;
  /** Those with this `link`; undefined: all. */
  readonly list: string | undefined;
  /** undefined: all but ''. */
  readonly sender: string | undefined;
  readonly limit: number;
  /** Names of scope and row; undefined: from the first. */
  readonly after: { readonly sender: string; readonly id: string } | undefined;
}
