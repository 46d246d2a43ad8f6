import type { KeyOwner, NonceId, NonceRow, RecordRow, Rows, Usage } from '../kernel/rows.ts';
import type { ExpiryQueue } from './expiry-queue.ts';
import { push, takeDue } from './expiry-queue.ts';
import { dueRows, noteDue } from './due.ts';
import type { MemoryState } from './state.ts';
import { forgetRecord, senderState } from './state.ts';

/** Entries looked at by each accept, of each queue: more than one accept adds. */
const PURGE_AN_ACCEPT = 16;

interface Expiring {
  readonly expiresAt: number | null;
}

function unexpired<R extends Expiring>(row: R | undefined, now: number): R | undefined {
  return row && (row.expiresAt === null || row.expiresAt > now) ? row : undefined;
}

/**
 * A slice of a header string keeps the whole header alive; as a key it would do so until the nonce is forgotten.
 * JSON makes a fresh string of the same code units, lone surrogates included.
 */
function detached(text: string): string {
  return JSON.parse(JSON.stringify(text)) as string;
}

function purge(queue: ExpiryQueue, now: number, atMost: number): void {
  for (let taken = 0; taken < atMost; taken += 1) {
    const expired = takeDue(queue, now);
    if (expired === undefined) return;
    expired.drop();
  }
}

/** Puts a row where it belongs and notes its expiry; dropped then only if no other row took its place. */
function put<R extends Expiring>(
  queue: ExpiryQueue,
  map: Map<string, R>,
  key: string,
  row: R,
  drop: () => void,
): void {
  map.set(key, row);
  if (row.expiresAt === null) return;
  push(queue, { at: row.expiresAt, drop: () => map.get(key) === row && drop() });
}

/** `Rows` over maps. JavaScript runs one step at a time: that is what makes each one atomic. */
export function memoryRows(state: MemoryState): Rows {
  return {
    ...nonceRows(state),
    ...recordRows(state),
    ...markRows(state),
    ...dueRows(state),
    usage: (sender, keyid) => usage(state, sender, keyid),
    purge: (now) => {
      purge(state.nonceExpiry, now, PURGE_AN_ACCEPT);
      purge(state.expiry, now, PURGE_AN_ACCEPT);
    },
    // The queues know no senders; taking all that has expired is more than was asked and costs each row once.
    purgeSender: (_sender, now) => purge(state.expiry, now, Infinity),
    purgeNonces: (now) => purge(state.nonceExpiry, now, Infinity),
  };
}

function usage(state: MemoryState, sender: string, keyid: string | undefined): Usage {
  const { records, tasks, notifications, nonces, pendingBytes } = senderState(state, sender);
  return {
    entries: records.size + tasks.size + notifications.size,
    pendingBytes,
    nonces: keyid === undefined ? 0 : (nonces.get(keyid)?.size ?? 0),
    allNonces: state.allNonces,
  };
}

function nonceRows(state: MemoryState): Pick<Rows, 'nonce' | 'saveNonce'> {
  const ofKey = ({ sender, keyid }: KeyOwner): Map<string, NonceRow> => {
    const { nonces } = senderState(state, sender);
    const known = nonces.get(keyid);
    if (known) return known;
    const created = new Map<string, NonceRow>();
    nonces.set(detached(keyid), created);
    return created;
  };
  return {
    nonce: (id: NonceId, now) =>
      unexpired(senderState(state, id.sender).nonces.get(id.keyid)?.get(id.nonce), now),
    saveNonce: (given) => {
      const row = { ...given, keyid: detached(given.keyid), nonce: detached(given.nonce) };
      const map = ofKey(row);
      if (!map.has(row.nonce)) state.allNonces += 1;
      put(state.nonceExpiry, map, row.nonce, row, () => {
        map.delete(row.nonce);
        state.allNonces -= 1;
      });
    },
  };
}

function recordRows(state: MemoryState): Pick<Rows, 'record' | 'body' | 'insertRecord' | 'updateRecord'> {
  const save = (row: RecordRow): void => {
    const of = senderState(state, row.sender);
    of.pendingBytes += row.bodyBytes - (of.records.get(row.key)?.bodyBytes ?? 0);
    if (row.bodyBytes === 0) of.bodies.delete(row.key);
    noteDue(state, of, row);
    put(state.expiry, of.records, row.key, row, () => forgetRecord(of, row));
  };
  return {
    record: (sender, key, now) => unexpired(senderState(state, sender).records.get(key), now),
    body: (sender, key) => senderState(state, sender).bodies.get(key)?.slice() ?? new Uint8Array(),
    insertRecord: (row, body) => {
      // A copy: the caller's bytes may be a view into a pooled buffer, or change.
      const of = senderState(state, row.sender);
      const expired = of.records.get(row.key);
      if (expired) forgetRecord(of, expired);
      of.serials.set(row.key, (state.serial += 1));
      if (body && row.bodyBytes > 0) of.bodies.set(row.key, new Uint8Array(body));
      save(row);
    },
    updateRecord: save,
  };
}

function markRows(state: MemoryState): Pick<Rows, 'task' | 'saveTask' | 'notification' | 'saveNotification'> {
  return {
    task: (sender, id, now) => unexpired(senderState(state, sender).tasks.get(id), now),
    saveTask: (row) => {
      const { tasks } = senderState(state, row.sender);
      put(state.expiry, tasks, row.id, row, () => tasks.delete(row.id));
    },
    notification: (sender, id, now) => unexpired(senderState(state, sender).notifications.get(id), now),
    saveNotification: (row) => {
      const { notifications } = senderState(state, row.sender);
      put(state.expiry, notifications, row.id, row, () => notifications.delete(row.id));
    },
  };
}
