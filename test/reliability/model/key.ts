import { dueAt, type NonceRow, type RecordRow } from '../../../src/stores/for-tests.ts';
import type { ToldClaim } from '../../../src/stores/index.ts';
import type { Play } from './play.ts';
import { isObservation } from './play.ts';
import type { Kept } from './rows.ts';
import type { Account, Seen, Thread, World } from './world.ts';
import { processOf } from './world.ts';

/**
 * A world without its names: instants count from now, what has passed has passed, ids are told by the thread that
 * has them (nobody can use any other again), processes and nonces by what refers to them. Two worlds with one key
 * differ in nothing that can ever be seen.
 */
export function keyOfWorld(play: Play, world: World): string {
  const left = leftAt(world.now);
  const threads = world.threads
    .map((thread) => ({ thread, is: ownPart(thread, left, world.now) }))
    .sort((a, b) => (a.is < b.is ? -1 : 1));
  // Else their nonces tell them apart.
  const canBeAlike = play.protocol !== undefined || play.scenario.events.some(isObservation);
  const orders = canBeAlike ? ordersOf(threads) : [threads];
  return orders.map((order) => keyIn(order, play, world)).reduce((a, b) => (a < b ? a : b));
}

interface Known {
  readonly thread: Thread;
  readonly is: string;
}

/** Threads that are alike but for what refers to them, and for what they have seen, have no order of their own. */
function ordersOf([first, ...rest]: readonly Known[]): readonly (readonly Known[])[] {
  if (!first) return [[]];
  return ordersOf(rest).flatMap((order) => {
    const alike = order.findIndex(({ is }) => is !== first.is);
    const places = Array.from({ length: (alike < 0 ? order.length : alike) + 1 }, (_, at) => at);
    return places.map((at) => order.toSpliced(at, 0, first));
  });
}

const leftAt =
  (now: number): Left =>
  (instant) =>
    Math.max(0, instant - now);

function keyIn(threads: readonly Known[], { scenario, protocol }: Play, world: World): string {
  const left = leftAt(world.now);
  const place = new Map(threads.map(({ thread }, at) => [thread.id, at]));
  const nameOf = (id: string | null): string => (id === null ? '' : String(place.get(id) ?? '-'));
  // Where it matters; for the sound protocol it does not.
  const isSibling = ({ seen }: Thread): boolean =>
    protocol?.takesSiblings === true && world.planned === seen?.kept;
  const alike = scenario.modes[0] === scenario.modes[1];
  const processes = threads.map(({ thread }) => processOf(world, thread.process));
  // Two processes of the same kind: the one that comes first is the first one. One that died is nobody's.
  const known = alike ? [...processes] : [processOf(world, 0), processOf(world, 1)];
  const calledProcess: CalledProcess = (id, { processes }) => {
    if (id === null || !processes.has(id)) return '';
    if (!known.includes(id)) known.push(id);
    return String(known.indexOf(id));
  };
  return [
    threads.map(({ is }) => is).join(' '),
    processes.map((id) => known.indexOf(id)).join(''),
    noncesPart(
      world,
      threads.map(({ thread }) => thread),
      nameOf,
    ),
    recordsPart(world, { nameOf, calledProcess }, left),
    tasksPart(world),
    streamsPart(world),
    threads
      .map(({ thread }) => seenPart(thread.seen, world, { nameOf, calledProcess }, isSibling(thread)))
      .join('/'),
    world.accounts.map((account) => accountPart(account, nameOf, world.now)).join(' '),
    Object.values(world.budget).join(''),
    world.breach?.invariant ?? '',
  ].join('\n');
}

type Left = (instant: number) => number;
type NameOf = (id: string | null) => string;
/** '' where its row does not hold. */
type CalledProcess = (id: string | null, kept: Kept) => string;

interface Names {
  readonly nameOf: NameOf;
  readonly calledProcess: CalledProcess;
}

function tasksPart({ kept, now }: Pick<World, 'kept' | 'now'>): string {
  return [...kept.tasks.values()]
    .map(({ id, holder, mark, markTerminal, terminal, told, ...more }) =>
      [
        id,
        holder,
        mark,
        Number(markTerminal),
        terminal && [terminal.key, terminal.hash, terminal.state, ...Object.values(terminal.told ?? {})],
        told && [told.status, now - told.at, ...Object.values(told.marked ?? {})],
        'waiting' in more ? String(more.waiting) : '',
      ].join(','),
    )
    .join(' ');
}

const streamsPart = ({ kept }: Pick<World, 'kept'>): string =>
  [...kept.streams.values()].map(({ value }) => value).join(' ');

