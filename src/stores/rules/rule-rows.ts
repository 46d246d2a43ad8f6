// Defines the rows of a store, and the interface by which the rules read and write them (admission.md §8.1).
// Memory, SQLite and the optimistic store implement the interface; every other file of this folder uses it.
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
 * The rows that the rules read and write, with a method to get and one to save each kind. The rules use them inside one
 * atomic, synchronous step. Memory and SQLite read all rows directly. For every other backend, `Rows` shows the rows
 * that were loaded and the changes of the present step (`stores/optimistic/plan-rows.ts`). Every read ignores expired
 * rows.
 */
export interface Rows {
  nonce(id: NonceId, now: number): NonceRow | undefined;
  /** Inserts or replaces a nonce; a new one is added to the count of nonces. */
  saveNonce(row: NonceRow): void;
  record(sender: string, key: string, now: number): RecordRow | undefined;
  /** Returns the stored first copy of an event's body. It is kept while the record is unfinished or DEAD. */
  body(sender: string, key: string): Uint8Array;
  insertRecord(row: RecordRow, body?: Uint8Array): void;
  /** Replaces a record, and deletes its body if `bodyBytes` is 0. */
  updateRecord(row: RecordRow): void;
  task(sender: string, id: string, now: number): TaskRow | undefined;
  saveTask(row: TaskRow): void;
  /** Returns the oldest record that waits for the task (`parkedUntil` over 0); undefined if none waits. */
  parked(sender: string, taskId: string): RecordRow | undefined;
  notification(sender: string, id: string, now: number): NotificationRow | undefined;
  saveNotification(row: NotificationRow): void;
  registration(kind: RegistrationKind, sender: string, id: string, now: number): RegistrationRow | undefined;
  /**
   * Names the rows of a sender that will be read or written next, so that one query loads them all. Absent if all rows
   * can be read directly.
   */
  needRows?(sender: string, rows: readonly NeededRow[]): void;
  /** Inserts or replaces a row. */
  saveRegistration(row: RegistrationRow, now: number): void;
  usage(sender: string, keyid: string | undefined): Usage;
  /**
   * True if the process has reported itself alive, and its row has not expired. A commit does not check this again, so
   * the answer is only a hint (admission.md §4.6).
   */
  isProcessAlive(id: string, now: number): boolean;
  /** Inserts or replaces the row of a process, and deletes the rows of processes that have expired. */
  saveProcess(row: ProcessRow, now: number): void;
  /** Deletes a few expired rows of any sender: more than one accept adds, so that the number of rows stays bounded. */
  purge(now: number): void;
  /**
   * Deletes expired rows of one sender: at least `atLeast` rows of each kind, or all if there are fewer. With `lately`
   * nothing need be done if another call deleted expired rows of the sender in the last 10 s.
   */
  purgeSender(sender: string, now: number, atLeast: number, lately?: 'lately'): void;
  /**
   * Deletes expired nonces in the same way as `purgeSender`: those of a sender or a key id, or of all senders if `of`
   * is undefined.
   */
  purgeNonces(now: number, atLeast: number, of: NonceOwner | undefined, lately?: 'lately'): void;
}

/** A row that may have to be loaded from the backend. */
export interface NeededRow {
  readonly kind: RegistrationKind | 'record';
  /** The key of a record, or the id of another row. */
  readonly id: string;
}

/** The rows with searches for workers and operators, in the same atomic step. */
export interface QueueRows extends Rows {
  /**
   * Returns the next record for a worker: acknowledged, due at `now` (`dueAt`), and no suspect. Senders with due
   * records take turns from call to call. Within a sender, the record due earliest comes first, then the oldest.
   */
  due(now: number): RecordRow | undefined;
  /**
   * Returns the time at which the earliest record that `due` may return is or was due; undefined if there is none. Unix
   * ms.
   */
  nextDue(): number | undefined;
  /**
   * Returns the next suspect that is due at `now`: the one with the fewest crashes, then the oldest. A suspect is an
   * event whose run ended by a crash.
   */
  dueSuspect(now: number): RecordRow | undefined;
  /** Returns the time at which the earliest suspect is or was due; undefined if there is none. Unix ms. */
  nextSuspect(): number | undefined;
  /** Returns unexpired records in one state, oldest first. */
  page(query: InboxQuery, now: number): RowPage;
  /** Counts unexpired records by sender and state. */
  counts(now: number): readonly InboxCount[];
}

/** Selects nonces of a sender: the nonces of one key id, or of all its key ids if none is named. */
export interface NonceOwner {
  readonly sender: string;
  readonly keyid?: string;
}

interface KeyOwner extends NonceOwner {
  readonly keyid: string;
}

/**
 * The identity of a nonce. A nonce is unique for its key id, and a key id for its sender, because two senders may
 * publish the same key id.
 */
export interface NonceId extends KeyOwner {
  readonly nonce: string;
}

export interface NonceRow extends NonceId {
  /** The key of the event whose delivery used the nonce; null if the body named none. */
  readonly key: string | null;
  /** The id of the accept that first saved the nonce. */
  readonly acceptId: string;
  /** The time of expiry. Unix ms, like every time in this file. */
  readonly expiresAt: number;
}

/** A page of records. `next` is the `after` of the following page; absent on the last one. */
export interface RowPage {
  readonly rows: readonly RecordRow[];
  readonly next?: string;
}

