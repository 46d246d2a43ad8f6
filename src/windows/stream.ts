// The account of one media buy as it is stored (owed.md §1.1), and its change by a report (§2, §3). Pure.
// Called by the rules of reports inside their step, by registrations and the reconciler.
import {
  type Clock,
  clockOf,
  DAY_MS,
  FREQUENCIES,
  type Frequency,
  type Period,
  UTC,
  windowAt,
  windowPeriod,
} from './calendar.ts';
import { has, type PackedRuns, packRuns, type Runs, union, unpackRuns } from './runs.ts';
import type { Terms } from './terms.ts';
import type { Told } from './told.ts';
import type { StateHolder } from '../states/states.ts';

/** The clock of a stream. */
export interface StreamClock {
  readonly zone: string;
  /** The origin of the zone. `reports`: two consecutive periods fitted UTC and not the declared zone. */
  readonly source: 'product' | 'reports' | 'default';
  /** The declared zone, if another one is used. */
  readonly declared?: string;
  /** Present once the alarm about it was raised. */
  readonly isAnnounced?: true;
}

/** Numbers of windows, by frequency. */
export type Windows = Partial<Readonly<Record<Frequency, PackedRuns>>>;

/** The windows of one stage. Its name is a seller's text, so it is no member name of an object. */
export interface StageWindows {
  readonly stage: string;
  readonly windows: Windows;
}

/** The claim of an event that is not done. Whether its window counts depends on the event's record. */
export interface Claim {
  readonly frequency: Frequency;
  readonly number: number;
  /** The stage; '' if the report names none. */
  readonly stage: string;
  /** The key of the event. */
  readonly key: string;
}

/** A period that fits no window, or came before anything was known of the buy. */
export interface Unplaced extends Period {
  readonly stage: string;
  readonly key: string;
  readonly isDone?: true;
}

/** The end of a media buy that nobody has asked about yet. */
export interface EndSaid {
  /** The status, a terminal one. */
  readonly status: string;
  /** The time at which the media buy ended, as far as it was told, on the store's clock. Unix ms. */
  readonly at: number;
}

/** The members of a stream that the store needs; its writer keeps more in it. */
export interface Stream extends StateHolder {
  readonly mediaBuyId: string;
  readonly terms: readonly Terms[];
  readonly clock: StreamClock;
  /** The windows that are had, by stage. */
  readonly had: readonly StageWindows[];
  readonly claims: readonly Claim[];
  readonly unplaced: readonly Unplaced[];
  /** The seller said when it will report: a window that ends behind `after` is not expected before `until`. Unix ms. */
  readonly later?: { readonly after: number; readonly until: number };
  /** The windows whose rows were late, with the time at which the seller expects their data. Unix ms. */
  readonly late?: readonly (Place & { readonly until: number })[];
  readonly counts: Counts;
  /** The URLs that its seller was told to send to (told.md §1.1). */
  readonly told?: readonly Told[];
  /** The time since which the media buy may have become another, so that its seller is asked. Unix ms. */
  readonly changedAt?: number;
  /** The time at which an event that was emitted again last set `changedAt`. Unix ms. */
  readonly reemittedAt?: number;
  /** The status by the seller's last answer. */
  readonly status?: string;
  /** The end that was told, as long as nobody has been able to ask about it. */
  readonly endSaid?: EndSaid;
  /** The `final` report; absent: it is not known yet (owed.md §7.3). */
  readonly final?: 'received' | 'absent';
}

/** The number of windows by the channel that brought them, and of windows that came again. */
export interface Counts {
  readonly byWebhook: number;
  readonly byPull: number;
  readonly repeated: number;
}

/** A row of a report, as it concerns its media buy. */
export interface Reported extends Period {
  readonly stage: string;
  readonly key: string;
  /** True if it corrects or widens an earlier row, and so repeats nothing. */
  readonly isRevision: boolean;
  /** Present if the row has no data yet, and says that there will be some. */
  readonly isLate?: true | undefined;
  /** The time at which the seller expects its next data. Unix ms. */
  readonly nextAt?: number | undefined;
  /** True if the report is the last of its media buys. */
  readonly isFinal?: boolean;
  /** The row's status, if it is terminal. */
  readonly ending?: string | undefined;
}

