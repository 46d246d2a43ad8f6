import type { InboxQuery } from '../contract.ts';
import { dueAt } from '../kernel/park.ts';
import type { RecordRow, RowPage, Rows } from '../kernel/rows.ts';
import { push, takeDue } from './expiry-queue.ts';
import type { Due, MemoryState, SenderState } from './state.ts';
import { senderState } from './state.ts';

/** To be called before `row` replaces the one that its key has. */
export function noteDue(state: MemoryState, of: SenderState, row: RecordRow): void {
  const { sender, key } = row;
  const serial = of.serials.get(key) ?? 0;
  const before = of.records.get(key);
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
      const record = of.records.get(due.key);
      const holds = record && of.serials.get(due.key) === due.serial && dueAt(record) === due.at;
      if (holds) return { due, record };
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
      const { parked, records, serials } = senderState(state, sender);
      const keys = [...(parked.get(taskId) ?? [])];
      const oldest = keys.sort((a, b) => (serials.get(a) ?? 0) - (serials.get(b) ?? 0))[0];
      return oldest === undefined ? undefined : records.get(oldest);
    },
    page: (query, now) => page(state, query, now),
  };
}

/** Goes through all of them: a memory store is for tests and development. */
function page(state: MemoryState, { state: wanted, sender, limit, after }: InboxQuery, now: number): RowPage {
  const senders = sender === undefined ? [...state.senders.values()] : [senderState(state, sender)];
  const found = senders.flatMap(({ records, serials }) =>
    [...records.values()]
      .filter(({ state, expiresAt }) => state === wanted && (expiresAt === null || expiresAt > now))
      .map((record) => ({ record, serial: serials.get(record.key) ?? 0 })),
  );
  const behind = found
    .filter(({ serial }) => serial > Number(after ?? 0))
    .sort((a, b) => a.serial - b.serial);
  const rows = behind.slice(0, limit);
  const last = rows.at(-1);
  const more = behind.length > rows.length && last !== undefined;
  return { rows: rows.map(({ record }) => record), ...(more && { next: String(last.serial) }) };
}