/** What a plan under way rests on: how old it is, what it says, and of which rows it is still true. */
function seenPart(seen: Seen | undefined, { now, kept }: World, names: Names, isSibling: boolean): string {
  if (!seen) return '';
  const left = leftAt(seen.now);
  const isSame = (name: 'records' | 'tasks' | 'streams'): string =>
    [...new Set([...seen.kept[name].keys(), ...kept[name].keys()])]
      .map((key) => `${key}${Number(seen.kept[name].get(key) === kept[name].get(key))}`)
      .sort()
      .join('');
  return [
    now - seen.now,
    recordsPart(seen, names, left),
    tasksPart(seen),
    streamsPart(seen),
    isSame('records'),
    isSame('tasks'),
    isSame('streams'),
    isSibling,
  ].join(';');
}

/** All of a thread but its names. */
function ownPart(thread: Thread, left: Left, now: number): string {
  const { at, event, copy, step, decision, settled, until, run, worker, answerable, suspect, nonce } = thread;
  const { replay = false, again = false, askedAt } = thread;
  const flags = [worker, answerable, suspect, nonce !== undefined, replay, again].map(Number).join('');
  return `${at},${event},${copy},${step},${decisionPart(decision)},${settled ?? ''},${left(until)},${run},${flags}${askedPart(askedAt, now)}`;
}

const askedPart = (askedAt: number | undefined, now: number): string =>
  askedAt === undefined ? '' : `,${now - askedAt}`;

/** What of a claim is not its event's own. */
function toldPart(told: ToldClaim | undefined, now: number): string {
  return told ? `${told.operation}${told.newest}${askedPart(told.askedAt, now)}` : '';
}

/** What of a decision has consequences. */
function decisionPart(decision: Thread['decision']): string {
  if (decision?.kind === 'won') return `won${decision.body?.join('') ?? ''}`;
  const replay = decision !== undefined && 'replay' in decision && decision.replay;
  const suspect = decision !== undefined && 'suspect' in decision && decision.suspect;
  return `${decision?.kind ?? ''}${replay ? ' again' : ''}${suspect ? ' suspect' : ''}`;
}

function noncesPart({ sent, kept }: World, threads: readonly Thread[], nameOf: NameOf): string {
  const rowPart = (row: NonceRow | undefined): string => (row ? `${row.key}${nameOf(row.acceptId)}` : '');
  const parts = sent.map(({ event, copy, nonce }) => {
    if (nonce === undefined) return `${event}`;
    const row = kept.nonces.get(nonce);
    const users = threads.filter((thread) => thread.nonce === nonce).map(({ id }) => nameOf(id));
    const seen = threads.map(({ seen }) => {
      const before = seen?.kept.nonces.get(nonce);
      return seen ? `${rowPart(before)}${Number(before === row)}` : '';
    });
    return `${event},${copy},${rowPart(row)},${users.sort().join('')},${seen.join('|')}`;
  });
  return parts.sort().join(' ');
}

function recordsPart({ kept, now }: Pick<World, 'kept' | 'now'>, names: Names, left: Left): string {
  const records = [...kept.records.values()];
  // Of what is due, the earliest goes first, however long ago that was.
  const queue = [...records].sort((a, b) => (dueAt(a) ?? Infinity) - (dueAt(b) ?? Infinity));
  const order = queue.map(({ key }) => key).join('');
  return [order, ...records.map((record) => recordPart({ kept, now }, record, names, left))].join(' ');
}

function recordPart(
  { kept, now }: Pick<World, 'kept' | 'now'>,
  record: RecordRow,
  { nameOf, calledProcess }: Names,
  left: Left,
): string {
  const { key, state, claim, claimedBy, owner, runs, attempts, crashes, acked, rawHash } = record;
  return [
    key,
    state,
    claim,
    nameOf(claimedBy),
    nameOf(owner),
    runs,
    state === 'leased' ? left(record.leaseUntil) : 0,
    attempts,
    Number(record.notBefore === 0),
    crashes,
    Number(record.suspect),
    state === 'leased' ? calledProcess(record.process, kept) : '',
    calledProcess(record.crashedIn, kept),
    Number(acked),
    left(record.notBefore),
    record.parkedUntil === 0 ? '' : left(record.parkedUntil),
    rawHash,
    record.bodyBytes,
    toldPart(record.task?.told, now),
    record.windows?.map(({ isRepeated }) => Number(isRepeated ?? false)).join('') ?? '',
  ].join(',');
}

function accountPart(account: Account, nameOf: NameOf, now: number): string {
  const { acknowledged, refused, discarded, completedBy, effects, leases, attempts, failed, returned } =
    account;
  const { crashedAlone, permanent, first, completedAt, askedAt } = account;
  const owners = completedBy.map(nameOf).join('');
  const counts = [effects, leases, attempts, failed, returned, crashedAlone];
  const times = askedPart(completedAt, now) + askedPart(askedAt, now);
  const flags = [acknowledged, refused, discarded, permanent].map(Number).join('');
  return [flags, owners, ...counts, first, times].join(',');
}
