// Describes the reports of one media buy as `reconciler.account` returns them, from its stream (its record) and the
// windows that it owes (owed.md §5.1). The functions are pure. The metrics and `proto-webhooks owed` use them too.
import type { BuyStream, ComparedTotals } from '../registrations/streams.ts';
import { statesIn } from '../states/states.ts';
import type { Frequency } from '../windows/calendar.ts';
import { windowPeriod } from '../windows/calendar.ts';
import { common, count, type Runs } from '../windows/runs.ts';
import { clockIn, hadIn, hasReports } from '../windows/stream.ts';
import { MOST_TERMS } from '../windows/terms.ts';
import type { Owing, Tolerance } from './evaluate.ts';
import { unpullable } from './pull.ts';

/** The account of one media buy: the reports that are due, that arrived, and that are missing. */
export interface StreamAccount {
  readonly agentUrl: string;
  readonly mediaBuyId: string;
  /** The frequency of the reports; null: no reports are requested. */
  readonly frequency: Frequency | null;
  /**
   * The time zone in which days and months begin, and its source. `product`: the option `schedule`. `reports`: two
   * consecutive periods fit UTC and not the declared zone. `default`: UTC, because no zone is declared.
   */
  readonly zone: { readonly value: string; readonly source: 'product' | 'reports' | 'default' };
  readonly windows: {
    /** The number of windows (report periods) that are due now. */
    readonly due: number;
    /**
     * The number of windows whose first report came by a webhook (`byWebhook`), or by a request to the seller
     * (`byPull`), and was handled.
     */
    readonly byWebhook: number;
    readonly byPull: number;
    /** The number of reports that came for a window for which another event had already brought a report. */
    readonly repeated: number;
  };
  readonly missing: readonly MissingWindow[];
  /** The report periods whose event is DEAD (its handler has failed for good): redrive or discard that event. */
  readonly held: readonly HeldWindow[];
  /**
   * The latest reported periods that fit no period for which the media buy owes a report. Their events were handled.
   */
  readonly unaligned: readonly { readonly start: string; readonly end: string; readonly key: string }[];
  /** The impairments that are open, and those that ended within the last 30 days. */
  readonly impairments: readonly ImpairmentAccount[];
  /** The reason why it is unknown which reports the media buy owes. */
  readonly unverifiable?: string;
  /**
   * `received`: the `final` report came. `absent`: it did not come in time. Absent if neither is known yet, or if no
   * reports are requested.
   */
  readonly final?: 'received' | 'absent';
  /**
   * The result of comparing totals, or the error because of which they are not compared. Present if the option `ours`
   * is given and the media buy has ended.
   */
  readonly totals?: TotalsAccount | { readonly error: string };
  /** True if the media buy has ended, and the reconciler has nothing left to do for it. */
  readonly closed: boolean;
  /** The time at which the media buy was closed, ISO 8601. */
  readonly closedAt?: string;
}

/** The compared totals of a media buy. */
export interface TotalsAccount extends Omit<ComparedTotals, 'at'> {
  /** The time of the comparison, ISO 8601. */
  readonly at: string;
}

/** An impairment of a media buy, as it was last reported to handlers. */
export interface ImpairmentAccount {
  /** The `impairment_id`. */
  readonly id: string;
  readonly state: 'open' | 'ended';
  /** The time of the impairment's last change, ISO 8601, on the seller's clock if the seller stated it. */
  readonly observedAt: string;
  /** The channel by which the last change became known. `pull`: a request to the seller. */
  readonly source: 'webhook' | 'pull';
}

/** A window (report period) that is due, and whose report did not come. */
export interface MissingWindow {
  /** The start of the period, ISO 8601 in UTC. */
  readonly start: string;
  readonly end: string;
  /** The time at which the report was due, ISO 8601. */
  readonly dueAt: string;
  /** The number of failed requests for the report. 0 if it was not requested yet, or is no longer requested. */
  readonly tries: number;
  /** The error of the last request for the report, or the reason why it cannot be requested. */
  readonly lastError?: string;
  /** False if the report cannot be requested: contact the seller. */
  readonly recoverable: boolean;
}

/** A window (report period) whose event is DEAD: the report came, but its handler has failed for good. */
export interface HeldWindow {
  readonly start: string;
  readonly end: string;
  /** The idempotency key of the event. */
  readonly key: string;
}

const iso = (ms: number): string => new Date(ms).toISOString();

/** The most report periods of one frequency that are listed for a media buy: more than a year of hours. */
const MOST_LISTED = 10_000;

/**
 * True if no report of a media buy is missing or held (DEAD event), and it is known which reports are owed
 * (owed.md §5.1).
 */
export const isWhole = ({ missing, held, unverifiable }: StreamAccount): boolean =>
  missing.length === 0 && held.length === 0 && unverifiable === undefined;

/** The report periods that a media buy owes, and the time and settings with which they were computed. */
export interface Seen {
  readonly owed: Owing;
  readonly now: number;
  readonly tolerance: Tolerance;
  readonly since: number | undefined;
}

