// Describes the account of one media buy, from its stream and the windows that it owes (owed.md §5.1). It is pure. The
// account, the metrics and `proto-webhooks owed` use it.
import type { BuyStream, ComparedTotals } from '../registrations/streams.ts';
import { statesIn } from '../states/states.ts';
import type { Frequency } from '../windows/calendar.ts';
import { windowPeriod } from '../windows/calendar.ts';
import { common, count, type Runs } from '../windows/runs.ts';
import { clockIn, hadIn, hasReports } from '../windows/stream.ts';
import { MOST_TERMS } from '../windows/terms.ts';
import type { Owing, Tolerance } from './evaluate.ts';
import { unpullable } from './pull.ts';

/** The reports of one media buy. */
export interface StreamAccount {
  readonly agentUrl: string;
  readonly mediaBuyId: string;
  /** The frequency of the reports; null: none are requested. */
  readonly frequency: Frequency | null;
  /**
   * The time zone in which days and months begin, and its source. `product`: the option `schedule`. `reports`: two
   * consecutive periods fit UTC and not the declared zone.
   */
  readonly zone: { readonly value: string; readonly source: 'product' | 'reports' | 'default' };
  readonly windows: {
    /** The number of windows that are due now. */
    readonly due: number;
    /** The numbers of windows whose first report came by a webhook, and by a request. Their handlers have completed. */
    readonly byWebhook: number;
    readonly byPull: number;
    /** The number of reports whose window had already been brought by another event. */
    readonly repeated: number;
  };
  readonly missing: readonly MissingWindow[];
  /** The windows whose event is DEAD: redrive or discard that event. */
  readonly held: readonly HeldWindow[];
  /** The latest reported periods that fit no window of the media buy. Their events were handled. */
  readonly unaligned: readonly { readonly start: string; readonly end: string; readonly key: string }[];
  /** The impairments that are open, and those that ended within the last 30 days. */
  readonly impairments: readonly ImpairmentAccount[];
  /** The reason why it is unknown which reports the media buy owes. */
  readonly unverifiable?: string;
  /**
   * The `final` report: it came, or it did not come in time. Absent if that is not known yet, or no reports are
   * requested.
   */
  readonly final?: 'received' | 'absent';
  /**
   * The result of comparing totals, or the reason why they are not compared. Present if `ours` is given and the media
   * buy has ended.
   */
  readonly totals?: TotalsAccount | { readonly error: string };
  /** True if the media buy has ended, and nothing remains to be done for it. */
  readonly closed: boolean;
  /** The time of its closing, ISO 8601. */
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
  /** The time of its last change, ISO 8601, on the seller's clock if the seller stated it. */
  readonly observedAt: string;
  /** The channel by which the last change came. */
  readonly source: 'webhook' | 'pull';
}

/** A window that is due, but whose report did not come. */
export interface MissingWindow {
  /** ISO 8601, in UTC. */
  readonly start: string;
  readonly end: string;
  /** The time at which its report was due, ISO 8601. */
  readonly dueAt: string;
  /** The number of failed requests for it; 0 if it is no longer requested. */
  readonly tries: number;
  /** The error of the last request, or the reason why it cannot be requested. */
  readonly lastError?: string;
  /** False if the report cannot be requested: contact the seller. */
  readonly recoverable: boolean;
}

/** A window whose event is DEAD. */
export interface HeldWindow {
  readonly start: string;
  readonly end: string;
  /** The idempotency key of the event. */
  readonly key: string;
}

const iso = (ms: number): string => new Date(ms).toISOString();

/** The most windows of one media buy that are listed: a year of hours. */
const MOST_LISTED = 10_000;

/** True if no window of a stream is missing or held, and the stream is not unverifiable (owed.md §5.1). */
export const isWhole = ({ missing, held, unverifiable }: StreamAccount): boolean =>
  missing.length === 0 && held.length === 0 && unverifiable === undefined;

/** The additional facts about a stream: the windows that it owes, and the time of the evaluation. */
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
 * True if something of a stream is newer than `since` (owed.md §9.2). It may be the media buy, terms, end, closing,
 * totals, a state, or the end of a window. An unverifiable stream is always news, because it is unknown since when it
 * is unverifiable.
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
 * Returns the reason why a stream is unverifiable; otherwise undefined. A stream is never called complete if it is
 * unknown what it owes.
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
