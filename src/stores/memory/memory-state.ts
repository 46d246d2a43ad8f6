// The state of a memory store: tables that expire, and queues of due records (admission.md §9.1).
// Called by memory-rows.ts; several stores may share one state.
import type { RegistrationKind, RegistrationRow } from '../store.ts';
import type { NonceRow, NotificationRow, RecordRow, TaskRow } from '../rules/rule-rows.ts';

/** A row that may expire. Unix ms; null: never. */
interface Expiring {
  readonly expiresAt: number | null;
}

/** Rows by key. Only `put` and `forgetExpired` change it. */
export interface Table<R extends Expiring> {
  readonly rows: Map<string, R>;
  /** A time before which no row expires. Unix ms. */
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
 * Deletes expired rows: goes through the whole table, if any row of it may have expired. @param gone receives each
 * deleted row.
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

/** A record with its body, its order and its times. */
export interface HeldRecord {
  readonly row: RecordRow;
  /** The expiry of `row`. */
  readonly expiresAt: number | null;
  /** The time at which it is due, Unix ms; Infinity: never. */
  readonly dueAt: number;
  readonly body: Uint8Array | undefined;
  /** A growing number, by which the older of two records is known. */
  readonly serial: number;
}

/** The rows of one sender. They are maps in maps, so no character in a key can reach another sender's. */
export interface SenderState {
  readonly records: Table<HeldRecord>;
  /** The bytes of the bodies of all records. */
  pendingBytes: number;
  /** The records with `parkedUntil` over 0, by task. */
  readonly parked: Map<string, Set<HeldRecord>>;
  readonly tasks: Table<TaskRow>;
  readonly notifications: Table<NotificationRow>;
  /** The nonces by key id. */
  readonly nonces: Map<string, Table<NonceRow>>;
  readonly registrations: Readonly<Record<RegistrationKind, Table<RegistrationRow>>>;
}

/** The memory of a store. */
export interface MemoryState {
  readonly senders: Map<string, SenderState>;
  /** The records that are due or will be, by sender; no queue is empty. Senders stand in the order of their turns. */
  readonly due: Map<string, DueQueue>;
  /** The suspects that are due or will be, of all senders; they are not in `due`. */
  readonly suspects: DueQueue;
  /** The time until which each process is alive, Unix ms. */
  readonly processes: Map<string, number>;
  /** The number of the record that was inserted last. */
  serial: number;
  /** The number of nonces of all senders. */
  allNonces: number;
  /** The time at which all tables were gone through last. Unix ms. */
  sweptAt: number;
  /** The store's identity. It is made when it is asked for: workerd gives no random values while a module is loaded. */
  id: string | undefined;
}

/** Makes a new, empty state, for memory stores that share it. */
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

/** Returns the nonces of a key id, made if there are none. */
export function noncesOf({ nonces }: SenderState, keyid: string): Table<NonceRow> {
  const known = nonces.get(keyid) ?? newTable();
  nonces.set(keyid, known);
  return known;
}

/**
 * Records by the time at which they are due, then the oldest first. It is kept sorted, because a worker asks for its
 * first record again and again. A search of all would make ten thousand queued events a hundred million steps.
 */
export interface DueQueue {
  /** The records, sorted from `first` on. Places before it are empty, and are never more than the others. */
  rows: (HeldRecord | undefined)[];
  /**
   * The place of the first record. It grows if that leaves, because `shift()` of an array of a hundred thousand moves
   * them all.
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

/** Returns all records in the queue's order. */
export function allOf({ rows, first }: DueQueue): readonly HeldRecord[] {
  return rows.slice(first).flatMap((held) => held ?? []);
}

type Place = Pick<HeldRecord, 'dueAt' | 'serial'>;

/** True if the first of two comes before the other. */
const isBefore = (a: Place, b: Place): boolean =>
  a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.serial < b.serial);

/** Returns the place of a record, whether it is there or not. */
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

/** Puts a record where it belongs beside its table; `leave` takes it out again. */
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
