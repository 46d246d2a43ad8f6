import type { RegistrationSearch } from '../rules/registrations.ts';
import type { QueueRows, RecordRow, Rows, Usage } from '../rules/rows.ts';
import { noteExpiry, purge } from './expiry-queue.ts';
import { dueRows, noteDue } from './due.ts';
import { bodyOf, keepBody } from './bodies.ts';
import { putNonce, senderState, type MemoryState } from './state.ts';
import { registrationRows } from './registrations.ts';
import { find, put } from './table.ts';

/** Entries looked at by each accept, of each queue: more than one accept adds. */
const PURGE_AN_ACCEPT = 16;

interface Expiring {
  readonly expiresAt: number | null;
}

function unexpired<R extends Expiring>(row: R | undefined, now: number): R | undefined {
  return row && (row.expiresAt === null || row.expiresAt > now) ? row : undefined;
}

export type MemoryRows = QueueRows & RegistrationSearch;

/** `Rows` over maps. JavaScript runs one step at a time: that is what makes each one atomic. */
export function memoryRows(state: MemoryState): MemoryRows {
  return {
    ...nonceRows(state),
    ...recordRows(state),
    ...markRows(state),
    ...dueRows(state),
    ...registrationRows(state),
    isProcessAlive: (id, now) => (state.processes.get(id) ?? -Infinity) > now,
    saveProcess: ({ id, expiresAt }, now) => {
      for (const [other, until] of state.processes) if (until <= now) state.processes.delete(other);
      state.processes.set(id, expiresAt);
    },
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
  const { records, tasks, notifications, registrations, nonces, nonceCount, pendingBytes } = senderState(
    state,
    sender,
  );
  const { operation, route, watch } = registrations;
  const tables = [records, tasks, notifications, operation, route, watch];
  return {
    entries: tables.reduce((sum, { byKey }) => sum + byKey.size, 0),
    pendingBytes,
    nonces: keyid === undefined ? 0 : (nonces.get(keyid)?.rows.byKey.size ?? 0),
    senderNonces: nonceCount,
    allNonces: state.allNonces,
  };
}

function nonceRows(state: MemoryState): Pick<Rows, 'nonce' | 'saveNonce'> {
  return {
    nonce: ({ sender, keyid, nonce }, now) => {
      const known = senderState(state, sender).nonces.get(keyid);
      return known && unexpired(find(known.rows, nonce), now);
    },
    saveNonce: (row) => putNonce(state, row),
  };
}

function recordRows(state: MemoryState): Pick<Rows, 'record' | 'body' | 'insertRecord' | 'updateRecord'> {
  const note = (
    row: RecordRow,
    before: RecordRow | undefined,
    expired: RecordRow | undefined,
    serial: number,
  ) => {
    const of = senderState(state, row.sender);
    const last = before ?? expired;
    of.pendingBytes += row.bodyBytes - (last?.bodyBytes ?? 0);
    noteDue(state, of, row, before, serial);
    noteExpiry(state.expiry, of.shelves.records, row.key, last?.expiresAt, row.expiresAt);
  };
  return {
    record: (sender, key, now) => unexpired(find(senderState(state, sender).records, key)?.row, now),
    body: (sender, key) => {
      const body = find(senderState(state, sender).records, key)?.body;
      return body ? bodyOf(body) : new Uint8Array();
    },
    insertRecord: (row, body) => {
      const { records } = senderState(state, row.sender);
      const expired = find(records, row.key)?.row;
      const serial = (state.serial += 1);
      const kept = body && row.bodyBytes > 0 ? keepBody(state.slab, body) : undefined;
      put(records, row.key, { row, body: kept, serial });
      note(row, undefined, expired, serial);
    },
    updateRecord: (row) => {
      const held = find(senderState(state, row.sender).records, row.key);
      if (!held) return;
      const before = held.row;
      held.row = row;
      if (row.bodyBytes === 0) held.body = undefined;
      note(row, before, undefined, held.serial);
    },
  };
}

function markRows(state: MemoryState): Pick<Rows, 'task' | 'saveTask' | 'notification' | 'saveNotification'> {
  return {
    task: (sender, id, now) => unexpired(find(senderState(state, sender).tasks, id), now),
    saveTask: (row) => {
      const { tasks, shelves } = senderState(state, row.sender);
      noteExpiry(state.expiry, shelves.tasks, row.id, find(tasks, row.id)?.expiresAt, row.expiresAt);
      put(tasks, row.id, row);
    },
    notification: (sender, id, now) => unexpired(find(senderState(state, sender).notifications, id), now),
    saveNotification: (row) => {
      const { notifications, shelves } = senderState(state, row.sender);
      const before = find(notifications, row.id)?.expiresAt;
      noteExpiry(state.expiry, shelves.notifications, row.id, before, row.expiresAt);
      put(notifications, row.id, row);
    },
  };
}
