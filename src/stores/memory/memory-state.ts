// The state of a memory store: tables whose rows expire, and queues of due records (admission.md §9.1).
// Called by memory-rows.ts; several stores may share one state.
import type { RegistrationKind, RegistrationRow } from '../store.ts';
import type { NonceRow, NotificationRow, RecordRow, TaskRow } from '../rules/rule-rows.ts';

/** A row that may expire, at a time in Unix ms; null: never. */
interface Expiring {
  readonly expiresAt: number | null;
}

/** Rows by key. Only `put` and `forgetExpired` may change it. */
export interface Table<R extends Expiring> {
  readonly rows: Map<string, R>;
  /** No row of the table expires before this time. Unix ms. */
  soonest: number;
}

function newTable<R extends Expiring>(): Table<R> {
  return { rows: new Map(), soonest: Infinity };
}

/** Inserts or replaces a row. */
export function put<R extends Expiring>(table: Table<R>, key: string, row: R): void {
  table.rows.set(key, row);
  table.soonest = Math.min(table.soonest, row.expiresAt ?? Infinity);
}

export function isOver({ expiresAt }: Expiring, now: number): boolean {
  return expiresAt !== null && expiresAt <= now;
}

/** Returns the row, unless it has expired. */
export function find<R extends Expiring>(table: Table<R>, key: string, now: number): R | undefined {
  const row = table.rows.get(key);
  return row && !isOver(row, now) ? row : undefined;
}

/**
 * Deletes expired rows. It goes through the whole table, unless no row can have expired yet. @param gone receives
 * each deleted row.
 */
export function forgetExpired<R extends Expiring>(
  table: Table<R>,
  now: number,
  gone?: (row: R) => void,
): void {
  if (table.soonest > now) return;
  table.soonest = Infinity;
  for (const [key, row] of table.rows) {
    if (isOver(row, now)) {
      table.rows.delete(key);
      gone?.(row);
    } else table.soonest = Math.min(table.soonest, row.expiresAt ?? Infinity);
  }
}

/** A record as the memory store keeps it: with its body, its age and its due time. */
export interface HeldRecord {
  readonly row: RecordRow;
  readonly expiresAt: number | null;
  /** The time from which workers may lease the record. Unix ms; Infinity: never. */
  readonly dueAt: number;
  readonly body: Uint8Array | undefined;
  /** A number that grows with each insertion: the older of two records has the smaller one. */
  readonly serial: number;
}

/** The rows of one sender. Each sender has maps of its own, so no key can reach another sender's rows. */
export interface SenderState {
  readonly records: Table<HeldRecord>;
  /** The total bytes of the bodies of the sender's records. */
  pendingBytes: number;
  /** The records that wait for a task (`parkedUntil` over 0), by task id. */
  readonly parked: Map<string, Set<HeldRecord>>;
  readonly tasks: Table<TaskRow>;
  readonly notifications: Table<NotificationRow>;
  /** The nonces by key id. */
  readonly nonces: Map<string, Table<NonceRow>>;
  readonly registrations: Readonly<Record<RegistrationKind, Table<RegistrationRow>>>;
}

export interface MemoryState {
  readonly senders: Map<string, SenderState>;
  /**
   * The records that are due now or later, in one queue for each sender. No queue is empty. The senders are in the
   * order in which they have their turns.
   */
  readonly due: Map<string, DueQueue>;
  /**
   * The suspects of all senders that are due now or later; they are not in `due`. A suspect is an event whose run ended
   * by a crash.
   */
  readonly suspects: DueQueue;
  /** The time until which each process counts as alive, by the id of the process. Unix ms. */
  readonly processes: Map<string, number>;
  /** The `serial` of the record that was inserted last. */
  serial: number;
  /** The number of nonces of all senders. */
  allNonces: number;
  /** The time at which all tables were last purged. Unix ms. */
  sweptAt: number;
  /**
   * The store's identity, made when it is first needed, because workerd gives no random values while a module is
   * loaded.
   */
  id: string | undefined;
}

/** Makes a new, empty state. Several memory stores may share it. */
export function createMemoryState(): MemoryState {
  return {
    senders: new Map(),
    due: new Map(),
    suspects: newQueue(),
    processes: new Map(),
    serial: 0,
    allNonces: 0,
    sweptAt: 0,
    id: undefined,
  };
}