/** The result of a report for a stream. */
export interface Claimed {
  readonly stream: Stream;
  /** The whole window that it is of; undefined if it fits none. */
  readonly window?: Period;
  /** True if the window came before, by another event. */
  readonly isRepeated: boolean;
}

/** The most periods that wait before anything is known of a buy: hours of eight days. */
const MOST_WAITING = 200;
/** The most late windows of a stream: hours of four days. */
const MOST_LATE = 96;
/** The most periods kept that fit nothing, for an operator to look at. */
const MOST_UNALIGNED = 20;
/** The longest time by which a report may end short of a boundary and mean the boundary. Ms: 1 min. */
const SHORT_MS = 60_000;
/** The most stages, because a stage is a seller's word. */
const MOST_STAGES = 8;
/** The most claims of one window and stage by events that are not done. Further events repeat it, and claim nothing. */
const MOST_CLAIMS = 8;

export const emptyStream = (mediaBuyId: string): Stream => ({
  mediaBuyId,
  terms: [],
  clock: { zone: 'UTC', source: 'default' },
  had: [],
  claims: [],
  unplaced: [],
  counts: { byWebhook: 0, byPull: 0, repeated: 0 },
});

/** Reads a stream. @param value as `streamText` gave it. */
export function streamIn(value: string): Stream {
  const stream = JSON.parse(value) as Stream;
  // JSON has no Infinity.
  const open = ({ start, end }: { readonly start: number; readonly end: number | null }): Period => ({
    start,
    end: end ?? Infinity,
  });
  return { ...stream, terms: stream.terms.map((is) => ({ ...is, spans: is.spans.map(open) })) };
}

export const streamText = (stream: Stream): string => JSON.stringify(stream);

export const clockIn = ({ clock: { zone } }: Pick<Stream, 'clock'>): Clock => clockOf(zone) ?? UTC;

/** Returns the frequencies that a stream's terms name, the latest first. */
export function frequenciesIn({ terms }: Pick<Stream, 'terms'>): readonly Frequency[] {
  const named = terms.toReversed().flatMap(({ frequency }) => frequency ?? []);
  return FREQUENCIES.filter((one) => named.includes(one)).toSorted(
    (a, b) => named.indexOf(a) - named.indexOf(b),
  );
}

/** True if reports of a media buy are asked for, or were. */
export const hasReports = ({
  terms,
  frequency = null,
}: Pick<Stream, 'terms'> & { readonly frequency?: Frequency | null }): boolean =>
  frequency !== null || terms.some((is) => is.frequency !== null);

/** A window by its number. */
export interface Place {
  readonly frequency: Frequency;
  readonly number: number;
}

/** True if an end means a boundary: it is the boundary, or lies at most a minute before it. */
export const saysEnd = (end: number, boundary: number): boolean =>
  end <= boundary && boundary - end <= SHORT_MS;

/**
 * The limits of a window, because a seller could name any year: so far before the flight, and so far ahead of now. Ms:
 * 45 days, 2 days.
 */
const MOST_BEFORE_MS = 45 * DAY_MS;
const MOST_AHEAD_MS = 2 * DAY_MS;

/** Returns the window of a period; undefined if it fits none (owed.md §2.3 to §2.5). */
function placeOf(stream: Pick<Stream, 'terms'>, { start, end }: Period, clock: Clock): Place | undefined {
  const spans = stream.terms.flatMap((is) => is.spans);
  const firstStart = spans.reduce((first, span) => Math.min(first, span.start), Infinity);
  if (!(start < end) || start < firstStart - MOST_BEFORE_MS) return undefined;
  for (const frequency of frequenciesIn(stream)) {
    const number = windowAt(frequency, clock, start);
    const window = windowPeriod(frequency, clock, number);
    const begins = start === window.start || spans.some((span) => span.start === start);
    const ends =
      saysEnd(end, window.end) || spans.some((span) => span.end <= window.end && saysEnd(end, span.end));
    if (begins && ends) return { frequency, number };
  }
  return undefined;
}