/** The state of a record. DONE is two states: `applied` if the handler succeeded, otherwise `stale`. */
export type RecordState = 'queued' | 'leased' | 'applied' | 'stale' | 'dead';

/**
 * The answer to the accept that last inserted, leased or ended a record, so that the same accept gets it again if
 * repeated. `waiting`: a repeated accept is decided anew.
 */
export type Claim = 'won' | 'queued' | 'stale' | 'died' | 'waiting';

export interface RecordRow {
  readonly sender: string;
  readonly key: string;
  readonly state: RecordState;
  readonly claim: Claim;
  readonly claimedBy: string;
  /**
   * The owner of the last lease, kept after the lease ends so that `complete` and `fail` can be repeated; null before
   * the first lease.
   */
  readonly owner: string | null;
  /** The number of leases so far. No rule decides by it (admission.md §4.3). */
  readonly runs: number;
  readonly leaseUntil: number;
  readonly attempts: number;
  readonly crashes: number;
  /**
   * True after a crash ended one of the record's leases. Then the next crash is charged to the record (admission.md
   * §4.6).
   */
  readonly suspect: boolean;
  /** The process of the last lease; null: unknown. */
  readonly process: string | null;
  /** The process of the last crash that was charged to the record; null: none, or the charge was taken back. */
  readonly crashedIn: string | null;
  /** True once a sender has got a 2xx for the event, or may get one. */
  readonly acked: boolean;
  readonly insertedAt: number;
  /**
   * QUEUED: workers do not lease the record before this time. LEASED: 0 if the present lease has counted an attempt;
   * otherwise the value from before the lease. Unix ms.
   */
  readonly notBefore: number;
  /**
   * Workers do not lease the record before this time, because another record held its task. The wait ends early if the
   * task is freed. 0: the record does not wait for its task. Unix ms.
   */
  readonly parkedUntil: number;
  /** The error that the last failed run reported. */
  readonly lastError: string | null;
  readonly rawHash: string;
  readonly canonicalHash: string | null;
  readonly traceparent?: string | undefined;
  /** The URL of the delivery, deleted together with the body. */
  readonly url?: string | undefined;
  readonly task: TaskClaim | null;
  /** The following four members, with `windows` and `claimedState`, are returned with the record's lease. */
  readonly reemission: boolean;
  readonly afterTerminal: boolean;
  readonly ahead: boolean;
  readonly afterFinal: boolean;
  /**
   * The report windows whose data the event brings; null if there are none, or once the event is applied (owed.md
   * §3.1).
   */
  readonly windows: readonly ClaimedWindow[] | null;
  /** The state that the event's notification reported; null if none, or once the event is applied (owed.md §6.1). */
  readonly claimedState: ClaimedState | null;
  /** The length of the stored body; 0 once the body is deleted. */
  readonly bodyBytes: number;
  /** null: the record never expires. */
  readonly expiresAt: number | null;
}

export interface TaskRow {
  readonly sender: string;
  readonly id: string;
  /**
   * The key of the record that last got the task, by its lease or as the next to run. `holderOf` decides if that record
   * still holds the task.
   */
  readonly holder: string | null;
  /**
   * The time of the newest applied status, as a comparison key (`instantKey`); null if no status with a time was
   * applied.
   */
  readonly mark: string | null;
  /** True if the status whose time is `mark` is terminal. */
  readonly markTerminal: boolean;
  /** The first terminal status that any event reported; null: none. */
  readonly terminal: FirstTerminal | null;
  /** The last applied status of an event that names its channel (webhook, answer, poll); null: none. */
  readonly told: LastTold | null;
  readonly expiresAt: number;
}

/** The status of a task that was applied last. */
export interface LastTold {
  readonly status: string;
  /** The time at which the event with this status was completed, on the store's clock. Unix ms. */
  readonly at: number;
  /**
   * The last applied status that named its channel and set the task's `mark` (the time of the newest applied status).
   */
  readonly marked?: { readonly instant: string; readonly status: string; readonly source: EventChannel };
}

/** A task's first terminal status (admission.md §5.4). */
export interface FirstTerminal {
  /** The key of the event that first reported the terminal status. */
  readonly key: string;
  /** The `EventClaim.terminalHash` of that event; '' if it had none. */
  readonly hash: string;
  /** `open`: the status is not applied yet. */
  readonly state: 'open' | 'applied';
  /**
   * The channel that reported the status; absent if the event named none. `task`: the id of the task, if the event
   * named one.
   */
  readonly told?: { readonly source: EventChannel; readonly hash?: string; readonly task?: string };
}

export interface NotificationRow {
  readonly sender: string;
  readonly id: string;
  /** The key of the first event with this row's id. */
  readonly key: string;
  /**
   * In the row of a media buy: the time of its final report, as a comparison key (`instantKey`); null if the report had
   * no time. In the row of a notification id: null.
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
  /** The number of the sender's records, tasks, notification ids and registrations. */
  readonly entries: number;
  readonly pendingBytes: number;
  /** The number of nonces of one key id of the sender; 0 if no key id was given. */
  readonly nonces: number;
  /** The number of nonces of all key ids of the sender. */
  readonly senderNonces: number;
  readonly allNonces: number;
}

/** The member of `Usage` that is compared with the limit of each `Pressure`. */
export const PRESSURE_USAGE: Record<Pressure, keyof Usage> = {
  records: 'entries',
  'pending-bytes': 'pendingBytes',
  nonces: 'nonces',
  'sender-nonces': 'senderNonces',
  'all-nonces': 'allNonces',
};
