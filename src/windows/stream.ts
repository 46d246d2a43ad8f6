// The account of one media buy's reports, called a stream (owed.md §1.1), and its change by a report (§2, §3). Pure.
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

/** The time zone by which the windows of a stream begin and end. */
export interface StreamClock {
  readonly zone: string;
  /**
   * The origin of the zone. `product`: the product declares it. `reports`: two consecutive periods fitted UTC and not
   * the declared zone.
   */
  readonly source: 'product' | 'reports' | 'default';
  /** The declared zone, if another one is used. */
  readonly declared?: string;
  /** Present once an alarm was raised because the used zone is not the declared one. */
  readonly isAnnounced?: true;
}

/** The numbers of windows, by frequency. */
export type Windows = Partial<Readonly<Record<Frequency, PackedRuns>>>;

/** The windows of one stage. The stage's name is a member and no property name, because it is a seller's text. */
export interface StageWindows {
  readonly stage: string;
  readonly windows: Windows;
}

/** A window claimed by an event that is not done. The claim is valid only while that event's record exists. */
export interface Claim {
  readonly frequency: Frequency;
  readonly number: number;
  /** The stage; '' if the report names none. */
  readonly stage: string;
  /** The key of the event. */
  readonly key: string;
}

/** A period that fits no window, or whose report came before the buy's terms were known. */
export interface Unplaced extends Period {
  readonly stage: string;
  readonly key: string;
  readonly isDone?: true;
}

/** The reported end of a media buy, about which its seller has not been asked yet. */
export interface EndSaid {
  /** The status, a terminal one. */
  readonly status: string;
  /**
   * The time of the end, Unix ms on the store's clock. If the reported time is later than the report, it is the time
   * of the report.
   */
  readonly at: number;
}

/** The members of a stream that the store reads. Registrations and the reconciler keep more members in it. */
export interface Stream extends StateHolder {
  readonly mediaBuyId: string;
  readonly terms: readonly Terms[];
  readonly clock: StreamClock;
  /** The windows for which a completed report brought data, by stage. */
  readonly had: readonly StageWindows[];
  readonly claims: readonly Claim[];
  readonly unplaced: readonly Unplaced[];
  /**
   * The seller said when it reports next: a window that ends after `after` is not expected before `until`. Unix ms.
   */
  readonly later?: { readonly after: number; readonly until: number };
  /** The windows whose rows had no data yet, with the time at which the seller expects the data. Unix ms. */
  readonly late?: readonly (Place & { readonly until: number })[];
  readonly counts: Counts;
  /** The URLs to which its seller was asked to send (told.md §1.1). */
  readonly told?: readonly Told[];
  /** The time since which the media buy may have changed, so that its seller is asked. Unix ms. */
  readonly changedAt?: number;
  /** The time at which a re-emitted event last set `changedAt`. Unix ms. */
  readonly reemittedAt?: number;
  /** The status in the seller's last answer. */
  readonly status?: string;
  /** The reported end, until the seller has been asked about it. */
  readonly endSaid?: EndSaid;
  /** `received`: the `final` report has come. Undefined: that is not known yet (owed.md §7.3). */
  readonly final?: 'received' | 'absent';
}

/** The numbers of windows that webhooks and pulls brought first, and the number of repeated windows. */
export interface Counts {
  readonly byWebhook: number;
  readonly byPull: number;
  readonly repeated: number;
}

/** A row of a report about one media buy. */
export interface Reported extends Period {
  readonly stage: string;
  readonly key: string;
  /** True if the row corrects or widens an earlier row. It then is no repetition. */
  readonly isRevision: boolean;
  /** Present if the row has no data yet, and says that data will follow. */
  readonly isLate?: true | undefined;
  /** The time at which the seller expects its next data. Unix ms. */
  readonly nextAt?: number | undefined;
  /** True if the report is the final one of its media buys. */
  readonly isFinal?: boolean;
  /** The status that the row reports, if it is a terminal one. */
  readonly ending?: string | undefined;
}

/** The stream after a report, and what was found about its window. */
export interface Claimed {
  readonly stream: Stream;
  /** The whole window to which the row belongs; undefined if it fits none. */
  readonly window?: Period;
  /** True if another event brought the window before. */
  readonly isRepeated: boolean;
}

/** The most periods that are kept before a buy's terms are known: the hours of eight days. */
const MOST_WAITING = 200;
/** The most windows of a stream that are kept as late: the hours of four days. */
const MOST_LATE = 96;
/** The most periods that are kept although they fit no window, so that an operator can look at them. */
const MOST_UNALIGNED = 20;
/** The longest time by which a report may end before a boundary and still mean the boundary. Ms: 1 min. */
const SHORT_MS = 60_000;
/** The most stages, because a stage is a seller's text. */
const MOST_STAGES = 8;
/**
 * The most claims that are kept for one window and stage. A claim says that an event brought the window and is not
 * done. Further events count as repetitions, and have no claim.
 */
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

/** Reads a stream. @param value a text that `streamText` returned. */
export function streamIn(value: string): Stream {
  const stream = JSON.parse(value) as Stream;
  // JSON has no Infinity: an open end is null.
  const open = ({ start, end }: { readonly start: number; readonly end: number | null }): Period => ({
    start,
    end: end ?? Infinity,
  });
  return { ...stream, terms: stream.terms.map((is) => ({ ...is, spans: is.spans.map(open) })) };
}

