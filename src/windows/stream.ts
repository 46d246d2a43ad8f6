// The account of the reports of one media buy, called a stream (owed.md §1.1), and the changes that a report makes to
// it (§2, §3). Pure.
// Called by the rules of reports inside their atomic step, by registrations and the reconciler.
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

/** The time zone in which the report windows of a stream begin and end. */
export interface StreamClock {
  readonly zone: string;
  /**
   * The origin of the zone. `product`: the product declares it. `reports`: two consecutive reports had periods that fit
   * UTC and not the declared zone. `default`: no zone is declared.
   */
  readonly source: 'product' | 'reports' | 'default';
  /** The zone that the product declares, if another one is used. */
  readonly declared?: string;
  /** Present once an alarm was raised because `zone` is not the zone that the product declares. */
  readonly isAnnounced?: true;
}

/** The numbers of report windows, by frequency. */
export type Windows = Partial<Readonly<Record<Frequency, PackedRuns>>>;

/**
 * The windows of one stage, the `measurement_window` of a report. The stage's name is a member and no property name,
 * because a seller may send any text.
 */
export interface StageWindows {
  readonly stage: string;
  readonly windows: Windows;
}

/**
 * A report window that an event claims: the event brings its data and is not done yet. The claim is valid only while
 * that event's record exists.
 */
export interface Claim {
  readonly frequency: Frequency;
  readonly number: number;
  /** The stage (`measurement_window`) of the report; '' if the report names none. */
  readonly stage: string;
  /** The key of the event that claims the window. */
  readonly key: string;
}

/** The period of a report that fits no window, or that came before the media buy's terms were known. */
export interface Unplaced extends Period {
  readonly stage: string;
  readonly key: string;
  readonly isDone?: true;
}

/** The end of a media buy as its seller reported it, until the seller is asked about it. */
export interface EndSaid {
  /** The terminal status of the media buy, as it was reported. */
  readonly status: string;
  /** The time of the end, Unix ms on the store's clock, at the latest the time at which the report arrived. */
  readonly at: number;
}

/** The members of a media buy's account that the store reads; registrations and the reconciler keep more members. */
export interface Stream extends StateHolder {
  readonly mediaBuyId: string;
  readonly terms: readonly Terms[];
  readonly clock: StreamClock;
  /** The windows whose data have come with a completed report, by stage. */
  readonly had: readonly StageWindows[];
  readonly claims: readonly Claim[];
  readonly unplaced: readonly Unplaced[];
  /**
   * The time of the next data that the seller announced: a window that ends after `after` is not expected before
   * `until`. Unix ms.
   */
  readonly later?: { readonly after: number; readonly until: number };
  /** The windows whose rows had no data yet, each with the time at which the seller expects the data. Unix ms. */
  readonly late?: readonly (Place & { readonly until: number })[];
  readonly counts: Counts;
  /** The URLs to which the media buy's seller was asked to send events (told.md §1.1). */
  readonly told?: readonly Told[];
  /** The time at which the media buy may have changed: the seller has to be asked about it. Unix ms. */
  readonly changedAt?: number;
  /** The time at which a notification that was emitted again last set `changedAt`. Unix ms. */
  readonly reemittedAt?: number;
  /** The media buy's status in the seller's last answer. */
  readonly status?: string;
  /** The reported end of the media buy; absent once the seller has been asked about it. */
  readonly endSaid?: EndSaid;
  /** The `final` report: `received`; or `absent` if it will not come. Undefined: neither is known (owed.md §7.3). */
  readonly final?: 'received' | 'absent';
}

/** The numbers of windows whose data first came by webhook or by pull, and the number of repeated windows. */
export interface Counts {
  readonly byWebhook: number;
  readonly byPull: number;
  readonly repeated: number;
}

/** The row of a report that is about one media buy, with the report's period. */
export interface Reported extends Period {
  readonly stage: string;
  readonly key: string;
  /** True if the row corrects or widens an earlier row. Such a row is no repetition. */
  readonly isRevision: boolean;
  /** Present if the row says that it has no data yet (status `reporting_delayed` or `failed`). */
  readonly isLate?: true | undefined;
  /** The time at which the seller expects to have its next data. Unix ms. */
  readonly nextAt?: number | undefined;
  /** True if the report is the final one of its media buys. */
  readonly isFinal?: boolean;
  /** The media buy's status in the row, if it is a terminal one. */
  readonly ending?: string | undefined;
}

