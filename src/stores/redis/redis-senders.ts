import type { DueRequest, DueResult, ListCount, NoncesOf, Page, Row, RowId, Scope } from '../backend.ts';
import type { InboxQuery } from '../store.ts';
import type { Seen } from './redis-rows.ts';
import { listName, rowOf, seenOf, textOf } from './redis-rows.ts';
import type { Session } from './sender-list.ts';

/** Senders are in different slots, so no script sees them all: what is asked of all of them is asked of each. */

/** Senders asked at the same time. */
const AT_ONCE = 64;

/** Runs `ask` for every sender, some at a time. */
export async function forEach<T>(
  senders: readonly string[],
  ask: (sender: string) => Promise<T>,
): Promise<T[]> {
  const out: T[] = [];
  for (let at = 0; at < senders.length; at += AT_ONCE) {
    out.push(...(await Promise.all(senders.slice(at, at + AT_ONCE).map(ask))));
  }
  return out;
}

/** When the first rows of a sender come due, and its server's clock. */
interface Schedule {
  readonly sender: string;
  readonly now: number;
  readonly at: readonly number[];
  /** How many are due, as far as they were looked for: those whose time has come, and those too far ahead. */
  readonly due: number;
  /** When the first one comes whose time has not come yet; Infinity: none is known. */
  readonly next: number;
  /** Of its first suspect. */
  readonly suspectAt: number;
  readonly isSuspectDue: boolean;
}

async function schedules(
  session: Session,
  senders: readonly string[],
  asked: { readonly max: number; readonly longest: number },
): Promise<Schedule[]> {
  return forEach(senders, async (sender) => {
    const reply = await session.read('due', sender, asked);
    const [now, found, [, suspect = Infinity], far, farSuspects] = reply as [
      number,
      unknown[],
      unknown[],
      number,
      number,
    ];
    const at = found.filter((_, place) => place % 2 === 1).map((one) => Number(textOf(one)));
    const come = at.filter((one) => one <= now).length;
    const suspectAt = Number(textOf(suspect));
    const isSuspectDue = suspectAt <= now || farSuspects > 0;
    return { sender, now, at, due: come + far, next: at[come] ?? Infinity, suspectAt, isSuspectDue };
  });
}

interface SenderRank {
  readonly sender: string;
  /** How many of its sender come before it. */
  readonly rank: number;
}

interface Found extends SenderRank {
  readonly id: RowId;
}

/** The first of each sender, then the second of each; senders by their names, from the one behind `after` on. */
export function byRank(after: string): (a: SenderRank, b: SenderRank) => number {
  const isBefore = (sender: string): number => Number(sender <= after);
  return (a, b) =>
    a.rank - b.rank || isBefore(a.sender) - isBefore(b.sender) || (a.sender < b.sender ? -1 : 1);
}

/** `Backend.due`: first each sender is asked when its rows come due, then they are taken from those that have some. */
export async function due(session: Session, request: DueRequest): Promise<DueResult> {
  const { max, holdMs, longestMs: longest, senders, after } = request;
  const all = [...new Set([...senders, ...(await session.registry.senders())])];
  if (request.suspects) return dueSuspect(session, all, { hold: holdMs, longest });
  const asked = await schedules(session, all, { max: max + 1, longest });
  const shares = sharesOf(asked, max, after);
  const seen: Seen[] = [];
  const found: Found[] = [];
  await forEach([...shares.keys()], async (sender) => {
    const reply = await session.read('take', sender, { max: shares.get(sender), hold: holdMs, longest });
    const taken = seenOf(sender, [], reply);
    seen.push(taken);
    const [ids] = taken.rest as readonly unknown[][];
    for (const [place, id] of (ids ?? []).entries()) {
      if (place % 2 === 1) continue;
      found.push({ id: { scope: { sender }, kind: 'record', id: textOf(id) }, sender, rank: place / 2 });
    }
  });
  const next = Math.min(
    ...asked.map(({ sender, due, next, now }) => (due > (shares.get(sender) ?? 0) ? 0 : next - now)),
  );
  return {
    now: asked.length === 0 ? await session.clock() : Math.min(...[...asked, ...seen].map(({ now }) => now)),
    rows: seen.flatMap(({ rows }) => rows),
    counts: [],
    nonces: undefined,
    due: found.toSorted(byRank(after)).map(({ id }) => id),
    nextDueMs: next === Infinity ? undefined : Math.max(0, next),
    isSuspectDue: asked.some((one) => one.isSuspectDue),
  };
}

