import { type Facts, judge, KEPT, type Owed, type Verdict } from '../processes/judge.ts';
import type { MovingLine } from './wire.ts';

/** A URL of ours that the driver asked to retire. */
export interface Retirement {
  /** Unix ms on the sellers' clock. */
  readonly at: number;
  readonly agent: string;
  readonly base: string;
  readonly route: string;
  readonly isRetired: boolean;
  /** All was over then, and no media buy is told to send there: it has to be retired. */
  readonly isLast: boolean;
}

/** What is known when all is over. */
export interface MovingFacts extends Pick<Facts, 'completions' | 'ledger' | 'effects'> {
  /** The sellers' own. */
  readonly log: readonly MovingLine[];
  readonly retirements: readonly Retirement[];
  /** Media buys that `plan` names as refused or unknown. */
  readonly named: ReadonlySet<string>;
  /** Media buys whose seller takes no update of them: these have to be named, and no others. */
  readonly refusing: ReadonlySet<string>;
  /** Below which all are to be; absent: at another URL than at first. */
  readonly base?: string;
  /** Until an update that was not answered gives its place to another one. Ms. */
  readonly callMs: number;
  /** When each process was killed, by its pid. Unix ms on the sellers' clock. */
  readonly deaths: ReadonlyMap<number, number>;
}

export interface MovingVerdict extends Verdict {
  /** Deliveries that were answered with anything but 2xx, 429 and 503. */
  readonly refused: readonly string[];
  /** Request keys under which a seller was asked two different things. */
  readonly otherBytes: readonly string[];
  /** Request keys of updates that were begun before the one before them was over. */
  readonly secondKeys: readonly string[];
  /** Request keys of updates that were begun though four of the seller had no answer. */
  readonly tooMany: readonly string[];
  /** Media buys that are not where they were to go, but for those that are named, and whose seller takes no update. */
  readonly unmoved: readonly string[];
  /** Media buys that are named, though their seller takes updates of them. */
  readonly namedWrongly: readonly string[];
  /** URLs that were retired before they were quiet, and those that were not retired though they were. */
  readonly retiredEarly: readonly string[];
  readonly unretired: readonly string[];
}

export const MOVED: MovingVerdict = {
  ...KEPT,
  refused: [],
  otherBytes: [],
  secondKeys: [],
  tooMany: [],
  unmoved: [],
  namedWrongly: [],
  retiredEarly: [],
  unretired: [],
};

const DAY_MS = 86_400_000;
const PER_SELLER = 4;

type Of<W extends MovingLine['what']> = Extract<MovingLine, { readonly what: W }>;
const linesOf = <W extends MovingLine['what']>(log: readonly MovingLine[], what: W): readonly Of<W>[] =>
  log.filter((line): line is Of<W> => line.what === what);

const isTaken = (answered: number | undefined): boolean =>
  answered !== undefined && answered >= 200 && answered < 300;
const isRefused = (answered: number | undefined): boolean =>
  answered !== undefined && !isTaken(answered) && answered !== 429 && answered !== 503;

/** Keys that were over before the update was sent under another one: their operation is orphaned, and nobody asks for its task. */
function overKeys(log: readonly MovingLine[]): ReadonlySet<string> {
  const updates = linesOf(log, 'asked').filter(({ operation }) => operation === 'update_media_buy');
  const last = new Map(updates.map(({ buy, at }) => [buy, at]));
  return new Set(
    updates.flatMap(({ buy, key, at }) => ((last.get(buy) ?? 0) - at >= DAY_MS ? (key ?? []) : [])),
  );
}

/** Each event is owed once, and the end of each task, by whichever channel. */
function owedOf({ log, ledger }: MovingFacts): readonly Owed[] {
  const taken = new Set(linesOf(log, 'post').flatMap((line) => (isTaken(line.answered) ? line.key : [])));
  const events = linesOf(log, 'event')
    .filter(({ task }) => task === undefined)
    .map(({ key, isLast }) => ({ name: key, keys: [key], isExcused: isLast === true && !taken.has(key) }));
  const told = new Map<string, Set<string>>();
  for (const line of ledger) {
    if (line.what !== 'run' || !line.told) continue;
    const end = `${line.told.taskId} ${line.told.status}`;
    told.set(end, (told.get(end) ?? new Set()).add(line.key));
  }
  const over = overKeys(log);
  const tasks = linesOf(log, 'ended').map(({ taskId, status, key }) => ({
    name: taskId,
    isExcused: over.has(key),
    keys: told.get(`${taskId} ${status}`) ?? [],
  }));
  return [...events, ...tasks];
}

interface Update {
  readonly key: string;
  readonly agent: string;
  readonly buy: string;
  readonly at: number;
  readonly says: string | undefined;
  isAnswered: boolean;
  isOver: boolean;
}

/**
 * Updates that one process began, and another one sent first, when that one was dead. The place of such an update may be
 * another's by then (told.md §3.3). A process has the places of a seller at most: what is more is not excused.
 */
function takenOver({ log, ledger, deaths }: MovingFacts): ReadonlySet<string> {
  const makers = new Map<string, number>();
  for (const line of ledger) {
    if (line.what === 'begin' && !makers.has(line.key)) makers.set(line.key, line.pid);
  }
  const counts = new Map<string, number>();
  const seen = new Set<string>();
  const late = new Set<string>();
  for (const { key = '', agent, at, by } of linesOf(log, 'asked')) {
    const maker = makers.get(key);
    const isFirst = !seen.has(key);
    seen.add(key);
    if (!isFirst || maker === undefined || maker === by || (deaths.get(maker) ?? Infinity) > at) continue;
    const place = `${maker} ${agent}`;
    const count = (counts.get(place) ?? 0) + 1;
    counts.set(place, count);
    if (count <= PER_SELLER) late.add(key);
  }
  return late;
}

