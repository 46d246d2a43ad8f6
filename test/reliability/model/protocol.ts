import type { RegistrationRow, RowId } from '../../../src/stores/index.ts';
import {
  type AnyRow,
  type Attempt,
  attemptOf,
  type Batch,
  type Entry,
  fitted,
  nameOf,
  newEntry,
  type NonceRow,
  type QueueRows,
  type RecordRow,
  type TaskRow,
} from '../../../src/stores/for-tests.ts';
import type { Kept } from './rows.ts';
import { dueRows } from './rows.ts';
import type { Protocol, Seen, World } from './world.ts';
import { SELLER } from './world.ts';

export const SOUND: Protocol = {
  compares: () => true,
  refusesOld: true,
  takesSiblings: false,
  parksOnTask: true,
};

/** A plan whose clock is older is refused. Ms. */
export const OLD_MS = 1000;

/** Each writing of a row is another object: what it is, is its version, and none comes twice. */
const versions = new WeakMap<object, number>();
let last = 0;

export function versionOf(row: object): number {
  const known = versions.get(row) ?? (last += 1);
  versions.set(row, known);
  return known;
}

const recordId = (key: string): RowId => ({ scope: { sender: SELLER }, kind: 'record', id: fitted(key) });
const taskId = (id: string): RowId => ({ scope: { sender: SELLER }, kind: 'task', id: fitted(id) });
const streamId = (id: string): RowId => ({ scope: { sender: SELLER }, kind: 'stream', id: fitted(id) });
const nonceId = ({ keyid, nonce }: NonceRow): RowId => ({
  scope: { sender: SELLER, keyid: fitted(keyid) },
  kind: 'nonce',
  id: fitted(nonce),
});

/** As a backend gives them: with a task come the two oldest records that wait for it. */
function batchOf(kept: Kept): Batch {
  const entries = new Map<string, Entry>();
  const add = (id: RowId, row: AnyRow): Entry => {
    const name = nameOf(id);
    const entry = newEntry(id, name, versionOf(row), row, true);
    entries.set(name, entry);
    return entry;
  };
  const parked = new Map<string, Entry[]>();
  for (const row of kept.records.values()) {
    const entry = add(recordId(row.key), row);
    entry.storedBody = kept.bodies.get(row.key);
    if (row.parkedUntil === 0 || !row.task) continue;
    parked.set(row.task.id, [...(parked.get(row.task.id) ?? []), entry]);
  }
  for (const row of kept.tasks.values()) {
    const first = (parked.get(row.id) ?? []).slice(0, 2);
    add(taskId(row.id), row).waiters = { first, areAll: first.length < 2 };
  }
  for (const row of kept.nonces.values()) add(nonceId(row), row);
  for (const row of kept.streams.values()) add(streamId(row.id), row);
  const none = { scope: { sender: '' }, rows: 0, bytes: 0, seenAt: Infinity };
  return {
    entries,
    remembered: () => undefined,
    counts: () => none,
    nonces: () => 0,
    fresh: new Set(),
    old: new Map(),
    swept: new Set(),
    sweptAt: () => undefined,
    processes: {
      get: (id: string) => (kept.processes.has(id) ? Infinity : 0),
    } as Map<string, number>,
  };
}

/** Answers that rest on what was read, and that nothing is written for. */
const AT_HAND: ReadonlySet<unknown> = new Set([undefined, 'lost', 'busy', 'free', 'absent']);

function isAnswerable(result: unknown, { writes }: Attempt): boolean {
  if (writes.size > 0) return false;
  return AT_HAND.has(result) || (typeof result === 'object' && result !== null && 'events' in result);
}

/** What the operation plans on `seen`, by the driver's own code, and whether it is taken as the rows are now. */
export function driven<T>(
  world: World,
  protocol: Protocol,
  operation: (rows: QueueRows, now: number) => T,
): { readonly after: World; readonly result: T } {
  const { view } = world;
  const seen: Seen = view?.seen ?? world;
  const attempt = attemptOf(batchOf(seen.kept), {
    plan: () => undefined,
    isBarrier: () => true,
    guessesAbsent: true,
    tries: 0,
  });
  const queue = dueRows({ now: () => seen.kept.records });
  const rows: QueueRows = {
    ...attempt.rows,
    ...queue,
    parked: (sender, taskId) => attempt.rows.parked(sender, taskId),
    // All is at hand: what is not is absent.
    needRows: () => {},
    page: () => ({ rows: [...seen.kept.records.values()] }),
    counts: () => [],
  };
  const result = operation(rows, seen.now);
  if (isAnswerable(result, attempt))
    return { after: { ...world, view: { ...view, outcome: 'taken' } }, result };
  if (!view?.seen) return { after: { ...world, view: { outcome: 'unseen' } }, result };
  if (!isTaken(world, protocol, view.seen, attempt)) {
    return { after: { ...world, view: { ...view, outcome: 'refused' } }, result };
  }
  const kept = written(world.kept, seen.kept, attempt, protocol);
  return { after: { ...world, kept, planned: seen.kept, view: { ...view, outcome: 'taken' } }, result };
}

function isTaken(world: World, protocol: Protocol, seen: Seen, { reads, writes }: Attempt): boolean {
  if (protocol.refusesOld && world.now - seen.now > OLD_MS) return false;
  if (protocol.takesSiblings && world.planned === seen.kept) return true;
  const now = batchOf(world.kept).entries;
  return [...reads].every(
    (entry) => !protocol.compares(entry, writes.has(entry)) || now.get(entry.name)?.version === entry.version,
  );
}

function written(kept: Kept, seen: Kept, { writes }: Attempt, protocol: Protocol): Kept {
  const { records, tasks, nonces, bodies, streams } = {
    records: new Map(kept.records),
    tasks: new Map(kept.tasks),
    nonces: new Map(kept.nonces),
    bodies: new Map(kept.bodies),
    streams: new Map(kept.streams),
  };
  for (const [{ id }, { row, body }] of writes) {
    if (id.kind === 'nonce') nonces.set((row as NonceRow).nonce, row as NonceRow);
    else if (id.kind === 'stream') streams.set((row as RegistrationRow).id, row as RegistrationRow);
    else if (id.kind === 'record') {
      const record = row as RecordRow;
      records.set(record.key, record);
      if (body) bodies.set(record.key, body);
      if (body === null) bodies.delete(record.key);
    } else if (id.kind === 'task') {
      const task = row as TaskRow;
      const before = seen.tasks.get(task.id);
      const isParking = before && before.holder === task.holder && before.mark === task.mark;
      if (protocol.parksOnTask || !isParking) tasks.set(task.id, task);
    }
  }
  return { ...kept, records, tasks, nonces, bodies, streams };
}