/** Returns the runs of all stages. */
export function hadIn({ had }: Pick<Stream, 'had'>, frequency: Frequency): Runs {
  return had.reduce<Runs>((all, { windows }) => {
    const runs = windows[frequency];
    return runs ? union(all, unpackRuns(runs)) : all;
  }, []);
}

const hadInStage = ({ had }: Pick<Stream, 'had'>, stage: string, { frequency, number }: Place): boolean => {
  const runs = had.find((one) => one.stage === stage)?.windows[frequency];
  return runs !== undefined && has(unpackRuns(runs), number);
};

/** The step in which a report comes. */
export interface ReportStep {
  /** The store's clock, Unix ms. */
  readonly now: number;
  /** True if the event of a key may still be handled, or is DEAD. */
  readonly isThere: (key: string) => boolean;
}

/** True if the window of a period is had, or claimed by an event that is there (owed.md §3.2). */
export function standsIn(stream: Stream, period: Period, { isThere }: Pick<ReportStep, 'isThere'>): boolean {
  const place = placeOf(stream, period, clockIn(stream));
  if (!place) return false;
  return (
    has(hadIn(stream, place.frequency), place.number) ||
    stream.claims.some((claim) => isOf(claim, place) && isThere(claim.key))
  );
}

/** Returns the keys of the events that claim the window of a period. */
export function claimantsIn(stream: Stream, period: Period): readonly string[] {
  const place = stream.claims.length > 0 ? placeOf(stream, period, clockIn(stream)) : undefined;
  return place ? stream.claims.filter((claim) => isOf(claim, place)).map(({ key }) => key) : [];
}

const isOf = (one: Place, { frequency, number }: Place): boolean =>
  one.number === number && one.frequency === frequency;

/** Writes the claim of a report's row (owed.md §3.1, §3.3, §3.7). */
export function claimedIn(before: Stream, reported: Reported, { now, isThere }: ReportStep): Claimed {
  const { start, end, key, isRevision } = reported;
  if (end > now + MOST_AHEAD_MS) return { stream: before, isRepeated: false };
  const stream = withoutKey(withLater(before, reported), key);
  if (reported.isLate) return { stream, isRepeated: false };
  const stage = knownStage(stream, reported.stage);
  const place = placeOf(stream, { start, end }, clockIn(stream));
  if (!place) return unplaced(stream, { start, end, stage, key });
  const own: Claim = { ...place, stage, key };
  // An event that is gone before it was done claims nothing any more.
  const claims = stream.claims.filter((is) => !isOf(is, place) || isThere(is.key));
  const alike = claims.filter((is) => isOf(is, place) && is.stage === stage);
  const isRepeated = !isRevision && (alike.length > 0 || hadInStage(stream, stage, place));
  const { counts } = stream;
  return {
    stream: {
      ...stream,
      claims: alike.length < MOST_CLAIMS ? [...claims, own] : claims,
      counts: isRepeated ? { ...counts, repeated: counts.repeated + 1 } : counts,
    },
    window: windowPeriod(place.frequency, clockIn(stream), place.number),
    isRepeated,
  };
}

/**
 * Drops earlier claims of a key: a new event has claimed nothing, so they are of an event that is gone and was never
 * done.
 */
const withoutKey = (stream: Stream, key: string): Stream => ({
  ...stream,
  claims: stream.claims.filter((claim) => claim.key !== key),
  unplaced: stream.unplaced.filter((one) => one.key !== key),
});

/**
 * Notes the next data that a row announces. A late window counts by itself, otherwise the last report counts (owed.md
 * §1.5).
 */
function withLater(stream: Stream, { start, end, isLate, nextAt: until }: Reported): Stream {
  if (until === undefined) return stream;
  if (isLate) {
    const place = placeOf(stream, { start, end }, clockIn(stream));
    if (!place) return stream;
    const others = (stream.late ?? []).filter((one) => !isOf(one, place));
    return { ...stream, late: [...others, { ...place, until }].slice(-MOST_LATE) };
  }
  // The announcement is for the next window, even if this end is written short of its boundary.
  const after = end + SHORT_MS;
  if (stream.later && stream.later.after > after) return stream;
  return { ...stream, later: { after, until } };
}