export function senderState({ senders }: MemoryState, sender: string): SenderState {
  const known = senders.get(sender);
  if (known) return known;
  const created: SenderState = {
    records: newTable(),
    pendingBytes: 0,
    parked: new Map(),
    tasks: newTable(),
    notifications: newTable(),
    nonces: new Map(),
    registrations: {
      operation: newTable(),
      route: newTable(),
      watch: newTable(),
      stream: newTable(),
      subscription: newTable(),
      snapshot: newTable(),
      move: newTable(),
    },
  };
  senders.set(sender, created);
  return created;
}

/** Returns the table of nonces of a key id, and creates it if there is none. */
export function noncesOf({ nonces }: SenderState, keyid: string): Table<NonceRow> {
  const known = nonces.get(keyid) ?? newTable();
  nonces.set(keyid, known);
  return known;
}

/**
 * Records sorted by due time, then by age. The array is kept sorted, because workers ask for its first record again
 * and again. If each call searched all records, ten thousand queued events would take a hundred million steps.
 */
export interface DueQueue {
  /**
   * The records, sorted, from index `first` on. The entries before `first` are empty; they are at most half of all
   * entries.
   */
  rows: (HeldRecord | undefined)[];
  /**
   * The index of the first record. It grows when the first record leaves, because `shift()` would move all entries of a
   * large array.
   */
  first: number;
}

function newQueue(): DueQueue {
  return { rows: [], first: 0 };
}

export function firstOf({ rows, first }: DueQueue): HeldRecord | undefined {
  return rows[first];
}

/** Returns the first record that is due later than `at`. Unix ms. */
export function firstAfter(queue: DueQueue, at: number): HeldRecord | undefined {
  return queue.rows[placeIn(queue, { dueAt: at, serial: Infinity })];
}

/** Returns all records of the queue, ordered by due time, then by age. */
export function allOf({ rows, first }: DueQueue): readonly HeldRecord[] {
  return rows.slice(first).flatMap((held) => held ?? []);
}

type Place = Pick<HeldRecord, 'dueAt' | 'serial'>;

/** True if `a` comes before `b` in a queue. */
const isBefore = (a: Place, b: Place): boolean =>
  a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.serial < b.serial);

/** Returns the index at which a record is, or would be inserted. */
function placeIn({ rows, first }: DueQueue, held: Place): number {
  let from = first;
  let to = rows.length;
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (isBefore(rows[middle] ?? held, held)) from = middle + 1;
    else to = middle;
  }
  return from;
}

function insert(queue: DueQueue, held: HeldRecord): void {
  const { rows, first } = queue;
  const last = rows[rows.length - 1];
  if (!last || isBefore(last, held)) {
    rows.push(held);
    return;
  }
  const place = placeIn(queue, held);
  if (place === first && place > 0) rows[(queue.first -= 1)] = held;
  else rows.splice(place, 0, held);
}

function remove(queue: DueQueue, held: HeldRecord): void {
  const { rows, first } = queue;
  if (rows[first] !== held) {
    rows.splice(placeIn(queue, held), 1);
    return;
  }
  rows[first] = undefined;
  queue.first += 1;
  if (queue.first * 2 <= rows.length) return;
  queue.rows = rows.slice(queue.first);
  queue.first = 0;
}

/**
 * Adds a record to its queue of due records, to the records that wait for its task, and to the count of bytes. `leave`
 * undoes this.
 */
export function enter(state: MemoryState, held: HeldRecord): void {
  const { sender, suspect, task, parkedUntil, bodyBytes } = held.row;
  const of = senderState(state, sender);
  of.pendingBytes += bodyBytes;
  if (task && parkedUntil > 0) of.parked.set(task.id, (of.parked.get(task.id) ?? new Set()).add(held));
  if (held.dueAt === Infinity) return;
  const queue = suspect ? state.suspects : (state.due.get(sender) ?? newQueue());
  insert(queue, held);
  if (!suspect) state.due.set(sender, queue);
}

export function leave(state: MemoryState, held: HeldRecord): void {
  const { sender, suspect, task, bodyBytes } = held.row;
  const of = senderState(state, sender);
  of.pendingBytes -= bodyBytes;
  const parked = task ? of.parked.get(task.id) : undefined;
  if (task && parked?.delete(held) && parked.size === 0) of.parked.delete(task.id);
  if (held.dueAt === Infinity) return;
  const queue = suspect ? state.suspects : state.due.get(sender);
  if (!queue) return;
  remove(queue, held);
  if (!suspect && queue.first === queue.rows.length) state.due.delete(sender);
}
