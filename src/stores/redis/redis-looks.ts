// Finds due rows of all senders, whose keys are in different slots (admission.md §4.12, §8.15). It asks one group of
// senders after another for the numbers of their due rows, until enough senders have some. Then it takes rows from
// these senders.
// Called by redis-backend.ts.
import type { DueRequest, DueResult, RowId, TurnRequest, TurnResult } from '../backend.ts';
import { isCrossSlot } from './redis-client.ts';
import type { Seen } from './redis-rows.ts';
import { registrationIndexes, letterOf, rowsOf, seenOf, textOf } from './redis-rows.ts';
import { forEach } from './redis-senders.ts';
import type { Session } from './sender-list.ts';

/**
 * The largest number of senders that one script examines. After each `AT_ONCE` senders, the search ends if enough of
 * the examined senders have due rows.
 */
const TOGETHER = 256;
const AT_ONCE = 4 * TOGETHER;
/** The value in place of `AT_ONCE` if each sender needs a script of its own. */
const AT_ONCE_APART = 64;

/** The numbers of due rows of some senders, at the time of the Redis server that has them. */
interface Look {
  readonly now: number;
  /** The earliest due time that is still ahead; Infinity if there is none. Unix ms. */
  readonly next: number;
  /** The earliest due time of all rows, past or ahead, suspects (events whose process died) included. Unix ms. */
  readonly first: number;
  readonly isSuspectDue: boolean;
  /** The senders that have due rows, in the order of their turns, each with the number of these rows. */
  readonly found: readonly (readonly [sender: string, count: number])[];
}

/** The arguments of the script `lua/due.lua`, which counts the due rows of senders. */
interface LookAsked {
  readonly index: string;
  readonly max: number;
  readonly longest: number;
  readonly suspects?: boolean;
}

async function lookAt(session: Session, senders: readonly string[], asked: LookAsked): Promise<Look> {
  const reply = (await session.read('due', senders, asked)) as [number, unknown, unknown, number, number[]];
  const [now, next, first, suspects, pairs] = reply;
  const found: (readonly [string, number])[] = [];
  for (let at = 0; at < pairs.length; at += 2)
    found.push([senders[pairs[at] ?? -1] ?? '', pairs[at + 1] ?? 0]);
  const instant = (text: unknown): number => (textOf(text) === '' ? Infinity : Number(textOf(text)));
  return { now, next: instant(next), first: instant(first), isSuspectDue: suspects === 1, found };
}

async function looksAt(session: Session, senders: readonly string[], asked: LookAsked): Promise<Look[]> {
  const { slots } = session;
  const size = slots.areApart ? 1 : TOGETHER;
  const groups: (readonly string[])[] = [];
  for (let at = 0; at < senders.length; at += size) groups.push(senders.slice(at, at + size));
  try {
    return await forEach(groups, (group) => lookAt(session, group, asked));
  } catch (error) {
    if (slots.areApart || !isCrossSlot(error)) throw error;
    // The error means that several servers behind one address share the keys. So from now on each sender needs a script
    // of its own.
    slots.areApart = true;
    return looksAt(session, senders, asked);
  }
}

/**
 * Counts the due rows of each sender, one group of senders after another, as `senders` lists them.
 *
 * @param enough once this many senders have due rows, no further group is examined.
 */
async function looks(
  session: Session,
  senders: readonly string[],
  asked: LookAsked,
  enough = Infinity,
): Promise<readonly Look[]> {
  const out: Look[] = [];
  let found = 0;
  for (let at = 0; at < senders.length && found < enough;) {
    const some = senders.slice(at, at + (session.slots.areApart ? AT_ONCE_APART : AT_ONCE));
    const came = await looksAt(session, some, asked);
    out.push(...came);
    for (const look of came) found += look.found.length;
    at += some.length;
  }
  return out;
}

/** Returns all senders by name, beginning after the name `after`. The names up to `after` follow at the end. */
async function sendersInTurn(
  session: Session,
  { senders, after }: Pick<DueRequest, 'senders' | 'after'>,
): Promise<readonly string[]> {
  const all = [...new Set([...senders, ...(await session.registry.senders())])].sort();
  const at = all.findIndex((sender) => sender > after);
  return at <= 0 ? all : [...all.slice(at), ...all.slice(0, at)];
}

/**
 * Divides `max` rows among senders in turns: the first row of each, then the second of each. Returns the number of rows
 * for each sender.
 */
function sharesOf(asked: readonly Look[], max: number): ReadonlyMap<string, number> {
  const found = asked.flatMap((look) => look.found);
  const shares = new Map<string, number>();
  let left = max;
  for (let turn = 1; left > 0; turn += 1) {
    const more = found.filter(([, count]) => count >= turn).slice(0, left);
    if (more.length === 0) break;
    for (const [sender] of more) shares.set(sender, turn);
    left -= more.length;
  }
  return shares;
}

/**
 * Returns the ms until another row is due, besides the `max` rows that are taken. 0: one is due already; undefined:
 * none is known.
 */
