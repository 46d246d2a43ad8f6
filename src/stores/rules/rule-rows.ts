// The rows of a store and the interface by which the rules read and write them (admission.md §8.1).
// Memory, SQLite and the optimistic store implement it; every other file of this folder uses it.
import type {
  ClaimedState,
  ClaimedWindow,
  InboxCount,
  InboxQuery,
  Pressure,
  RegistrationKind,
  RegistrationRow,
  TaskClaim,
} from '../store.ts';
import type { EventChannel } from '../../events/event.ts';

/**
 * The rows that the rules read and write, with a method to get and one to save each kind. The rules use it inside one
 * atomic, synchronous step. Memory and SQLite read all rows directly. For every other backend these are the loaded
 * rows with the plan's own changes (`stores/optimistic/plan-rows.ts`). Every read ignores expired rows.
 */
export interface Rows {
  nonce(id: NonceId, now: number): NonceRow | undefined;
  /** Inserts or replaces; a new nonce is added to the count. */
  saveNonce(row: NonceRow): void;
  record(sender: string, key: string, now: number): RecordRow | undefined;
  /** Returns the stored first copy. It is kept while the record is unfinished or DEAD. */
  body(sender: string, key: string): Uint8Array;
  insertRecord(row: RecordRow, body?: Uint8Array): void;
  /** Replaces a record; drops the body if `bodyBytes` is 0. */
  updateRecord(row: RecordRow): void;
  task(sender: string, id: string, now: number): TaskRow | undefined;
  saveTask(row: TaskRow): void;
  /** Returns the oldest record of the task with `parkedUntil` over 0. */
  parked(sender: string, taskId: string): RecordRow | undefined;
  notification(sender: string, id: string, now: number): NotificationRow | undefined;
  saveNotification(row: NotificationRow): void;
  registration(kind: RegistrationKind, sender: string, id: string, now: number): RegistrationRow | undefined;
  /**
   * Names the rows of a sender that are read or written next, so that one query loads them all. Absent if all rows
   * can be read directly.
   */
  needRows?(sender: string, rows: readonly NeededRow[]): void;
  /** Inserts or replaces. */
  saveRegistration(row: RegistrationRow, now: number): void;
  usage(sender: string, keyid: string | undefined): Usage;
  /**
   * True if the row of a process has not expired. A commit does not check that this is still so: it is a hint
   * (admission.md §4.6).
   */
  isProcessAlive(id: string, now: number): boolean;
  /** Inserts or replaces; deletes the rows of processes that have expired. */
  saveProcess(row: ProcessRow, now: number): void;
  /** Deletes a few expired rows of any sender. It deletes more than one accept adds, so that growth is bounded. */
  purge(now: number): void;
  /**
   * Deletes expired rows of one sender: of each kind `atLeast` rows, or all if there are fewer. With `lately` nothing
   * need be done if that was done in the last 10 s.
   */
  purgeSender(sender: string, now: number, atLeast: number, lately?: 'lately'): void;
  /** Deletes expired nonces in the same way: those of a sender or key id, or of all if `of` is undefined. */
  purgeNonces(now: number, atLeast: number, of: NonceOwner | undefined, lately?: 'lately'): void;
}

/** A row that may have to be loaded from the backend. */
export interface NeededRow {
  readonly kind: RegistrationKind | 'record';
  /** The key of a record, or the id of another row. */
  readonly id: string;
}

/** Rows that can be searched in the same atomic step. */
export interface QueueRows extends Rows {
  /**
   * Returns the next record that is acknowledged, due at `now` (`dueAt`), and no suspect. Senders with due records
   * take turns from call to call. Within a sender the record due earliest comes first, then the oldest.
   */
  due(now: number): RecordRow | undefined;
  /** Returns the time at which the earliest such record is or was due. Unix ms. */
  nextDue(): number | undefined;
  /** Returns the suspect due at `now` that has the fewest crashes, then the oldest. */
  dueSuspect(now: number): RecordRow | undefined;
  /** Returns the time at which the earliest suspect is or was due. Unix ms. */
  nextSuspect(): number | undefined;
  /** Returns unexpired records in one state, oldest first. */
  page(query: InboxQuery, now: number): RowPage;
  /** Counts unexpired records by sender and state. */
  counts(now: number): readonly InboxCount[];
}

/** A sender's nonces: those of one key id, or of all if none is named. */
export interface NonceOwner {
  readonly sender: string;
  readonly keyid?: string;
}

interface KeyOwner extends NonceOwner {
  readonly keyid: string;
}

/**
 * The identity of a nonce. It is unique for a key id, and a key id for its sender: two senders may publish the same
 * key id.
 */
export interface NonceId extends KeyOwner {
  readonly nonce: string;
}

export interface NonceRow extends NonceId {
  /** The key of the event that used it; null if the body gave none. */
  readonly key: string | null;
  /** The id of the accept that saved it. */
  readonly acceptId: string;
  /** Unix ms, like every instant here. */
  readonly expiresAt: number;
}

/** A page of records. `next` is the `after` of the following page; absent on the last one. */
export interface RowPage {
  readonly rows: readonly RecordRow[];
  readonly next?: string;
}