export const streamText = (stream: Stream): string => JSON.stringify(stream);

export const clockIn = ({ clock: { zone } }: Pick<Stream, 'clock'>): Clock => clockOf(zone) ?? UTC;

/** Returns the frequencies in a stream's terms, that of the newest terms first. */
export function frequenciesIn({ terms }: Pick<Stream, 'terms'>): readonly Frequency[] {
  const named = terms.toReversed().flatMap(({ frequency }) => frequency ?? []);
  return FREQUENCIES.filter((one) => named.includes(one)).toSorted(
    (a, b) => named.indexOf(a) - named.indexOf(b),
  );
}

/** True if reports of a media buy are, or once were, requested. */
export const hasReports = ({
  terms,
  frequency = null,
}: Pick<Stream, 'terms'> & { readonly frequency?: Frequency | null }): boolean =>
  frequency !== null || terms.some((is) => is.frequency !== null);

/** A window, named by its frequency and number. */
export interface Place {
  readonly frequency: Frequency;
  readonly number: number;
}

/** True if an end means a boundary: it equals the boundary, or is at most a minute earlier. */
export const saysEnd = (end: number, boundary: number): boolean =>
  end <= boundary && boundary - end <= SHORT_MS;

/**
 * Windows that begin too long before the flight, or end too far in the future, are ignored: a seller could name any
 * year. Ms: 45 days, 2 days.
 */
const MOST_BEFORE_MS = 45 * DAY_MS;
const MOST_AHEAD_MS = 2 * DAY_MS;

/** Returns the window that a period fits; undefined if there is none (owed.md §2.3 to §2.5). */
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

/** Returns the windows that any stage has. */
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

/** The atomic step of the store in which a report is recorded: its time, and the events that the store has. */
export interface ReportStep {
  /** The store's clock, Unix ms. */
  readonly now: number;
  /** True if the store has an event with the key `key` that may still be handled, or is DEAD. */
  readonly isThere: (key: string) => boolean;
}

/** True if the stream has the window of a period, or if an existing event claims it (owed.md §3.2). */
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

/** Adds the claim of a report's row (owed.md §3.1, §3.3, §3.7). */
export function claimedIn(before: Stream, reported: Reported, { now, isThere }: ReportStep): Claimed {
  const { start, end, key, isRevision } = reported;
  if (end > now + MOST_AHEAD_MS) return { stream: before, isRepeated: false };
  const stream = withoutKey(withLater(before, reported), key);
  if (reported.isLate) return { stream, isRepeated: false };
  const stage = knownStage(stream, reported.stage);
  const place = placeOf(stream, { start, end }, clockIn(stream));
  if (!place) return unplaced(stream, { start, end, stage, key });
  const own: Claim = { ...place, stage, key };
  // An event that was deleted before it was done no longer claims anything.
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
 * Drops earlier claims of a key. A new event has claimed nothing yet, so they belong to an earlier event of the same
 * key that was deleted before it was done.
 */
const withoutKey = (stream: Stream, key: string): Stream => ({
  ...stream,
  claims: stream.claims.filter((claim) => claim.key !== key),
  unplaced: stream.unplaced.filter((one) => one.key !== key),
});

/**
 * Saves the time of the next data that a row announces. For a late window it is saved with that window. Otherwise the
 * announcement in the last report is used (owed.md §1.5).
 */
function withLater(stream: Stream, { start, end, isLate, nextAt: until }: Reported): Stream {
  if (until === undefined) return stream;
  if (isLate) {
    const place = placeOf(stream, { start, end }, clockIn(stream));
    if (!place) return stream;
    const others = (stream.late ?? []).filter((one) => !isOf(one, place));
    return { ...stream, late: [...others, { ...place, until }].slice(-MOST_LATE) };
  }
  // The announcement is about the next window, even if this row ends a little before its boundary.
  const after = end + SHORT_MS;
  if (stream.later && stream.later.after > after) return stream;
  return { ...stream, later: { after, until } };
}

/** Returns the stage, or '' if there are too many stages: a seller could name any number. */
function knownStage({ had, claims }: Stream, stage: string): string {
  const known = new Set([...had.map((one) => one.stage), ...claims.map((claim) => claim.stage)]);
  return known.has(stage) || known.size < MOST_STAGES ? stage : '';
}

/** Returns the most periods that are kept without a window. All are kept until the buy's terms are known. */
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

/** Changes the zone to UTC if two consecutive periods fit UTC, but not the declared zone (owed.md §2.2). */
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

/** Finds windows for the periods that fitted none, after the terms or the zone have changed. */
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

/** Records that the event with `key` is done: the stream now has its windows (owed.md §3.4). */
export function completedIn<S extends Stream>(stream: S, key: string): S {
  const claims = stream.claims.filter((claim) => claim.key !== key);
  const done = stream.claims.filter((claim) => claim.key === key);
  const marked = stream.unplaced.map((is) => (is.key === key ? { ...is, isDone: true as const } : is));
  const is = { ...stream, claims, unplaced: marked };
  return done.reduce((so, claim) => withHad(counted(so, claim), claim.stage, claim), is);
}

/** The beginning of the keys of pulled reports. Keys of webhooks have no `/`. */
const PULLED = 'observation/pull/';

/** Counts one more window that the stream has, unless it was counted before. */
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