function nextOf(asked: readonly Look[], max: number): number | undefined {
  const due = asked.flatMap(({ found }) => found).reduce((sum, [, count]) => sum + count, 0);
  if (due > max) return 0;
  const next = Math.min(...asked.map((look) => look.next - look.now));
  return next === Infinity ? undefined : Math.max(0, next);
}

const nowOf = async (session: Session, asked: readonly { readonly now: number }[]): Promise<number> =>
  asked.length === 0 ? session.clock() : Math.min(...asked.map(({ now }) => now));

/** Orders rows in turns: the first of each sender, then the second of each. Senders keep their order. */
function inTurns<T>(bySender: readonly (readonly T[])[]): readonly T[] {
  const most = Math.max(0, ...bySender.map(({ length }) => length));
  return Array.from({ length: most }, (_, turn) =>
    bySender.flatMap((rows) => rows.slice(turn, turn + 1)),
  ).flat();
}

/** Returns due rows, for `Backend.due`. */
export async function due(session: Session, request: DueRequest): Promise<DueResult> {
  const { max, holdMs: hold, longestMs: longest } = request;
  const all = await sendersInTurn(session, request);
  if (request.suspects) return dueSuspect(session, all, { hold, longest });
  const wanted = { index: 'd', max: max + 1, longest, suspects: true };
  const asked = await looks(session, all, wanted, max + 1);
  const shares = [...sharesOf(asked, max)];
  const taken = await forEach(shares, async ([sender, share]) =>
    seenOf(sender, [], await session.read('take', sender, { max: share, hold, longest })),
  );
  const found = taken.map((seen, at): readonly RowId[] => {
    const sender = shares[at]?.[0] ?? '';
    const [ids = []] = seen.rest as readonly unknown[][];
    return ids
      .filter((_, place) => place % 2 === 0)
      .map((id) => ({ scope: { sender }, kind: 'record', id: textOf(id) }));
  });
  return {
    now: await nowOf(session, [...asked, ...taken]),
    rows: taken.flatMap(({ rows }) => rows),
    counts: [],
    nonces: undefined,
    due: inTurns(found),
    nextDueMs: nextOf(asked, max),
    isSuspectDue: asked.some((one) => one.isSuspectDue),
  };
}

/**
 * The due suspect of a sender that is to run first, and the number of the sender's due suspects. A suspect is an event
 * whose process died while it ran.
 */
interface FoundSuspect {
  readonly seen: Seen;
  readonly id: RowId;
  readonly crashes: number;
  readonly place: number;
  readonly due: number;
}

interface SuspectAsked {
  /** The time for which the suspect is reserved for the caller, ms; 0: it is not reserved. */
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

/** The largest number of due suspects (events whose process died) that are counted for one sender. */
const SUSPECTS = 1000;

/**
 * Takes one suspect (an event whose process died) of all senders. Asks each sender that has due suspects for the one
 * that is to run first. Of the answers, takes the suspect with the fewest crashes, then the oldest.
 */
async function dueSuspect(
  session: Session,
  senders: readonly string[],
  wanted: SuspectAsked,
): Promise<DueResult> {
  const having = await looks(session, senders, { index: 'u', max: SUSPECTS, longest: wanted.longest });
  const asked = await forEach(
    having.flatMap((look) => look.found),
    ([sender]) => suspectOf(session, sender, { ...wanted, hold: 0 }),
  );
  const found = asked.filter(({ due: count }) => count > 0);
  const [first] = found.toSorted((a, b) => a.crashes - b.crashes || a.place - b.place);
  const taken = first && (await suspectOf(session, first.id.scope.sender, wanted));
  const many = found.reduce((sum, { due: count }) => sum + count, 0);
  return {
    now: taken?.seen.now ?? (await nowOf(session, having)),
    rows: taken?.seen.rows ?? [],
    counts: [],
    nonces: undefined,
    due: taken && taken.due > 0 ? [taken.id] : [],
    nextDueMs: undefined,
    isSuspectDue: many > 1,
  };
}

/**
 * Returns the time for which the earliest due row has been due, for `Backend.overdueMs`. Undefined if no row is due.
 */
export async function overdueMs(session: Session): Promise<number | undefined> {
  const wanted = { index: 'd', max: 1, longest: 0, suspects: true };
  const asked = await looks(session, await session.registry.senders(), wanted);
  const longest = Math.max(...asked.map(({ first, now }) => now - first));
  return longest >= 0 ? longest : undefined;
}

/** Returns due rows of registrations, for `Backend.registrations.due`. */
export async function turns(session: Session, request: TurnRequest): Promise<TurnResult> {
  const { kind, max } = request;
  const longest = Math.min(request.longestMs, Number.MAX_SAFE_INTEGER);
  const index = registrationIndexes(kind).due;
  const asked = await looks(
    session,
    await sendersInTurn(session, request),
    { index, max: max + 1, longest },
    max + 1,
  );
  const found = await forEach([...sharesOf(asked, max)], async ([sender, share]) => {
    const told = { kind: letterOf(kind), max: share, longest };
    return rowsOf(sender, (await session.read('turns', sender, told)) as unknown[]);
  });
  return { now: await nowOf(session, asked), rows: inTurns(found), nextDueMs: nextOf(asked, max) };
}
