import type { InboxQuery, RegistrationRow } from '../contract.ts';
import { dueAt } from '../rules/park.ts';
import { inTurns, type RegistrationSearch } from '../rules/registrations.ts';
import type { QueueRows, RecordRow, RowPage, Rows, Usage } from '../rules/rows.ts';
import { noteExpiry, purge, push, takeDue, type TimedQueue } from './expiry-queue.ts';
import {
  bodyOf,
  type Due,
  find,
  type HeldRecord,
  keepBody,
  type MemoryState,
  put,
  putNonce,
  type SenderState,
  senderState,
} from './state.ts';

/** Entries looked at by each save: more than it adds. */
const PURGE_A_SAVE = 16;

/** Rows of registrations. What is searched is gone through: a memory store is for tests and development. */
function registrationRows(state: MemoryState): Omit<RegistrationSearch, 'task' | 'record'> {
  const all = (kind: RegistrationRow['kind']): readonly RegistrationRow[] =>
    [...state.senders.values()].flatMap(({ registrations }) => [...registrations[kind].byKey.values()]);
  return {
    registration: (kind, sender, id, now) => {
      const row = find(senderState(state, sender).registrations[kind], id);
      return row && (row.expiresAt === null || row.expiresAt > now) ? row : undefined;
    },
    saveRegistration: (row, now) => {
      purge(state.expiry, now, PURGE_A_SAVE);
      const { registrations, expiring } = senderState(state, row.sender);
      const table = registrations[row.kind];
      noteExpiry(state.expiry, expiring[row.kind], row.id, find(table, row.id)?.expiresAt, row.expiresAt);
      put(table, row.id, row);
    },
    dueRegistrations: (of, now) => {
      const bySender = new Map<string, RegistrationRow[]>();
      for (const row of all(of.kind)) {
        if (row.dueAt === null || row.dueAt > now) continue;
        const rows = bySender.get(row.sender);
        if (rows) rows.push(row);
        else bySender.set(row.sender, [row]);
      }
      for (const rows of bySender.values()) rows.sort((a, b) => (a.dueAt ?? 0) - (b.dueAt ?? 0));
      return inTurns(bySender, of);
    },
    nextRegistration: (kind) => {
      const instants = all(kind).flatMap(({ dueAt }) => dueAt ?? []);
      return instants.length > 0 ? instants.reduce((a, b) => Math.min(a, b)) : undefined;
    },
    registrations: ({ kind, list, sender, limit, after }) => {
      const senders: readonly SenderState[] =
        sender === undefined
          ? [...state.senders.values()].filter((of) => of.sender !== '')
          : [senderState(state, sender)];
      return senders
        .flatMap(({ registrations }) => [...registrations[kind].byKey.values()])
        .filter((row) => list === undefined || row.list === list)
        .filter((row) => !after || compared(row.sender, after.sender) > 0 || isBehindOf(row, after))
        .sort((a, b) => compared(a.sender, b.sender) || compared(a.id, b.id))
        .slice(0, limit);
    },
  };
}

function isBehindOf(row: RegistrationRow, after: { readonly sender: string; readonly id: string }): boolean {
  return row.sender === after.sender && row.id > after.id;
}

