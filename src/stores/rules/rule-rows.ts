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
 * What the store's rules read and write, one table a method pair. The rules are written once over this interface and
 * run inside one atomic, synchronous step: memory and SQLite bring rows that are at hand, for every other backend the
 * rows are what was loaded and what the plan has changed (`stores/optimistic/plan-rows.ts`). Every read ignores rows that
 * have expired.
 */
export interface Rows {
  nonce(id: NonceId, now: number): NonceRow | undefined;
  /** Inserts or replaces; counts where it is new. */
  saveNonce(row: NonceRow): void;
  record(sender: string, key: string, now: number): RecordRow | undefined;
  /** The kept first copy of an unfinished or DEAD record. */
  body(sender: string, key: string): Uint8Array;
  insertRecord(row: RecordRow, body?: Uint8Array): void;
  /** Replaces; drops the body where `bodyBytes` is 0. */
  updateRecord(row: RecordRow): void;
  task(sender: string, id: string, now: number): TaskRow | undefined;
  saveTask(row: TaskRow): void;
  /** The oldest record of the task with `parkedUntil` over 0. */
  parked(sender: string, taskId: string): RecordRow | undefined;
  notification(sender: string, id: string, now: number): NotificationRow | undefined;
  saveNotification(row: NotificationRow): void;
  registration(kind: RegistrationKind, sender: string, id: string, now: number): RegistrationRow | undefined;
  /** Says which rows of a sender are read or written next, so that they are loaded at once. Absent where rows are at hand. */
  needRows?(sender: string, rows: readonly NeededRow[]): void;
  /** Inserts or replaces. */
  saveRegistration(row: RegistrationRow, now: number): void;
  usage(sender: string, keyid: string | undefined): Usage;
  /** Whether the row of a process holds. Not compared when a plan is committed: a hint (admission.md §4.6). */
  isProcessAlive(id: string, now: number): boolean;
  /** Inserts or replaces; forgets those that are over. */
  saveProcess(row: ProcessRow, now: number): void;
  /** Deletes a few expired rows of any sender: more than one accept adds, so that growth is bounded. */
  purge(now: number): void;
  /**
   * Deletes expired rows of one sender, at least `atLeast` of each kind where there are so many. `lately`: it may have been
   * done up to 10 s ago.
   */
  purgeSender(sender: string, now: number, atLeast: number, lately?: 'lately'): void;
  /** Likewise expired nonces, at least `atLeast` where there are so many; of a sender or key id, else of all. */
  purgeNonces(now: number, atLeast: number, of: NonceOwner | undefined, lately?: 'lately'): void;
}

/** A row that is not at hand, maybe. */
export interface NeededRow {
  readonly kind: RegistrationKind | 'record';
  /** Of a record: its key. */
  readonly id: string;
}

/** Rows that can be searched in the same atomic step. */
export interface QueueRows extends Rows {
  /**
   * Acknowledged, due at `now` (`dueAt`) and no suspect: of the sender whose turn it is the earliest, of those the oldest.
   * Senders that have any take turns, from call to call.
   */
  due(now: number): RecordRow | undefined;
  /** When the earliest of them comes due, or came. */
  nextDue(): number | undefined;
  /** Of the suspects that are due at `now`: the one with the fewest crashes, of those the oldest. */
  dueSuspect(now: number): RecordRow | undefined;
  /** When the earliest suspect comes due, or came. */
  nextSuspect(): number | undefined;
  /** Unexpired records in one state, oldest first. */
  page(query: InboxQuery, now: number): RowPage;
  /** Of each sender and state that has unexpired records. */
  counts(now: number): readonly InboxCount[];
}

/** Of all its key ids where none is named. */
export interface NonceOwner {
  readonly sender: string;
  readonly keyid?: string;
}

interface KeyOwner extends NonceOwner {
  readonly keyid: string;
}

/** A nonce is unique for a key id, and a key id for its sender: two senders may publish the same one. */
export interface NonceId extends KeyOwner {
  readonly nonce: string;
}

export interface NonceRow extends NonceId {
  /** The event it was burned for; null where the body gave none. */
  readonly key: string | null;
  /** The accept that burned it. */
  readonly acceptId: string;
  /** Unix ms, as every instant here. */
  readonly expiresAt: number;
}

/** `next`: the `after` of the page behind it; absent on the last one. */
export interface RowPage {
  readonly rows: readonly RecordRow[];
  readonly next?: string;
}

/** How far a record is. DONE is two states, by how it ended: `applied` and `stale`. */
export type RecordState = 'queued' | 'leased' | 'applied' | 'stale' | 'dead';