/** By the sellers' log, from its first line to its last. */
function judgeUpdates(facts: MovingFacts): Pick<MovingVerdict, 'otherBytes' | 'secondKeys' | 'tooMany'> {
  const { log, callMs } = facts;
  const late = takenOver(facts);
  const updates = new Map<string, Update>();
  const requests = new Map<string, Update>();
  const otherBytes = new Set<string>();
  const secondKeys: string[] = [];
  const tooMany: string[] = [];
  const begin = ({ key = '', agent, buy, at, says }: Of<'asked'>): Update => {
    const all = [...updates.values()].filter((one) => one.agent === agent);
    const isSecond = all.some((one) => one.buy === buy && !one.isOver && at - one.at < DAY_MS);
    if (isSecond) secondKeys.push(key);
    // Its place was taken a while before the seller was asked: half of the time is for that.
    const open = all.filter((one) => !late.has(one.key) && !one.isAnswered && at - one.at < callMs / 2);
    if (open.length >= PER_SELLER && !late.has(key)) tooMany.push(key);
    return { key, agent, buy, at, says, isAnswered: false, isOver: false };
  };
  for (const line of log) {
    if (line.what === 'asked' && line.operation === 'update_media_buy') {
      const update = updates.get(line.key ?? '') ?? begin(line);
      updates.set(update.key, update);
      requests.set(line.id, update);
      if (update.says !== line.says) otherBytes.add(update.key);
    }
    if (line.what === 'answered') {
      const update = requests.get(line.id);
      if (!update) continue;
      update.isAnswered = true;
      update.isOver ||= line.said !== 'submitted';
    }
    const ended = line.what === 'ended' ? updates.get(line.key) : undefined;
    if (ended) ended.isOver = true;
  }
  return { otherBytes: [...otherBytes], secondKeys, tooMany };
}

/** The URLs that each media buy's seller was told at first, and has now. */
function toldOf(
  log: readonly MovingLine[],
): ReadonlyMap<string, readonly [first: Of<'has'>, last: Of<'has'>]> {
  const told = new Map<string, readonly [Of<'has'>, Of<'has'>]>();
  for (const line of linesOf(log, 'has')) told.set(line.buy, [told.get(line.buy)?.[0] ?? line, line]);
  return told;
}

function unmovedOf({ log, named, refusing, base }: MovingFacts): readonly string[] {
  const isThere = ([first, last]: readonly [Of<'has'>, Of<'has'>]): boolean =>
    base === undefined
      ? last.reports !== first.reports
      : [last.reports, last.push].every((url) => url?.startsWith(`${base}/`) === true);
  return [...toldOf(log)].flatMap(([buy, is]) =>
    isThere(is) || (named.has(buy) && refusing.has(buy)) ? [] : buy,
  );
}

/** In the token, the last segment of a URL: the bytes of its secret's name, and behind these those of the route. */
const SECRET_BYTES = 4;
const ROUTE_BYTES = 16;

/** Whether a URL is the one that `state` names. */
export function isNamedUrl(
  url: string | undefined,
  { base, route }: Pick<Retirement, 'base' | 'route'>,
): boolean {
  if (!url?.startsWith(`${base}/`)) return false;
  const token = Buffer.from(url.slice(base.length + 1), 'base64url');
  return token.subarray(SECRET_BYTES, SECRET_BYTES + ROUTE_BYTES).toString('base64url') === route;
}

/** Whether it was in use, or had been lately, by what the seller has noted. */
function isEarly(log: readonly MovingLine[], one: Retirement): boolean {
  const { at, agent } = one;
  const isIt = (url: string | undefined): boolean => isNamedUrl(url, one);
  const now = new Map<string, Of<'has'>>();
  const quietFrom = at - DAY_MS;
  for (const line of log) {
    if (line.at > at || !('agent' in line) || line.agent !== agent) continue;
    if (line.what === 'post' && isIt(line.url) && isTaken(line.answered) && line.at > quietFrom) return true;
    if (line.what !== 'has') continue;
    const was = now.get(line.buy);
    if (was && [was.reports, was.push].some(isIt) && line.at > quietFrom) return true;
    now.set(line.buy, line);
  }
  return [...now.values()].some(({ reports, push }) => isIt(reports) || isIt(push));
}

/** Judges by what the sellers have noted, and by what the database and the handlers have. */
export function judgeMoves(facts: MovingFacts): MovingVerdict {
  const { log, retirements, named, refusing } = facts;
  const textOf = ({ agent, base, route }: Retirement): string => `${agent} ${base} ${route}`;
  return {
    ...judge({ ...facts, owed: owedOf(facts) }),
    ...judgeUpdates(facts),
    refused: linesOf(log, 'post').flatMap(({ key, answered }) =>
      isRefused(answered) ? `${key}: ${answered}` : [],
    ),
    unmoved: unmovedOf(facts),
    namedWrongly: [...named].filter((buy) => !refusing.has(buy)),
    retiredEarly: retirements.flatMap((one) => (one.isRetired && isEarly(log, one) ? textOf(one) : [])),
    unretired: retirements.flatMap((one) => (one.isLast && !one.isRetired ? textOf(one) : [])),
  };
}
