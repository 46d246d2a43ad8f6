// Keeps the queue of a seller's tasks that wait because too many requests to the seller run, first come first served
// (calls.md §3.3). The row of each task in the queue names the next task. Used when polls begin and end.
import type { RegistrationRow, RegistrationRows } from '../stores/store.ts';
import {
  FIRST_TOOK_MS,
  type Line,
  saveSellerRow,
  type SellerRow,
  type Watch,
  watchIn,
  watchRow,
} from '../registrations/watch-task.ts';

export const isInLine = ({ line }: SellerRow, { ticket }: Watch): boolean =>
  ticket !== undefined && line !== undefined && ticket > line.called;

export function outOfLine({ ticket: _called, follower: _other, ...watch }: Watch): Watch {
  return watch;
}

/**
 * Puts a task at the end of the queue. When a poll ends, the first task in the queue gets its turn. If a process dies,
 * its poll never ends. So each task also becomes due by itself, long after its turn should have come.
 */
export function standInLine(
  { rows, now }: { readonly rows: RegistrationRows; readonly now: number },
  row: RegistrationRow,
  seller: SellerRow,
  { leaseMs, perSeller }: { readonly leaseMs: number; readonly perSeller: number },
): void {
  const { sender, id } = row;
  const { line = { given: 0, called: 0 }, tookMs = FIRST_TOOK_MS } = seller;
  const watch = watchIn(row);
  const waits = isInLine(seller, watch);
  const { ticket = 0, ...is } = waits ? watch : { ...outOfLine(watch), ticket: line.given + 1 };
  const dueAt = Math.ceil(now + leaseMs + (2 * (ticket - line.called) * tookMs) / perSeller);
  rows.save(watchRow(row, { ...is, ticket }, 'watched', { dueAt }));
  if (waits) return;
  const last = line.last === undefined ? undefined : rows.get('watch', line.last);
  if (last) rows.save({ ...last, value: JSON.stringify({ ...watchIn(last), follower: id } satisfies Watch) });
  const longer = { ...line, first: line.first ?? id, last: id, given: line.given + 1 };
  saveSellerRow(rows, sender, { ...seller, line: longer });
}

/**
 * Returns the queue without its first task.
 * @param watch the row of the first task. If it does not name the next task, the queue counts as empty, and the other
 *   tasks become due by themselves.
 */
export function withoutFirst({ first, last, given, called }: Line, watch: Watch | undefined): Line {
  const { ticket = called, follower } = watch ?? {};
  if (first === last || follower === undefined || last === undefined) return { given, called: given };
  return { first: follower, last, given, called: Math.max(called, ticket) };
}
