// Keeps the rows of the rules in maps: reads, writes, searches and purges (admission.md §8.1, §9.1).
// Called by `src/stores/memory.ts`; the rules run over these rows in one synchronous step.
import type { InboxCount, InboxQuery, RegistrationRow } from '../store.ts';
import {
  inTurns,
  isTurn,
  type RegistrationName,
  type RegistrationSearch,
} from '../rules/registration-rules.ts';
import type { QueueRows, RecordRow, RowPage, Rows, Usage } from '../rules/rule-rows.ts';
import { FAR_WAIT_MS } from '../constants.ts';
import { dueAt, isDue } from '../rules/task-wait.ts';
import {
  enter,
  find,
  firstOf,
  forgetExpired,
  type HeldRecord,
  isOver,
  firstAfter,
  allOf,
  leave,
  type MemoryState,
  noncesOf,
  put,
  type SenderState,
  senderState,
} from './memory-state.ts';

/**
 * The interval at which expired rows of all tables are deleted. Some rows are never read again, so a read would not
 * find them expired. Ms: 1 min.
 */
const SWEEP_MS = 60_000;

export type MemoryRows = QueueRows & RegistrationSearch;

/**
 * Makes `Rows` over maps, for tests and development. Searches go through whole maps. Each step is atomic, because
 * JavaScript runs one step at a time.
 */
export function memoryRows(state: MemoryState): MemoryRows {
  const of = (sender: string): SenderState => senderState(state, sender);
  return {
    ...recordRows(state),
    ...queueRows(state),
    ...registrationRows(state),
    nonce: ({ sender, keyid, nonce }, now) => {
      const table = of(sender).nonces.get(keyid);
      return table && find(table, nonce, now);
    },
    saveNonce: (row) => {
      const table = noncesOf(of(row.sender), row.keyid);
      const before = table.rows.size;
      put(table, row.nonce, row);
      state.allNonces += table.rows.size - before;
    },
    task: (sender, id, now) => find(of(sender).tasks, id, now),
    saveTask: (row) => put(of(row.sender).tasks, row.id, row),
    notification: (sender, id, now) => find(of(sender).notifications, id, now),
    saveNotification: (row) => put(of(row.sender).notifications, row.id, row),
    isProcessAlive: (id, now) => (state.processes.get(id) ?? -Infinity) > now,
    saveProcess: ({ id, expiresAt }, now) => {
      for (const [other, until] of state.processes) if (until <= now) state.processes.delete(other);
      state.processes.set(id, expiresAt);
    },
    usage: (sender, keyid) => usage(state, of(sender), keyid),
    purge: (now) => sweep(state, now),
    purgeSender: (sender, now) => purge(state, of(sender), now),
    purgeNonces: (now, _atLeast, owner) => {
      const senders = owner ? [of(owner.sender)] : state.senders.values();
      for (const sender of senders) purgeNonces(state, sender, now);
    },
  };
}

function usage(state: MemoryState, sender: SenderState, keyid: string | undefined): Usage {
  const { records, tasks, notifications, registrations, nonces, pendingBytes } = sender;
  let registered = 0;
  for (const { rows } of Object.values(registrations)) registered += rows.size;
  let senderNonces = 0;
  for (const { rows } of nonces.values()) senderNonces += rows.size;
  return {
    entries: records.rows.size + tasks.rows.size + notifications.rows.size + registered,
    pendingBytes,
    nonces: keyid === undefined ? 0 : (nonces.get(keyid)?.rows.size ?? 0),
    senderNonces,
    allNonces: state.allNonces,
  };
}

function sweep(state: MemoryState, now: number): void {
  // The clock may have been set back, so the difference may be negative.
  if (Math.abs(now - state.sweptAt) < SWEEP_MS) return;
  state.sweptAt = now;
  for (const sender of state.senders.values()) {
    purge(state, sender, now);
    purgeNonces(state, sender, now);
  }
}

/** Deletes expired rows of all kinds but nonces. */
function purge(state: MemoryState, sender: SenderState, now: number): void {
  const { records, tasks, notifications, registrations } = sender;
  forgetExpired(records, now, (held) => leave(state, held));
  for (const table of [tasks, notifications]) forgetExpired<{ readonly expiresAt: number }>(table, now);
  for (const table of Object.values(registrations)) forgetExpired(table, now);
}

function purgeNonces(state: MemoryState, { nonces }: SenderState, now: number): void {
  for (const [keyid, table] of nonces) {
    forgetExpired(table, now, () => (state.allNonces -= 1));
    if (table.rows.size === 0) nonces.delete(keyid);
  }
}

const heldRecord = (row: RecordRow, body: Uint8Array | undefined, serial: number): HeldRecord => ({
  row,
  expiresAt: row.expiresAt,
  dueAt: dueAt(row) ?? Infinity,
  body,
  serial,
});

function recordRows(state: MemoryState): Pick<Rows, 'record' | 'body' | 'insertRecord' | 'updateRecord'> {
  /** Puts a record in the place of `before`, which may have expired. */
  const hold = (before: HeldRecord | undefined, held: HeldRecord): void => {
    if (before) leave(state, before);
    put(senderState(state, held.row.sender).records, held.row.key, held);
    enter(state, held);
  };
  const held = (sender: string, key: string): HeldRecord | undefined =>
    senderState(state, sender).records.rows.get(key);
  return {
    record: (sender, key, now) => find(senderState(state, sender).records, key, now)?.row,
    // Bodies are copied. The caller's bytes may be a view into a pooled buffer, and callers may change the bytes that
    // they receive.
    body: (sender, key) => new Uint8Array(held(sender, key)?.body ?? []),
    insertRecord: (row, body) => {
      const kept = body && row.bodyBytes > 0 ? new Uint8Array(body) : undefined;
      const serial = (state.serial += 1);
      hold(held(row.sender, row.key), heldRecord(row, kept, serial));
    },
    updateRecord: (row) => {
      const before = held(row.sender, row.key);
      if (!before) return;
      const body = row.bodyBytes > 0 ? before.body : undefined;
      hold(before, heldRecord(row, body, before.serial));
    },
  };
}