function compared(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** @param before what `row` replaces; undefined for a new record. */
function noteDue(
  state: MemoryState,
  of: SenderState,
  row: RecordRow,
  before: RecordRow | undefined,
  serial: number,
): void {
  const { sender, key } = row;
  const at = dueAt(row);
  if (at !== null && row.suspect) state.suspects.set(serial, { sender, key });
  else state.suspects.delete(serial);
  const wasQueued = before !== undefined && isQueuedAt(before, at);
  if (at !== null && !row.suspect && !wasQueued) push(queueOf(state, sender), { at, serial, key });
  if (at !== null) state.latestDue = Math.max(state.latestDue, at);
  if (row.task) notePark(of, row.task.id, row);
}

/** Suspects are not in the queue. */
function isQueuedAt(row: RecordRow, at: number | null): boolean {
  return !row.suspect && dueAt(row) === at;
}

function queueOf({ due }: MemoryState, sender: string): TimedQueue<Due> {
  let queue = due.get(sender);
  if (!queue) due.set(sender, (queue = []));
  return queue;
}

function notePark({ parked }: SenderState, taskId: string, { key, parkedUntil }: RecordRow): void {
  const keys = parked.get(taskId);
  if (parkedUntil > 0) {
    parked.set(taskId, (keys ?? new Set()).add(key));
  } else if (keys?.delete(key) && keys.size === 0) {
    parked.delete(taskId);
  }
}

interface DueRecord {
  readonly at: number;
  readonly record: RecordRow;
}

/** `Rows` for workers and operators. */
function dueRows(
  state: MemoryState,
): Pick<QueueRows, 'due' | 'nextDue' | 'far' | 'dueSuspect' | 'nextSuspect' | 'parked' | 'page'> {
  const first = (sender: string, queue: TimedQueue<Due>): DueRecord | undefined => {
    const { records } = senderState(state, sender);
    for (let due = queue[0]; due; due = queue[0]) {
      const held = records.byKey.get(due.key);
      if (held && held.serial === due.serial && isQueuedAt(held.row, due.at)) {
        return { at: due.at, record: held.row };
      }
      takeDue(queue, Infinity);
    }
    state.due.delete(sender);
    return undefined;
  };
  return {
    due: (now) => {
      for (const [sender, queue] of state.due) {
        const found = first(sender, queue);
        if (!found || found.at > now) continue;
        // Its next turn comes after all others'.
        state.due.delete(sender);
        state.due.set(sender, queue);
        return found.record;
      }
      return undefined;
    },
    nextDue: () => {
      let next: number | undefined;
      for (const [sender, queue] of state.due) {
        const at = first(sender, queue)?.at;
        if (at !== undefined && (next === undefined || at < next)) next = at;
      }
      return next;
    },
    far: (after, most) => (state.latestDue <= after ? [] : far(state, after, most)),
    ...suspectRows(state),
    parked: (sender, taskId) => {
      const { parked, records } = senderState(state, sender);
      let oldest: HeldRecord | undefined;
      for (const key of parked.get(taskId) ?? []) {
        const held = records.byKey.get(key);
        if (held && (!oldest || held.serial < oldest.serial)) oldest = held;
      }
      return oldest?.row;
    },
    page: (query, now) => page(state, query, now),
  };
}

/** Goes through all of them: only a clock that was set back leaves any. */
function far(state: MemoryState, after: number, most: number): readonly RecordRow[] {
  const rows = [...state.senders.values()]
    .flatMap(({ records }) => [...records.byKey.values()].map(({ row }) => ({ row, at: dueAt(row) ?? 0 })))
    .sort((a, b) => b.at - a.at);
  state.latestDue = rows[0]?.at ?? 0;
  return rows
    .filter(({ at }) => at > after)
    .slice(0, most)
    .map(({ row }) => row);
}

/** Few, and looked through: a memory store is for tests and development. */
function suspectRows(state: MemoryState): Pick<QueueRows, 'dueSuspect' | 'nextSuspect'> {
  // In the order of their becoming suspects.
  const all = (): readonly HeldRecord[] =>
    [...state.suspects.values()].flatMap(
      ({ sender, key }) => senderState(state, sender).records.byKey.get(key) ?? [],
    );
  const dueOf = ({ row }: HeldRecord): number => dueAt(row) ?? Infinity;
  return {
    dueSuspect: (now) =>
      all()
        .filter((held) => dueOf(held) <= now)
        .sort((a, b) => a.row.crashes - b.row.crashes || a.serial - b.serial)[0]?.row,
    nextSuspect: () => (state.suspects.size === 0 ? undefined : Math.min(...all().map(dueOf))),
  };
}

/** Goes through all of them: a memory store is for tests and development. */
function page(state: MemoryState, { state: wanted, sender, limit, after }: InboxQuery, now: number): RowPage {
  const senders = sender === undefined ? [...state.senders.values()] : [senderState(state, sender)];
  const found = senders.flatMap(({ records }) =>
    [...records.byKey.values()].filter(
      ({ row: { state, expiresAt } }) => state === wanted && (expiresAt === null || expiresAt > now),
    ),
  );
  const behind = found
    .filter(({ serial }) => serial > Number(after ?? 0))
    .sort((a, b) => a.serial - b.serial);
  const rows = behind.slice(0, limit);
  const last = rows.at(-1);
  const hasMore = behind.length > rows.length && last !== undefined;
  return { rows: rows.map(({ row }) => row), ...(hasMore && { next: String(last.serial) }) };
}

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
    noteExpiry(state.expiry, of.expiring.records, row.key, last?.expiresAt, row.expiresAt);
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
      const { tasks, expiring } = senderState(state, row.sender);
      noteExpiry(state.expiry, expiring.tasks, row.id, find(tasks, row.id)?.expiresAt, row.expiresAt);
      put(tasks, row.id, row);
    },
    notification: (sender, id, now) => unexpired(find(senderState(state, sender).notifications, id), now),
    saveNotification: (row) => {
      const { notifications, expiring } = senderState(state, row.sender);
      const before = find(notifications, row.id)?.expiresAt;
      noteExpiry(state.expiry, expiring.notifications, row.id, before, row.expiresAt);
      put(notifications, row.id, row);
    },
  };
}