/** The stream after a report, and the facts about the report's window. */
export interface Claimed {
  readonly stream: Stream;
  /** The whole window to which the report's row belongs; undefined if the row fits none. */
  readonly window?: Period;
  /** True if another event brought data for the window before. */
  readonly isRepeated: boolean;
}

/** The largest number of reported periods kept until the media buy's terms are known: the hours of eight days. */
const MOST_WAITING = 200;
/** The largest number of windows of a stream kept as late (without data yet): the hours of four days. */
const MOST_LATE = 96;
/** The largest number of reported periods kept although they fit no window, for an operator to look at. */
const MOST_UNALIGNED = 20;
/** The longest time by which a reported end may precede its window's end and still count as that end. Ms: 1 min. */
const SHORT_MS = 60_000;
/** The largest number of stages in a stream. It is limited, because a seller may name any number of stages. */
const MOST_STAGES = 8;
/**
 * The largest number of unfinished events that may claim one window and stage, i.e. bring its data. Further events
 * count as repetitions, and their claims are not kept.
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
  // JSON has no Infinity, so the end of an open span is stored as null.
  const open = ({ start, end }: { readonly start: number; readonly end: number | null }): Period => ({
    start,
    end: end ?? Infinity,
  });
  return { ...stream, terms: stream.terms.map((is) => ({ ...is, spans: is.spans.map(open) })) };
}

export const streamText = (stream: Stream): string => JSON.stringify(stream);

export const clockIn = ({ clock: { zone } }: Pick<Stream, 'clock'>): Clock => clockOf(zone) ?? UTC;

/** Returns the frequencies in a stream's terms. The frequency of the newest terms comes first. */
export function frequenciesIn({ terms }: Pick<Stream, 'terms'>): readonly Frequency[] {
  const named = terms.toReversed().flatMap(({ frequency }) => frequency ?? []);
  return FREQUENCIES.filter((one) => named.includes(one)).toSorted(
    (a, b) => named.indexOf(a) - named.indexOf(b),
  );
}

/** True if the seller is, or once was, asked for reports of a media buy. */
export const hasReports = ({
  terms,
  frequency = null,
}: Pick<Stream, 'terms'> & { readonly frequency?: Frequency | null }): boolean =>
  frequency !== null || terms.some((is) => is.frequency !== null);

/** The name of a report window: its frequency and number. */
export interface Place {
  readonly frequency: Frequency;
  readonly number: number;
}

/** True if a reported end counts as a window's boundary: it equals the boundary, or is at most a minute earlier. */
export const saysEnd = (end: number, boundary: number): boolean =>
  end <= boundary && boundary - end <= SHORT_MS;

/**
 * Reported periods that begin too long before the media buy's flight (its time to run), or end too far in the future,
 * are ignored. A seller could name any year. Ms: 45 days, 2 days.
 */
const MOST_BEFORE_MS = 45 * DAY_MS;
const MOST_AHEAD_MS = 2 * DAY_MS;

/** Returns the window that a reported period fits; undefined if the period fits none (owed.md §2.3 to §2.5). */
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

/** Returns the numbers of the windows whose data have come, in any stage. */
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

/** The atomic step of the store that records a report: its time, and a test for the store's events. */
export interface ReportStep {
  /** The store's clock, Unix ms. */
  readonly now: number;
  /** True if the store has an event with the key `key` that may still be handled, or is DEAD. */
  readonly isThere: (key: string) => boolean;
}

/** True if the data of a period's window have come, or are in a stored event that is not done (owed.md §3.2). */
export function standsIn(stream: Stream, period: Period, { isThere }: Pick<ReportStep, 'isThere'>): boolean {
  const place = placeOf(stream, period, clockIn(stream));
  if (!place) return false;
  return (
    has(hadIn(stream, place.frequency), place.number) ||
    stream.claims.some((claim) => isOf(claim, place) && isThere(claim.key))
  );
}

