import type { InboxQuery } from '../contract.ts';
import { dueAt } from '../kernel/park.ts';
import type { RecordRow, RowPage, Rows } from '../kernel/rows.ts';
import { push, takeDue } from './expiry-queue.ts';
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
  if (at !== null && (!before || dueAt(before) !== at)) push(state.due, { at, serial, sender, key });
  if (row.task) notePark(of, row.task.id, row);
}

function notePark({ parked }: SenderState, taskId: string, { key, parkedUntil }: RecordRow): void {
  const keys = parked.get(taskId);
  if (parkedUntil > 0) {
    parked.set(taskId, (keys ?? new Set()).add(key));
  } else if (keys?.delete(key) && keys.size === 0) {
    parked.delete(taskId);
  }
}

/** `Rows` for workers and operators. */
export function dueRows(state: MemoryState): Pick<Rows, 'due' | 'nextDue' | 'parked' | 'page'> {
  const first = (): { readonly due: Due; readonly record: RecordRow } | undefined => {
    for (let due = state.due[0]; due; due = state.due[0]) {
      const of = senderState(state, due.sender);
      const held = of.records.byKey.get(due.key);
      if (held && held.serial === due.serial && dueAt(held.row) === due.at) return { due, record: held.row };
      takeDue(state.due, Infinity);
    }
    return undefined;
  };
  return {
    due: (now) => {
      const found = first();
      return found && found.due.at <= now ? found.record : undefined;
    },
    nextDue: () => first()?.due.at,
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