/** A sender's suspect whose turn it is, and how many of its are due. */
interface FoundSuspect {
  readonly seen: Seen;
  readonly id: RowId;
  readonly crashes: number;
  readonly place: number;
  readonly due: number;
}

interface SuspectAsked {
  /** Ms; 0: it is only looked at. */
  readonly hold: number;
  readonly longest: number;
}

async function suspectOf(session: Session, sender: string, asked: SuspectAsked): Promise<FoundSuspect> {
  const seen = seenOf(sender, [], await session.read('suspect', sender, asked));
  const [crashes, place, id, many] = seen.rest;
  return {
    seen,
    id: { scope: { sender }, kind: 'record', id: textOf(id) },
    crashes: Number(crashes),
    place: Number(textOf(place)),
    due: Number(many),
  };
}

/** Each sender is asked for the one whose turn it is among its own, then the first of these is taken. */
async function dueSuspect(
  session: Session,
  senders: readonly string[],
  wanted: SuspectAsked,
): Promise<DueResult> {
  const asked = await forEach(senders, (sender) => suspectOf(session, sender, { ...wanted, hold: 0 }));
  const found = asked.filter(({ due }) => due > 0);
  const [first] = found.toSorted((a, b) => a.crashes - b.crashes || a.place - b.place);
  const taken = first && (await suspectOf(session, first.id.scope.sender, wanted));
  const many = found.reduce((sum, { due }) => sum + due, 0);
  return {
    now: taken?.seen.now ?? asked[0]?.seen.now ?? (await session.clock()),
    rows: taken?.seen.rows ?? [],
    counts: [],
    nonces: undefined,
    due: taken && taken.due > 0 ? [taken.id] : [],
    nextDueMs: undefined,
    isSuspectDue: many > 1,
  };
}

/** How many of the `max` rows that are to be taken are whose: senders take turns. */
function sharesOf(asked: readonly Schedule[], max: number, after: string): ReadonlyMap<string, number> {
  const all = asked.flatMap(({ sender, due }) =>
    Array.from({ length: due }, (_, rank) => ({ sender, rank })),
  );
  const shares = new Map<string, number>();
  for (const { sender } of all.toSorted(byRank(after)).slice(0, max)) {
    shares.set(sender, (shares.get(sender) ?? 0) + 1);
  }
  return shares;
}

/** `Backend.overdueMs`. */
export async function overdueMs(session: Session): Promise<number | undefined> {
  const asked = await schedules(session, await session.registry.senders(), { max: 1, longest: 0 });
  const longest = Math.max(
    ...asked.map(({ at: [first = Infinity], suspectAt, now }) => now - Math.min(first, suspectAt)),
  );
  return longest >= 0 ? longest : undefined;
}

interface Placed {
  readonly place: number;
  readonly row: Row;
}

/** `Backend.page`. */
export async function page(session: Session, query: InboxQuery): Promise<Page> {
  const { state, sender, limit, after = '0' } = query;
  const senders = sender === undefined ? await session.registry.senders() : [sender];
  const found = await forEach(senders, async (of) => {
    const asked = { list: listName(state), behind: after, limit: limit + 1 };
    return placedRows(of, (await session.read('page', of, asked)) as unknown[]);
  });
  const all = found.flat().toSorted((a, b) => a.place - b.place);
  const end = endOf(all, limit);
  const last = all[end - 1];
  const rows = all.slice(0, end).map(({ row }) => row);
  return { rows, ...(all.length > end && last && { next: String(last.place) }) };
}