type Searches = Pick<
  QueueRows,
  'due' | 'nextDue' | 'dueSuspect' | 'nextSuspect' | 'parked' | 'page' | 'counts'
>;

/** Makes the searches that workers and operators use. */
function queueRows(state: MemoryState): Searches {
  const { due, suspects } = state;
  return {
    due: (now) => {
      for (const [sender, queue] of due) {
        const earliest = firstOf(queue);
        const first = earliest && earliest.dueAt <= now ? earliest : firstAfter(queue, now + FAR_WAIT_MS);
        if (!first) continue;
        // The sender is moved to the end, so that all others have their turn first.
        due.delete(sender);
        due.set(sender, queue);
        return first.row;
      }
      return undefined;
    },
    nextDue: () => earliest([...due.values()].flatMap((queue) => firstOf(queue) ?? [])),
    dueSuspect: (now) =>
      allOf(suspects)
        .filter((held) => isDue(held.dueAt, now))
        .toSorted((a, b) => a.row.crashes - b.row.crashes || a.serial - b.serial)[0]?.row,
    nextSuspect: () => firstOf(suspects)?.dueAt,
    parked: (sender, taskId) => {
      let oldest: HeldRecord | undefined;
      for (const held of senderState(state, sender).parked.get(taskId) ?? []) {
        if (!oldest || held.serial < oldest.serial) oldest = held;
      }
      return oldest?.row;
    },
    page: (query, now) => page(state, query, now),
    counts: (now) => counts(state, now),
  };
}

function earliest(found: readonly HeldRecord[]): number | undefined {
  return found.length > 0 ? found.map((held) => held.dueAt).reduce((a, b) => Math.min(a, b)) : undefined;
}

function page(state: MemoryState, { state: wanted, sender, limit, after }: InboxQuery, now: number): RowPage {
  const senders = sender === undefined ? [...state.senders.values()] : [senderState(state, sender)];
  const behind = senders
    .flatMap(({ records }) => [...records.rows.values()])
    .filter((held) => held.row.state === wanted && !isOver(held, now) && held.serial > Number(after ?? 0))
    .toSorted((a, b) => a.serial - b.serial);
  const rows = behind.slice(0, limit);
  const last = rows.at(-1);
  const hasMore = behind.length > rows.length && last !== undefined;
  return { rows: rows.map(({ row }) => row), ...(hasMore && { next: String(last.serial) }) };
}

function counts({ senders }: MemoryState, now: number): readonly InboxCount[] {
  const found = new Map<string, InboxCount>();
  for (const { records } of senders.values()) {
    for (const held of records.rows.values()) {
      const { sender, state, insertedAt } = held.row;
      if (isOver(held, now) || state === 'applied' || state === 'stale') continue;
      const name = `${state} ${sender}`;
      const { count = 0, oldestInsertedAt = insertedAt } = found.get(name) ?? {};
      const oldest = Math.min(oldestInsertedAt, insertedAt);
      found.set(name, { sender, state, count: count + 1, oldestInsertedAt: oldest });
    }
  }
  return [...found.values()];
}

function registrationRows(state: MemoryState): Omit<RegistrationSearch, 'task' | 'record' | 'updateRecord'> {
  const all = (kind: RegistrationRow['kind']): readonly RegistrationRow[] =>
    [...state.senders.values()].flatMap(({ registrations }) => [...registrations[kind].rows.values()]);
  return {
    registration: (kind, sender, id, now) => find(senderState(state, sender).registrations[kind], id, now),
    saveRegistration: (row, now) => {
      sweep(state, now);
      put(senderState(state, row.sender).registrations[row.kind], row.id, row);
    },
    dueRegistrations: (of, now) => {
      const dueOf = ({ registrations }: SenderState): readonly RegistrationRow[] =>
        [...registrations[of.kind].rows.values()]
          .filter(({ dueAt }) => dueAt !== null && isTurn(of.kind, dueAt, now))
          .toSorted((a, b) => (a.dueAt ?? 0) - (b.dueAt ?? 0));
      return inTurns(new Map([...state.senders].map(([name, sender]) => [name, dueOf(sender)])), of);
    },
    nextRegistration: (kind) => {
      let next: number | undefined;
      for (const { dueAt } of all(kind)) if (dueAt !== null) next = Math.min(next ?? dueAt, dueAt);
      return next;
    },
    registrations: ({ kind, list, sender, limit, after }) =>
      all(kind)
        .filter((row) => (sender === undefined ? row.sender !== '' : row.sender === sender))
        .filter((row) => list === undefined || row.list === list)
        .filter((row) => !after || compared(row, after) > 0)
        .toSorted(compared)
        .slice(0, limit),
  };
}

/** Orders rows by sender and id. */
function compared(a: RegistrationName, b: RegistrationName): number {
  const [one, other] = a.sender === b.sender ? [a.id, b.id] : [a.sender, b.sender];
  return one < other ? -1 : one > other ? 1 : 0;
}
