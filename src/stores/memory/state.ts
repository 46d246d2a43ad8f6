import type { NonceRow, NotificationRow, RecordRow, TaskRow } from '../kernel/rows.ts';
import type { ExpiryQueue, Timed, TimedQueue } from './expiry-queue.ts';

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

/** One sender's keyspace. Maps in maps: no character in a key can reach another sender's. */
export interface SenderState {
  readonly records: Map<string, RecordRow>;
  readonly bodies: Map<string, Uint8Array>;
  /** By key, growing: which record is older. */
  readonly serials: Map<string, number>;
  /** By task: keys of its records with `parkedUntil` over 0. */
  readonly parked: Map<string, Set<string>>;
  readonly tasks: Map<string, TaskRow>;
  readonly notifications: Map<string, NotificationRow>;
  /** By key id, then by nonce. */
  readonly nonces: Map<string, Map<string, NonceRow>>;
  pendingBytes: number;
}

/** A new, empty state, for memory stores that share it. */
export function createMemoryState(): MemoryState {
  return { senders: new Map(), nonceExpiry: [], expiry: [], due: [], serial: 0, allNonces: 0 };
}

export function senderState(state: MemoryState, sender: string): SenderState {
  const known = state.senders.get(sender);
  if (known) return known;
  const created: SenderState = {
    records: new Map(),
    bodies: new Map(),
    serials: new Map(),
    parked: new Map(),
    tasks: new Map(),
    notifications: new Map(),
    nonces: new Map(),
    pendingBytes: 0,
  };
  state.senders.set(sender, created);
  return created;
}

/** Removes a record and all that belongs to it. */
export function forgetRecord(of: SenderState, { key, bodyBytes }: RecordRow): void {
  of.records.delete(key);
  of.bodies.delete(key);
  of.serials.delete(key);
  of.pendingBytes -= bodyBytes;
}