/** Returns the stage, or '' if there are too many: a seller could name as many as it likes. */
function knownStage({ had, claims }: Stream, stage: string): string {
  const known = new Set([...had.map((one) => one.stage), ...claims.map((claim) => claim.stage)]);
  return known.has(stage) || known.size < MOST_STAGES ? stage : '';
}

/** Returns the length of the list: all periods are kept until it is known which windows there are. */
const mostUnplaced = ({ terms }: Pick<Stream, 'terms'>): number =>
  terms.some(({ frequency }) => frequency !== null) ? MOST_UNALIGNED : MOST_WAITING;

function unplaced(stream: Stream, is: Unplaced): Claimed {
  const kept: Stream = { ...stream, unplaced: [...stream.unplaced, is].slice(-mostUnplaced(stream)) };
  const inUtc = byReports(kept);
  if (!inUtc) return { stream: kept, isRepeated: false };
  const place = placeOf(inUtc, is, UTC);
  return {
    stream: inUtc,
    ...(place && { window: windowPeriod(place.frequency, UTC, place.number) }),
    isRepeated: false,
  };
}

/** Changes the clock to UTC if two consecutive periods fit it, and not the declared zone (owed.md §2.2). */
function byReports(stream: Stream): Stream | undefined {
  const { clock, terms } = stream;
  if (clock.zone === 'UTC' || terms.length === 0) return undefined;
  const fitting = stream.unplaced.flatMap((is) => placeOf(stream, is, UTC) ?? []);
  const running = fitting.some(({ frequency, number }) =>
    fitting.some((other) => other.frequency === frequency && other.number === number + 1),
  );
  if (!running) return undefined;
  return placedAnew({ ...stream, clock: { zone: 'UTC', source: 'reports', declared: clock.zone } });
}

/** Places periods that fitted nothing, by new terms or a new clock. */
export function placedAnew<S extends Stream>(stream: S): S {
  const clock = clockIn(stream);
  let is: S = { ...stream, unplaced: [] };
  for (const one of stream.unplaced) {
    const place = placeOf(is, one, clock);
    if (!place) is = { ...is, unplaced: [...is.unplaced, one].slice(-mostUnplaced(is)) };
    else if (one.isDone) is = withHad(counted(is, { ...one, ...place }), one.stage, place);
    else is = { ...is, claims: [...is.claims, { ...place, stage: one.stage, key: one.key }] };
  }
  return is;
}

/** Notes that the event of a key is done: its windows are had (owed.md §3.4). */
export function completedIn<S extends Stream>(stream: S, key: string): S {
  const claims = stream.claims.filter((claim) => claim.key !== key);
  const done = stream.claims.filter((claim) => claim.key === key);
  const marked = stream.unplaced.map((is) => (is.key === key ? { ...is, isDone: true as const } : is));
  const is = { ...stream, claims, unplaced: marked };
  return done.reduce((so, claim) => withHad(counted(so, claim), claim.stage, claim), is);
}

/** The beginning of the keys of pulled reports; no webhook's key has a `/`. */
const PULLED = 'observation/pull/';

/** Counts one more window that is had, unless it was counted before. */
function counted<S extends Stream>(stream: S, claim: Claim): S {
  if (has(hadIn(stream, claim.frequency), claim.number)) return stream;
  const name = claim.key.startsWith(PULLED) ? 'byPull' : 'byWebhook';
  return { ...stream, counts: { ...stream.counts, [name]: stream.counts[name] + 1 } };
}

function withHad<S extends Stream>(stream: S, stage: string, { frequency, number }: Place): S {
  const others = stream.had.filter((one) => one.stage !== stage);
  const known = stream.had.find((one) => one.stage === stage)?.windows ?? {};
  const before = known[frequency];
  const runs = packRuns(union(before ? unpackRuns(before) : [], [[number, number + 1]]));
  return { ...stream, had: [...others, { stage, windows: { ...known, [frequency]: runs } }] };
}