/** `Backend.listCounts`. What has expired goes first, where there is something to count: the server's counts have it. */
export async function listCounts(session: Session): Promise<readonly ListCount[]> {
  const counted = async (sender: string): Promise<readonly unknown[]> =>
    (await session.read('counted', sender, {})) as readonly unknown[];
  const found = await forEach(await session.registry.senders(), async (sender) => {
    if ((await counted(sender)).length === 0) return [];
    while ((await sweepSender(session, sender, OF_RECORDS)) === OF_RECORDS.most);
    return countsOf(sender, await counted(sender));
  });
  return found.flat();
}

function countsOf(sender: string, reply: readonly unknown[]): ListCount[] {
  const out: ListCount[] = [];
  for (let at = 0; at < reply.length; at += 4) {
    const [letter, count, name = '', text = ''] = reply.slice(at, at + 4).map(textOf);
    const list = letter === 'q' ? 'queued' : letter === 'l' ? 'leased' : 'dead';
    out.push({ list, count: Number(count), oldest: rowOf(sender, name, text) });
  }
  return out;
}

/** Rows of two senders can have one place. A page ends before them or behind them: the next one begins after a place. */
function endOf(all: readonly Placed[], limit: number): number {
  let end = limit;
  while (end > 0 && all[end] && all[end]?.place === all[end - 1]?.place) end -= 1;
  if (end > 0) return end;
  return all.filter(({ place }) => place === all[0]?.place).length;
}

function placedRows(sender: string, reply: readonly unknown[]): Placed[] {
  const out: Placed[] = [];
  for (let at = 0; at < reply.length; at += 3) {
    const [place, name, text] = reply.slice(at, at + 3).map(textOf);
    out.push({ place: Number(place), row: rowOf(sender, name ?? '', text ?? '') });
  }
  return out;
}

/** `Backend.sweep`. */
export async function sweep(
  session: Session,
  of: Scope | NoncesOf | 'nonces',
  most: number,
): Promise<number> {
  if (of !== 'nonces' && 'noncesOf' in of) {
    return sweepSender(session, of.noncesOf, { most, keyid: '', nonces: true });
  }
  if (of !== 'nonces') return sweepSender(session, of.sender, { most, keyid: of.keyid ?? '', nonces: false });
  return session.sweepsOfAll(() => sweepAll(session, most));
}

async function sweepAll(
  session: Session,
  most: number,
): Promise<{ readonly gone: number; readonly senders: number }> {
  const senders = await session.registry.senders();
  let gone = 0;
  // All of them, for each is counted by it.
  for (let at = 0; at < senders.length; at += AT_ONCE) {
    const some = senders.slice(at, at + AT_ONCE);
    const left = Math.max(0, most - gone);
    const each = { most: Math.ceil(left / some.length), keyid: '', nonces: true };
    for (const count of await forEach(some, (sender) => sweepSender(session, sender, each))) gone += count;
  }
  return { gone, senders: senders.length };
}

interface Sweep {
  readonly most: number;
  /** '': none. */
  readonly keyid: string;
  /** Of all key ids. */
  readonly nonces: boolean;
}

const OF_RECORDS: Sweep = { most: 1024, keyid: '', nonces: false };

async function sweepSender(session: Session, sender: string, asked: Sweep): Promise<number> {
  const [gone, nonces] = (await session.read('sweep', sender, asked)) as [number, number];
  session.counts.seen(sender, nonces);
  return gone;
}

/** Of what each of senders that fell silent has left. */
const SILENT_MOST = 1024;

/** Deletes what has expired of one sender more, whichever process stored it. */
export function silentSweeper(session: () => Session): () => Promise<void> {
  let turn = 0;
  return async () => {
    const senders = await session().registry.senders();
    const sender = senders[(turn += 1) % senders.length];
    if (sender === undefined) return;
    for (const nonces of [false, true]) {
      await sweepSender(session(), sender, { most: SILENT_MOST, keyid: '', nonces });
    }
  };
}
