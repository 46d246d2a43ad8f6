import type { RegistrationKind, RegistrationRow } from '../store.ts';
import type { NonceRow, NotificationRow, RecordRow, TaskRow } from '../rules/rule-rows.ts';

/** A row that is forgotten some day. Unix ms; null: never. */
interface Expiring {
  readonly expiresAt: number | null;
}

/** Rows by key. To be changed by `put` and `forgetExpired` alone. */
export interface Table<R extends Expiring> {
  readonly rows: Map<string, R>;
  /** No row expires earlier. Unix ms. */
  soonest: number;
}

function newTable<R extends Expiring>(): Table<R> {
  return { rows: new Map(), soonest: Infinity };
}

/** Inserts or replaces. */
export function put<R extends Expiring>(table: Table<R>, key: string, row: R): void {
  table.rows.set(key, row);
  table.soonest = Math.min(table.soonest, row.expiresAt ?? Infinity);
}

export function isOver({ expiresAt }: Expiring, now: number): boolean {
  return expiresAt !== null && expiresAt <= now;
}

/** The row, unless it has expired. */
export function find<R extends Expiring>(table: Table<R>, key: string, now: number): R | undefined {
  const row = table.rows.get(key);
  return row && !isOver(row, now) ? row : undefined;
}

/** Goes through the whole table, where a row of it may have expired. @param gone is told of each that goes. */
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

/** A record and what belongs to it. */
export interface HeldRecord {
  readonly row: RecordRow;
  /** Of `row`. */
  readonly expiresAt: number | null;
  /** When it is due, Unix ms; Infinity: never. */
  readonly dueAt: number;
  readonly body: Uint8Array | undefined;
  /** Growing: which record is older. */
  readonly serial: number;
}

/** One sender's keyspace. Maps in maps: no character in a key can reach another sender's. */
export interface SenderState {
  readonly records: Table<HeldRecord>;
  /** Of all records. */
  pendingBytes: number;
  /** By task: records with `parkedUntil` over 0. */
  readonly parked: Map<string, Set<HeldRecord>>;
  readonly tasks: Table<TaskRow>;
  readonly notifications: Table<NotificationRow>;
  /** By key id. */
  readonly nonces: Map<string, Table<NonceRow>>;
  readonly registrations: Readonly<Record<RegistrationKind, Table<RegistrationRow>>>;
}

/** What a memory store remembers. */
export interface MemoryState {
  readonly senders: Map<string, SenderState>;
  /** What workers are to look at, by sender; none is empty. Senders are in the order of their turns. */
  readonly due: Map<string, DueQueue>;
  /** Suspects that workers are to look at, of all senders; they are not in `due`. */
  readonly suspects: DueQueue;
  /** Until when each process is alive, Unix ms. */
  readonly processes: Map<string, number>;
  /** Of the record inserted last. */
  serial: number;
  /** Nonces of all senders. */
  allNonces: number;
  /** When all tables were gone through. Unix ms. */
  sweptAt: number;
  /** Which store it is; made when it is asked for: workerd gives no random values while a module is loaded. */
  id: string | undefined;
}

/** A new, empty state, for memory stores that share it. */
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

/** Nonces of a key id, made where there are none. */
export function noncesOf({ nonces }: SenderState, keyid: string): Table<NonceRow> {
  const known = nonces.get(keyid) ?? newTable();
  nonces.set(keyid, known);
  return known;
}

/**
 * Records by when they are due, of one time the oldest first. It is kept sorted, for a worker asks for its first again
 * and again: a search of all would make ten thousand queued events a hundred million steps.
 */
export interface DueQueue {
  /** Sorted from `first` on. Places before it are empty, never more than the others. */
  rows: (HeldRecord | undefined)[];
  /** It grows where the first leaves: `shift()` of an array of a hundred thousand moves them all. */
  first: number;
}

function newQueue(): DueQueue {
  return { rows: [], first: 0 };
}

export function firstOf({ rows, first }: DueQueue): HeldRecord | undefined {
  return rows[first];
}

/** The first that is due later than `at`. Unix ms. */
export function firstAfter(queue: DueQueue, at: number): HeldRecord | undefined {
  return queue.rows[placeIn(queue, { dueAt: at, serial: Infinity })];
}

/** In the queue's order. */
export function allOf({ rows, first }: DueQueue): readonly HeldRecord[] {
  return rows.slice(first).flatMap((held) => held ?? []);
}

type Place = Pick<HeldRecord, 'dueAt' | 'serial'>;

/** Whether the first of two comes before the other. */
const isBefore = (a: Place, b: Place): boolean =>
  a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.serial < b.serial);

/** The place of a record, be it there or not. */
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

/** Puts a record where it belongs beside its table; `leave` takes it from there. */
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