export function streamAccountOf(agentUrl: string, stream: BuyStream, seen: Seen): StreamAccount {
  const { owed, now, since = -Infinity } = seen;
  const { clock, counts, frequency, mediaBuyId, unplaced } = stream;
  const unverifiable = unverifiableIn(stream);
  const held = owed.held
    .map((claim) => ({ ...periodIn(stream, claim.frequency, claim.number), key: claim.key }))
    .filter((one) => one.end > since);
  return {
    agentUrl,
    mediaBuyId,
    frequency,
    zone: { value: clock.zone, source: clock.source },
    windows: { due: owed.windows.reduce((sum, { due }) => sum + count(due), 0), ...counts },
    missing: missingIn(stream, seen).filter(({ end }) => Date.parse(end) > since),
    held: held.map(({ start, end, key }) => ({ start: iso(start), end: iso(end), key })),
    unaligned: unplaced.map(({ start, end, key }) => ({ start: iso(start), end: iso(end), key })),
    impairments: statesIn(stream, now).map(({ id, at, by, isEnded }) => ({
      id,
      state: isEnded ? 'ended' : 'open',
      observedAt: iso(at),
      source: by,
    })),
    ...(unverifiable !== undefined && { unverifiable }),
    ...(stream.final !== undefined && { final: stream.final }),
    ...totalsIn(stream),
    closed: stream.closedAt !== undefined,
    ...(stream.closedAt !== undefined && { closedAt: iso(stream.closedAt) }),
  };
}

function totalsIn({ totals }: BuyStream): Pick<StreamAccount, 'totals'> {
  const { compared, error } = totals ?? {};
  if (compared) return { totals: { ...compared, at: iso(compared.at) } };
  return error === undefined ? {} : { totals: { error } };
}

/**
 * True if a media buy has news after `since`: its registration, terms, end, closing, totals, an impairment, or the end
 * of a period (owed.md §9.2). While it is unknown which reports a media buy owes, it always counts as news.
 */
export function isNews(stream: BuyStream, owed: Owing, since: number): boolean {
  const { terms, unplaced } = stream;
  if (unverifiableIn(stream) !== undefined) return true;
  const { endedAt, closedAt, totals, states = [] } = stream;
  const changed = states.map(({ keptAt }) => keptAt);
  const times = [stream.since, terms.at(-1)?.from, endedAt, closedAt, totals?.compared?.at, ...changed];
  if (times.some((at = -Infinity) => at > since)) return true;
  if (unplaced.some(({ end }) => end > since)) return true;
  return owed.windows.some(({ frequency, due }) => {
    const standing = owed.held
      .filter((claim) => claim.frequency === frequency)
      .map(({ number }) => number + 1);
    const ends = [due, hadIn(stream, frequency)].flatMap((runs) => runs.at(-1)?.[1] ?? []);
    return [...standing, ...ends].some((end) => periodIn(stream, frequency, end - 1).end > since);
  });
}

/**
 * Returns the reason why it is unknown which reports a media buy owes; undefined if it is known. The account of such a
 * media buy is never complete.
 */
function unverifiableIn(stream: BuyStream): string | undefined {
  const { unverifiable, terms } = stream;
  if (unverifiable !== undefined || !hasReports(stream)) return unverifiable;
  if (terms.length === 0) return 'its seller has not said yet what the media buy is';
  return terms.length < MOST_TERMS ? undefined : 'it was changed so often that its first terms are forgotten';
}

const periodIn = (stream: BuyStream, frequency: Frequency, number: number) =>
  windowPeriod(frequency, clockIn(stream), number);

function missingIn(stream: BuyStream, { owed, tolerance }: Seen): readonly MissingWindow[] {
  const lateMs = (stream.delayMs ?? tolerance.delayMs) + tolerance.graceMs;
  return owed.windows.flatMap(({ frequency, missing, lost, due }) => {
    const cannot = unpullable(stream, frequency);
    const gone = common(due, lost);
    const of = (runs: Runs, recoverable: boolean): readonly MissingWindow[] =>
      numbersIn(runs).map((number) => {
        const { start, end } = periodIn(stream, frequency, number);
        const missed = stream.missed.find(
          (one) => one.frequency === frequency && one.first <= number && number < one.end,
        );
        return {
          start: iso(start),
          end: iso(end),
          dueAt: iso(end + lateMs),
          tries: missed?.tries ?? 0,
          ...((missed || !recoverable) && { lastError: missed?.error ?? cannot ?? GIVEN_UP }),
          recoverable,
        };
      });
    return [...of(missing, cannot === undefined), ...of(gone, false)].toSorted((a, b) =>
      a.start < b.start ? -1 : 1,
    );
  });
}

const GIVEN_UP = 'it was pulled in vain for seven days';

function numbersIn(runs: Runs): readonly number[] {
  const numbers: number[] = [];
  for (const [first, end] of runs) {
    for (let number = first; number < end && numbers.length < MOST_LISTED; number += 1) numbers.push(number);
  }
  return numbers;
}