/** Returns the keys of the events that claim a period's window (bring its data, and are not done). */
export function claimantsIn(stream: Stream, period: Period): readonly string[] {
  const place = stream.claims.length > 0 ? placeOf(stream, period, clockIn(stream)) : undefined;
  return place ? stream.claims.filter((claim) => isOf(claim, place)).map(({ key }) => key) : [];
}

const isOf = (one: Place, { frequency, number }: Place): boolean =>
  one.number === number && one.frequency === frequency;

/**
 * Adds a report's row about one media buy to the buy's stream. The report's event then claims the row's window: it
 * brings the window's data and is not done yet (owed.md §3.1, §3.3, §3.7).
 */
export function claimedIn(before: Stream, reported: Reported, { now, isThere }: ReportStep): Claimed {
  const { start, end, key, isRevision } = reported;
  if (end > now + MOST_AHEAD_MS) return { stream: before, isRepeated: false };
  const stream = withoutKey(withLater(before, reported), key);
  if (reported.isLate) return { stream, isRepeated: false };
  const stage = knownStage(stream, reported.stage);
  const place = placeOf(stream, { start, end }, clockIn(stream));
  if (!place) return unplaced(stream, { start, end, stage, key });
  const own: Claim = { ...place, stage, key };
  // The claim of an event that was deleted before it was done no longer counts.
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
 * Drops earlier claims under the key of a new event, which has claimed no window yet. They are left from an event with
 * the same key that was deleted before it was done.
 */
const withoutKey = (stream: Stream, key: string): Stream => ({
  ...stream,
  claims: stream.claims.filter((claim) => claim.key !== key),
  unplaced: stream.unplaced.filter((one) => one.key !== key),
});

/**
 * Saves the time of the next data that a row announces. For a window without data yet, the time is saved with the
 * window. Otherwise the announcement in the report of the latest period counts (owed.md §1.5).
 */
function withLater(stream: Stream, { start, end, isLate, nextAt: until }: Reported): Stream {
  if (until === undefined) return stream;
  if (isLate) {
    const place = placeOf(stream, { start, end }, clockIn(stream));
    if (!place) return stream;
    const others = (stream.late ?? []).filter((one) => !isOf(one, place));
    return { ...stream, late: [...others, { ...place, until }].slice(-MOST_LATE) };
  }
  // The announced data belong to windows that end after this row's window. The row itself may end up to `SHORT_MS`
  // before its window does.
  const after = end + SHORT_MS;
  if (stream.later && stream.later.after > after) return stream;
  return { ...stream, later: { after, until } };
}

/** Returns the stage; '' for a new one if the stream has too many, because a seller could name any number. */
function knownStage({ had, claims }: Stream, stage: string): string {
  const known = new Set([...had.map((one) => one.stage), ...claims.map((claim) => claim.stage)]);
  return known.has(stage) || known.size < MOST_STAGES ? stage : '';
}

/** Returns the largest number of periods kept without a window; it is higher until the media buy's terms are known. */
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

/**
 * Changes the zone to UTC if two consecutive reported periods fit UTC, but not the declared zone (owed.md §2.2).
 * Otherwise returns undefined.
 */
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

/** Finds windows for the reported periods that had fitted none, after the terms or the zone have changed. */
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

/** Records that the event with `key` is done: the windows that it claimed now have their data (owed.md §3.4). */
export function completedIn<S extends Stream>(stream: S, key: string): S {
  const claims = stream.claims.filter((claim) => claim.key !== key);
  const done = stream.claims.filter((claim) => claim.key === key);
  const marked = stream.unplaced.map((is) => (is.key === key ? { ...is, isDone: true as const } : is));
  const is = { ...stream, claims, unplaced: marked };
  return done.reduce((so, claim) => withHad(counted(so, claim), claim.stage, claim), is);
}

/** The prefix of the keys of pulled reports. Keys of webhooks contain no `/`. */
const PULLED = 'observation/pull/';

/** Counts a window whose data have come, by webhook or by pull, unless the window was counted before. */
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
