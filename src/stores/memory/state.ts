import type { RegistrationKind, RegistrationRow } from '../contract.ts';
import type { NonceRow, NotificationRow, RecordRow, TaskRow } from '../rules/rows.ts';
import {
  type ExpiryQueue,
  noteExpiry,
  type ExpiringTable,
  type Timed,
  type TimedQueue,
} from './expiry-queue.ts';

/**
 * Rows by key, with the row that was looked up last at hand: one step of the store asks for the same ones several
 * times, found or not, and a map of a million is slow to ask.
 */
interface Table<R> {
  /** To be changed by `put` and `drop` alone. */
  readonly byKey: Map<string, R>;
  lastKey: string | undefined;
  last: R | undefined;
}

function newTable<R>(): Table<R> {
  return { byKey: new Map(), lastKey: undefined, last: undefined };
}

export function find<R>(table: Table<R>, key: string): R | undefined {
  if (table.lastKey === key) return table.last;
  const row = table.byKey.get(key);
  table.lastKey = key;
  table.last = row;
  return row;
}

export function put<R>(table: Table<R>, key: string, row: R): void {
  table.byKey.set(key, row);
  table.lastKey = key;
  table.last = row;
}

/** Whether there was one. */
function drop<R>(table: Table<R>, key: string): boolean {
  if (table.lastKey === key) table.last = undefined;
  return table.byKey.delete(key);
}

/** Room for bodies: most are small and gone at once, and an `ArrayBuffer` of its own for each is memory of the system's. */
interface Slab {
  bytes: Uint8Array;
  used: number;
}

/** Where a body is kept. */
interface KeptBody {
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly end: number;
}

/** What one body that is kept for long keeps with it, at most. */
const SLAB_BYTES = 16_384;
/** Longer ones have bytes of their own. */
const SHARED_MOST = 4096;

function newSlab(): Slab {
  return { bytes: new Uint8Array(0), used: 0 };
}

/** A copy: the caller's bytes may be a view into a pooled buffer, or change. */
export function keepBody(slab: Slab, body: Uint8Array): KeptBody {
  const { length } = body;
  if (length > SHARED_MOST) return { bytes: new Uint8Array(body), start: 0, end: length };
  if (slab.used + length > slab.bytes.length) {
    slab.bytes = new Uint8Array(SLAB_BYTES);
    slab.used = 0;
  }
  const { bytes, used: start } = slab;
  bytes.set(body, start);
  slab.used = start + length;
  return { bytes, start, end: slab.used };
}

/** A copy again: the caller may change it. */
export function bodyOf({ bytes, start, end }: KeptBody): Uint8Array {
  return bytes.slice(start, end);
}

/** What a memory store remembers; opaque to users. Handles that share one state are one store, as two processes on one database are. */
export interface MemoryState {
  readonly senders: Map<string, SenderState>;
  /** Nonces apart from the rest: they come by the hundred thousand and go within minutes. */
  readonly nonceExpiry: ExpiryQueue;
  readonly expiry: ExpiryQueue;
  /**
   * What workers are to look at, by sender; entries that no longer hold are dropped when they come up. Senders are in the
   * order of their turns.
   */
  readonly due: Map<string, TimedQueue<Due>>;
  /** No record is due later. Unix ms. */
  latestDue: number;
  /** Of those that are suspects, by serial: not in `due`. */
  readonly suspects: Map<number, { readonly sender: string; readonly key: string }>;
  /** Until when each process is alive, Unix ms. */
  readonly processes: Map<string, number>;
  /** Of the record inserted last. */
  serial: number;
  /** Nonces of all senders. */
  allNonces: number;
  readonly slab: Slab;
  /** Which store it is; made when it is asked for: workerd gives no random values while a module is loaded. */
  id: string | undefined;
  /** The sender that was asked for last: a step of the store asks for one, several times. */
  last: SenderState | undefined;
}

/** A record and when it is due, as it was when this was noted. */
export interface Due extends Timed {
  readonly key: string;
}

/** A record and what belongs to it. `row` and `body` are replaced in place, so that an update sets no map. */
export interface HeldRecord {
  row: RecordRow;
  body: KeptBody | undefined;
  /** Growing: which record is older. */
  readonly serial: number;
}

