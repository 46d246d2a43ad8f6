import type { RegistrationRow } from '../../../src/stores/index.ts';
import {
  dueAt,
  isDue,
  type NonceRow,
  type NotificationRow,
  type QueueRows,
  type RecordRow,
  type TaskRow,
} from '../../../src/stores/for-tests.ts';

/**
 * What a store keeps, as a value: every state of the exploration has one of its own. One sender, and times short of
 * every retention: nothing expires, nothing meets a cap (the contract suite is where those are).
 */
export interface Kept {
  readonly nonces: ReadonlyMap<string, NonceRow>;
  /** In the order of their insertion: the oldest first. */
  readonly records: ReadonlyMap<string, RecordRow>;
  readonly bodies: ReadonlyMap<string, Uint8Array>;
  readonly tasks: ReadonlyMap<string, TaskRow>;
  readonly notifications: ReadonlyMap<string, NotificationRow>;
  /** Accounts of media buys, by their ids. */
  readonly streams: ReadonlyMap<string, RegistrationRow>;
  /** Whose rows hold. */
  readonly processes: ReadonlySet<string>;
}

export const NOTHING: Kept = {
  nonces: new Map(),
  records: new Map(),
  bodies: new Map(),
  tasks: new Map(),
  notifications: new Map(),
  streams: new Map(),
  processes: new Set(['0.0', '1.0']),
};

/** `Rows` for one atomic step over `from`, which stays as it is. */
export interface Draft {
  readonly rows: QueueRows;
  /** What is kept after the step. */
  readonly kept: () => Kept;
}

/** Copied at the first write. */
function table<R>(from: ReadonlyMap<string, R>) {
  let copy: Map<string, R> | undefined;
  return {
    now: (): ReadonlyMap<string, R> => copy ?? from,
    set: (key: string, row: R): void => void (copy ??= new Map(from)).set(key, row),
    drop: (key: string): void => void (copy ??= new Map(from)).delete(key),
  };
}

type Table<R> = ReturnType<typeof table<R>>;

export function draftOf(from: Kept): Draft {
  const nonces = table(from.nonces);
  const records = table(from.records);
  const bodies = table(from.bodies);
  const tasks = table(from.tasks);
  const notifications = table(from.notifications);
  const streams = table(from.streams);
  const save = (row: RecordRow): void => {
    records.set(row.key, row);
    if (row.bodyBytes === 0) bodies.drop(row.key);
  };
  const rows: QueueRows = {
    nonce: ({ nonce }) => nonces.now().get(nonce),
    saveNonce: (row) => nonces.set(row.nonce, row),
    record: (_sender, key) => records.now().get(key),
    body: (_sender, key) => bodies.now().get(key) ?? new Uint8Array(),
    insertRecord: (row, body) => {
      if (body && row.bodyBytes > 0) bodies.set(row.key, body);
      save(row);
    },
    updateRecord: save,
    task: (_sender, id) => tasks.now().get(id),
    saveTask: (row) => tasks.set(row.id, row),
    notification: (_sender, id) => notifications.now().get(id),
    saveNotification: (row) => notifications.set(row.id, row),
    registration: (_kind, _sender, id) => streams.now().get(id),
    saveRegistration: (row) => streams.set(row.id, row),
    ...dueRows(records),
    page: () => ({ rows: [...records.now().values()] }),
    counts: () => [],
    isProcessAlive: (id) => from.processes.has(id),
    saveProcess: () => {},
    usage: () => ({ entries: 0, pendingBytes: 0, nonces: 0, senderNonces: 0, allNonces: 0 }),
    purge: () => {},
    purgeSender: () => {},
    purgeNonces: () => {},
  };
  const kept = (): Kept => ({
    nonces: nonces.now(),
    records: records.now(),
    bodies: bodies.now(),
    tasks: tasks.now(),
    notifications: notifications.now(),
    streams: streams.now(),
    processes: from.processes,
  });
  return { rows, kept };
}

export function dueRows(
  records: Pick<Table<RecordRow>, 'now'>,
): Pick<QueueRows, 'due' | 'nextDue' | 'dueSuspect' | 'nextSuspect' | 'parked'> {
  const first = (now = Infinity): { readonly at: number; readonly row: RecordRow } | undefined => {
    let earliest: { readonly at: number; readonly row: RecordRow } | undefined;
    for (const row of records.now().values()) {
      const at = row.suspect ? null : dueAt(row);
      if (at !== null && isDue(at, now) && (!earliest || at < earliest.at)) earliest = { at, row };
    }
    return earliest;
  };
  return {
    due: (now) => first(now)?.row,
    nextDue: () => first()?.at,
    dueSuspect: (now) =>
      [...records.now().values()]
        .filter((row) => row.suspect && isDue(dueAt(row) ?? now + 1, now))
        .toSorted((a, b) => a.crashes - b.crashes)[0],
    nextSuspect: () => undefined,
    parked: (_sender, taskId) =>
      [...records.now().values()].find((row) => row.task?.id === taskId && row.parkedUntil > 0),
  };
}