/** The state of a record. DONE is two states, by how it ended: `applied` and `stale`. */
export type RecordState = 'queued' | 'leased' | 'applied' | 'stale' | 'dead';

/**
 * The answer to the accept that last inserted, claimed or ended a record. `waiting`: no answer to repeat, so a
 * repeated accept is decided anew.
 */
export type Claim = 'won' | 'queued' | 'stale' | 'died' | 'waiting';

export interface RecordRow {
  readonly sender: string;
  readonly key: string;
  readonly state: RecordState;
  readonly claim: Claim;
  readonly claimedBy: string;
  /**
   * The owner of the last lease, kept after its end so that `complete` and `fail` can be repeated; null before the
   * first.
   */
  readonly owner: string | null;
  /** The number of leases so far. No rule depends on it (admission.md §4.3). */
  readonly runs: number;
  readonly leaseUntil: number;
  readonly attempts: number;
  readonly crashes: number;
  /** True after a crash ended one of its leases: the next crash is charged (admission.md §4.6). */
  readonly suspect: boolean;
  /** The process of the last lease; null: unknown. */
  readonly process: string | null;
  /** The process whose crash was charged last; null: none, or the charge was taken back. */
  readonly crashedIn: string | null;
  /** True if it is safe: a sender has got a 2xx for it, or may get one. */
  readonly acked: boolean;
  readonly insertedAt: number;
  /**
   * QUEUED: workers do not lease it before this time. LEASED: 0 if this lease has raised `attempts`; otherwise the
   * value from before the lease. Unix ms.
   */
  readonly notBefore: number;
  /**
   * A worker found its task held: workers do not lease it before this time, unless the task is freed. 0: it does not
   * wait for its task. Unix ms.
   */
  readonly parkedUntil: number;
  /** The error that the last failed run reported. */
  readonly lastError: string | null;
  readonly rawHash: string;
  readonly canonicalHash: string | null;
  readonly traceparent?: string | undefined;
  /** Deleted together with the body. */
  readonly url?: string | undefined;
  readonly task: TaskClaim | null;
  /** These members, and `windows` and `claimedState`, are part of the answer to the last claim. */
  readonly reemission: boolean;
  readonly afterTerminal: boolean;
  readonly ahead: boolean;
  readonly afterFinal: boolean;
  /** The windows that a report claims; null once it is done (owed.md §3.1). */
  readonly windows: readonly ClaimedWindow[] | null;
  /** The state that a notification reported; null once it is done (owed.md §6.1). */
  readonly claimedState: ClaimedState | null;
  /** Length of the stored body; 0 once the body is deleted. */
  readonly bodyBytes: number;
  /** null: never. */
  readonly expiresAt: number | null;
}

export interface TaskRow {
  readonly sender: string;
  readonly id: string;
  /** The key of the record that leased the task last. `holderOf` decides if that record still holds the task. */
  readonly holder: string | null;
  /** `instantKey` of the newest applied status; null if none was applied. */
  readonly mark: string | null;
  /** True if that status is terminal. */
  readonly markTerminal: boolean;
  /** The first terminal status; null: none. */
  readonly terminal: FirstTerminal | null;
  /** The last applied status, if several channels report on the task; null: none, or no channel was named. */
  readonly told: LastTold | null;
  readonly expiresAt: number;
}

/** The status that was applied last. */
export interface LastTold {
  readonly status: string;
  /** The time at which its event was completed, on the store's clock. Unix ms. */
  readonly at: number;
  /** The status whose time is the task's `mark`. */
  readonly marked?: { readonly instant: string; readonly status: string; readonly source: EventChannel };
}

/** A task's first terminal status (admission.md §5.4). */
export interface FirstTerminal {
  /** The key of the event that brought it. */
  readonly key: string;
  /** `EventClaim.terminalHash`; '' if it had none. */
  readonly hash: string;
  /** `open`: not applied yet. */
  readonly state: 'open' | 'applied';
  /** The channel that reported it; absent if its claim named none. `task`: the id of its task, if it named one. */
  readonly told?: { readonly source: EventChannel; readonly hash?: string; readonly task?: string };
}

export interface NotificationRow {
  readonly sender: string;
  readonly id: string;
  /** The key of the event that brought the id first. */
  readonly key: string;
  /**
   * `instantKey` of the final report's time, in the row of a media buy. Null if that report had no time, and in the
   * row of a notification id.
   */
  readonly instant: string | null;
  readonly expiresAt: number;
}

/** A process that has reported itself alive. */
export interface ProcessRow {
  readonly id: string;
  readonly expiresAt: number;
}

export interface Usage {
  /** Records, tasks and notification ids of the sender. */
  readonly entries: number;
  readonly pendingBytes: number;
  /** Nonces of the (sender, key id); 0 if no key id was asked for. */
  readonly nonces: number;
  /** Nonces of all key ids of the sender. */
  readonly senderNonces: number;
  readonly allNonces: number;
}

/** The member of `Usage` that each pressure compares. */
export const PRESSURE_USAGE: Record<Pressure, keyof Usage> = {
  records: 'entries',
  'pending-bytes': 'pendingBytes',
  nonces: 'nonces',
  'sender-nonces': 'senderNonces',
  'all-nonces': 'allNonces',
};