/** Nonces of one key id, under one copy of its text. */
interface KeyNonces {
  readonly keyid: string;
  readonly rows: Table<NonceRow>;
  readonly expiring: ExpiringTable;
}

/** One sender's keyspace. Maps in maps: no character in a key can reach another sender's. */
export interface SenderState {
  readonly sender: string;
  readonly records: Table<HeldRecord>;
  /** By task: keys of its records with `parkedUntil` over 0. */
  readonly parked: Map<string, Set<string>>;
  readonly tasks: Table<TaskRow>;
  readonly notifications: Table<NotificationRow>;
  /** By key id. */
  readonly nonces: Map<string, KeyNonces>;
  /** Of all key ids. */
  nonceCount: number;
  /** By kind. */
  readonly registrations: Readonly<Record<RegistrationKind, Table<RegistrationRow>>>;
  readonly expiring: Readonly<
    Record<'records' | 'tasks' | 'notifications' | RegistrationKind, ExpiringTable>
  >;
  pendingBytes: number;
}

/** A new, empty state, for memory stores that share it. */
export function createMemoryState(): MemoryState {
  return {
    senders: new Map(),
    nonceExpiry: [],
    expiry: [],
    due: new Map(),
    latestDue: 0,
    suspects: new Map(),
    processes: new Map(),
    serial: 0,
    allNonces: 0,
    slab: newSlab(),
    id: undefined,
    last: undefined,
  };
}

export function senderState(state: MemoryState, sender: string): SenderState {
  if (state.last?.sender === sender) return state.last;
  let known = state.senders.get(sender);
  if (!known) {
    known = newSender(sender);
    state.senders.set(sender, known);
  }
  state.last = known;
  return known;
}

function expiringTableOf(table: Table<{ readonly expiresAt: number | null }>): ExpiringTable {
  return {
    expiresAt: (key) => table.byKey.get(key)?.expiresAt,
    forget: (key) => void drop(table, key),
  };
}

function newSender(sender: string): SenderState {
  const records = newTable<HeldRecord>();
  const tasks = newTable<TaskRow>();
  const notifications = newTable<NotificationRow>();
  const registrations = { operation: newTable(), route: newTable(), watch: newTable() } satisfies Record<
    RegistrationKind,
    Table<RegistrationRow>
  >;
  const created: SenderState = {
    sender,
    records,
    parked: new Map(),
    tasks,
    notifications,
    nonces: new Map(),
    nonceCount: 0,
    registrations,
    expiring: {
      records: {
        expiresAt: (key) => records.byKey.get(key)?.row.expiresAt,
        forget: (key) => {
          created.pendingBytes -= records.byKey.get(key)?.row.bodyBytes ?? 0;
          drop(records, key);
        },
      },
      tasks: expiringTableOf(tasks),
      notifications: expiringTableOf(notifications),
      operation: expiringTableOf(registrations.operation),
      route: expiringTableOf(registrations.route),
      watch: expiringTableOf(registrations.watch),
    },
    pendingBytes: 0,
  };
  return created;
}

/** Nonces of a key id, made where there are none. */
function noncesOf(state: MemoryState, sender: string, keyid: string): KeyNonces {
  const of = senderState(state, sender);
  const { nonces } = of;
  const known = nonces.get(keyid);
  if (known) return known;
  const rows = newTable<NonceRow>();
  const expiring: ExpiringTable = {
    expiresAt: (nonce) => rows.byKey.get(nonce)?.expiresAt,
    forget: (nonce) => {
      if (!drop(rows, nonce)) return;
      state.allNonces -= 1;
      of.nonceCount -= 1;
    },
  };
  const created: KeyNonces = { keyid, rows, expiring };
  nonces.set(keyid, created);
  return created;
}

/** Puts a nonce in the place of the one of its name, where there is one. */
export function putNonce(state: MemoryState, row: NonceRow): void {
  const { sender, key, acceptId, expiresAt } = row;
  const { keyid, rows, expiring } = noncesOf(state, sender, row.keyid);
  const before = find(rows, row.nonce);
  const nonce = before?.nonce ?? row.nonce;
  if (!before) {
    state.allNonces += 1;
    senderState(state, sender).nonceCount += 1;
  }
  put(rows, nonce, { sender, keyid, nonce, key, acceptId, expiresAt });
  noteExpiry(state.nonceExpiry, expiring, nonce, before?.expiresAt, expiresAt);
}
