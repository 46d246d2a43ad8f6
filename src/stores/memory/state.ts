import type { NonceRow, NotificationRow, RecordRow, TaskRow } from '../kernel/rows.ts';
import { noteExpiry, type ExpiryQueue, type Shelf, type Timed, type TimedQueue } from './expiry-queue.ts';

/** What a memory store remembers; opaque to users. Handles that share one state are one store, as two processes on one database are. */
export interface MemoryState {
  readonly senders: Map<string, SenderState>;
  /** Nonces apart from the rest: they come by the hundred thousand and go within minutes. */
  readonly nonceExpiry: ExpiryQueue;
  readonly expiry: ExpiryQueue;
  /** What workers are to look at; entries that no longer hold are dropped when they come up. */
  readonly due: TimedQueue<Due>;
  /** Of the record inserted last. */
  serial: number;
  /** Nonces of all senders. */
  allNonces: number;
}

/** A record and when it is due, as it was when this was noted. */
export interface Due extends Timed {
  readonly sender: string;
  readonly key: string;
}

/** A record and what belongs to it. `row` and `body` are replaced in place, so that an update sets no map. */
export interface HeldRecord {
  row: RecordRow;
  body: Uint8Array | undefined;
  /** Growing: which record is older. */
  readonly serial: number;
}

/** Nonces of one key id, under one copy of its text. */
export interface KeyNonces {
  readonly keyid: string;
  readonly rows: Map<string, NonceRow>;
  readonly shelf: Shelf;
}

/** One sender's keyspace. Maps in maps: no character in a key can reach another sender's. */
export interface SenderState {
  readonly records: Map<string, HeldRecord>;
  /** By task: keys of its records with `parkedUntil` over 0. */
  readonly parked: Map<string, Set<string>>;
  readonly tasks: Map<string, TaskRow>;
  readonly notifications: Map<string, NotificationRow>;
  /** By key id. */
  readonly nonces: Map<string, KeyNonces>;
  readonly shelves: Readonly<Record<'records' | 'tasks' | 'notifications', Shelf>>;
  pendingBytes: number;
}

/** A new, empty state, for memory stores that share it. */
export function createMemoryState(): MemoryState {
  return { senders: new Map(), nonceExpiry: [], expiry: [], due: [], serial: 0, allNonces: 0 };
}

export function senderState(state: MemoryState, sender: string): SenderState {
  const known = state.senders.get(sender);
  if (known) return known;
  const created = newSender();
  state.senders.set(sender, created);
  return created;
}

function shelfOf(rows: Map<string, { readonly expiresAt: number }>): Shelf {
  return {
    expiresAt: (key) => rows.get(key)?.expiresAt,
    forget: (key) => void rows.delete(key),
  };
}

function newSender(): SenderState {
  const records = new Map<string, HeldRecord>();
  const tasks = new Map<string, TaskRow>();
  const notifications = new Map<string, NotificationRow>();
  const created: SenderState = {
    records,
    parked: new Map(),
    tasks,
    notifications,
    nonces: new Map(),
    shelves: {
      records: {
        expiresAt: (key) => records.get(key)?.row.expiresAt,
        forget: (key) => {
          created.pendingBytes -= records.get(key)?.row.bodyBytes ?? 0;
          records.delete(key);
        },
      },
      tasks: shelfOf(tasks),
      notifications: shelfOf(notifications),
    },
    pendingBytes: 0,
  };
  return created;
}

/**
 * A slice of a header string keeps the whole header alive; as a key it would do so until the nonce is forgotten.
 * Cutting a text that was put together makes engines copy it: a fresh string of the same code units.
 */
function detached(text: string): string {
  return ` ${text}`.slice(1);
}

/** Nonces of a key id, made where there are none. */
function noncesOf(state: MemoryState, sender: string, keyid: string): KeyNonces {
  const { nonces } = senderState(state, sender);
  const known = nonces.get(keyid);
  if (known) return known;
  const rows = new Map<string, NonceRow>();
  const own = detached(keyid);
  const shelf: Shelf = {
    expiresAt: (nonce) => rows.get(nonce)?.expiresAt,
    forget: (nonce) => {
      if (rows.delete(nonce)) state.allNonces -= 1;
    },
  };
  const created: KeyNonces = { keyid: own, rows, shelf };
  nonces.set(own, created);
  return created;
}

/** Puts a nonce in the place of the one of its name, where there is one. */
export function putNonce(state: MemoryState, given: NonceRow): void {
  const { sender, key, acceptId, expiresAt } = given;
  const { keyid, rows, shelf } = noncesOf(state, sender, given.keyid);
  const before = rows.get(given.nonce);
  const nonce = before?.nonce ?? detached(given.nonce);
  if (!before) state.allNonces += 1;
  rows.set(nonce, { sender, keyid, nonce, key, acceptId, expiresAt });
  noteExpiry(state.nonceExpiry, shelf, nonce, before?.expiresAt, expiresAt);
}
