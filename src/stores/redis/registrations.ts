import type { ListRequest, Row, TurnRequest, TurnResult } from '../port.ts';
import { byRank, forEach } from './senders.ts';
import { letterOf, rowOf, textOf } from './rows.ts';
import type { Session } from './registry.ts';

/** Names and rows, alternating. */
function rowsOf(sender: string, reply: readonly unknown[]): readonly Row[] {
  const rows: Row[] = [];
  for (let at = 0; at < reply.length; at += 2) {
    rows.push(rowOf(sender, textOf(reply[at]), textOf(reply[at + 1])));
  }
  return rows;
}

/** `Backend.registrations.due`. */
export async function turns(
  session: Session,
  { kind, max, senders, after }: TurnRequest,
): Promise<TurnResult> {
  const all = [...new Set([...senders, ...(await session.registry.senders())])];
  const told = { kind: letterOf(kind), max: max + 1 };
  const asked = await forEach(all, async (sender) => {
    const [now, rows, next] = (await session.read('turns', sender, told)) as [number, unknown[], unknown];
    const waitMs = textOf(next) === '' ? Infinity : Number(textOf(next)) - now;
    return { now, waitMs, rows: rowsOf(sender, rows) };
  });
  const found = asked
    .flatMap(({ rows }) => rows.map((row, rank) => ({ row, rank, sender: row.scope.sender })))
    .toSorted(byRank(after));
  const waitMs = found.length > max ? 0 : Math.min(...asked.map((one) => one.waitMs));
  return {
    now: asked.length === 0 ? await session.clock() : Math.min(...asked.map(({ now }) => now)),
    rows: found.slice(0, max).map(({ row }) => row),
    nextDueMs: waitMs === Infinity ? undefined : Math.max(0, waitMs),
  };
}

/** `Backend.registrations.list`. */
export async function listed(
  session: Session,
  { kind, list, sender, limit, after }: ListRequest,
): Promise<readonly Row[]> {
  const known = sender === undefined ? await session.registry.senders() : [sender];
  const rows: Row[] = [];
  for (const of of known.filter((one) => one !== '' || sender === '').toSorted()) {
    if (after && of < after.sender) continue;
    const behind = of === after?.sender ? after.id : '';
    const asked = { kind: letterOf(kind), list: list ?? false, behind, limit: limit - rows.length };
    rows.push(...rowsOf(of, (await session.read('listed', of, asked)) as unknown[]));
    if (rows.length >= limit) break;
  }
  return rows;
}