/** What the accept that last inserted, claimed or ended a record was told; `waiting` is not an answer to repeat. */
export type Claim = 'won' | 'queued' | 'stale' | 'died' | 'waiting';

export interface RecordRow {
  readonly sender: string;
  readonly key: string;
  readonly state: RecordState;
  readonly claim: Claim;
  readonly claimedBy: string;
  /** Of the last lease, kept after its end so that `complete` and `fail` can be repeated; null before the first. */
  readonly owner: string | null;
  /** Leases so far; decides nothing (admission.md §4.3). */
  readonly runs: number;
  readonly leaseUntil: number;
  readonly attempts: number;
  readonly crashes: number;
  /** A lease of it ended by a crash: the next one is charged (admission.md §4.6). */
  readonly suspect: boolean;
  /** The process of the last lease; null: unknown. */
  readonly process: string | null;
  /** The process whose crash was charged last; null: none, or it was taken back. */
  readonly crashedIn: string | null;
  /** Safe: somebody was, or may be, told 2xx. */
  readonly acked: boolean;
  readonly insertedAt: number;
  /** QUEUED: workers leave it alone until then. LEASED: 0 where the lease has raised `attempts`, else as it was before. */
  readonly notBefore: number;
  /** Workers found its task held: they leave it alone until the task is freed, or then. 0: not found so. */
  readonly parkedUntil: number;
  /** What the last run that failed said of itself. */
  readonly lastError: string | null;
  readonly rawHash: string;
  readonly canonicalHash: string | null;
  readonly traceparent?: string | undefined;
  /** Dropped with the body. */
  readonly url?: string | undefined;
  readonly task: TaskClaim | null;
  /** Flags of the answer that the last claim got. */
  readonly reemission: boolean;
  readonly afterTerminal: boolean;
  readonly ahead: boolean;
  readonly afterFinal: boolean;
  /** Of a report, until it is done: the windows that it claims (owed.md §3.1). */
  readonly windows: readonly ClaimedWindow[] | null;
  /** Of a notification, until it is done: the state that it told (owed.md §6.1). */
  readonly claimedState: ClaimedState | null;
  /** Length of the body that is kept; 0 once it is dropped. */
  readonly bodyBytes: number;
  /** null: never. */
  readonly expiresAt: number | null;
}

export interface TaskRow {
  readonly sender: string;
  readonly id: string;
  /** Key of the record that leased the task last; it holds the task as long as its lease is live. */
  readonly holder: string | null;
  /** `instantKey` of the newest status applied; null before the first. */
  readonly mark: string | null;
  /** Whether that status is terminal. */
  readonly markTerminal: boolean;
  /** null: none. */
  readonly terminal: FirstTerminal | null;
  /** What was applied last, where several channels tell of the task; null: nothing, or nobody said by which one. */
  readonly told: LastTold | null;
  readonly expiresAt: number;
}

/** The status that was applied last. */
export interface LastTold {
  readonly status: string;
  /** When, on the store's clock. Unix ms. */
  readonly at: number;
  /** The one that set the mark. */
  readonly marked?: { readonly instant: string; readonly status: string; readonly source: EventChannel };
}

/** A task's first terminal status (admission.md §5.4). */
export interface FirstTerminal {
  /** Of the event that brought it. */
  readonly key: string;
  /** `EventClaim.terminalHash`; '' where it had none. */
  readonly hash: string;
  /** `open`: not applied yet. */
  readonly state: 'open' | 'applied';
  /** Absent: a process told it that knows of no other channel. `task`: the id of its task, where it named one. */
  readonly told?: { readonly source: EventChannel; readonly hash?: string; readonly task?: string };
}

export interface NotificationRow {
  readonly sender: string;
  readonly id: string;
  /** The event that brought it first. */
  readonly key: string;
  /** Of a media buy: `instantKey` of its final report's time; null where that had none, and of an id. */
  readonly instant: string | null;
  readonly expiresAt: number;
}

/** A process that was heard of. */
export interface ProcessRow {
  readonly id: string;
  readonly expiresAt: number;
}

export interface Usage {
  /** Records, tasks and notification ids of the sender. */
  readonly entries: number;
  readonly pendingBytes: number;
  /** Of the (sender, key id); 0 where none was asked for. */
  readonly nonces: number;
  /** Of all key ids of the sender. */
  readonly senderNonces: number;
  readonly allNonces: number;
}

/** Which part of `Usage` each pressure looks at. */
export const PRESSURE_USAGE: Record<Pressure, keyof Usage> = {
  records: 'entries',
  'pending-bytes': 'pendingBytes',
  nonces: 'nonces',
  'sender-nonces': 'senderNonces',
  'all-nonces': 'allNonces',
};
