import type { InboxQuery } from '../contract.ts';
import { dueAt } from '../rules/park.ts';
import type { RecordRow, QueueRows, RowPage } from '../rules/rows.ts';
import { push, takeDue, type TimedQueue } from './expiry-queue.ts';
import type { Due, HeldRecord, MemoryState, SenderState } from './state.ts';
import { senderState } from './state.ts';

/** @param before what `row` replaces; undefined for a new record. */
export function noteDue(
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
export function dueRows(
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
  const more = behind.length > rows.length && last !== undefined;
  return { rows: rows.map(({ row }) => row), ...(more && { next: String(last.serial) }) };
}
