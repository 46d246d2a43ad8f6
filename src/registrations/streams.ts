// Makes the stream of a media buy when a call buys, updates or adopts the media buy (owed.md §1.1, §1.2). A stream is
// the stored record of a media buy's reports. Settling calls it; the reconciler maintains the stream from then on. The
// rules inside stores record the reports that arrive, and know only the members of `Stream`.
import type { EditionName } from '../shared/editions.ts';
import { storedId } from '../stages/ids.ts';
import type { RegistrationRow, RegistrationRows } from '../stores/store.ts';
import type { Frequency } from '../windows/calendar.ts';
import {
  emptyStream,
  hasReports,
  placedAnew,
  type Stream,
  streamIn,
  streamText,
  type Windows,
} from '../windows/stream.ts';
import { withEndSaid } from '../windows/ends.ts';
import { withTerms } from '../windows/terms.ts';
import { type CallTold, type Told, type ToldTimes, withTold } from '../windows/told.ts';
import { type AskedReports, spansOf } from './asked-reports.ts';
import { type OperationName, type Stored, storedIn } from './operation.ts';
import type { SellerStep } from './seller-step.ts';
import { addToRound, roundId } from './snapshot-rows.ts';

/** The state of a stream. `closed`: the media buy has ended, and no report of it is missing. */
export type StreamState = 'open' | 'closed';

/** Consecutive report windows (hours, days or months) whose reports could not be fetched. */
export interface Missed {
  readonly frequency: Frequency;
  readonly first: number;
  /** The number of the report window that follows the last one of the run. */
  readonly end: number;
  readonly tries: number;
  /**
   * `since`: the time when these reports were first requested. `nextAt`: the time of the next request. On the store's
   * clock, Unix ms.
   */
  readonly since: number;
  readonly nextAt: number;
  readonly error: string;
}

/**
 * The stored record of a media buy's reports. Times are Unix ms on the store's clock, unless a member says otherwise.
 */
export interface BuyStream extends Stream {
  /** The operation that made the media buy; absent: unknown. */
  readonly operationId?: string;
  /** The `ref` of the operation that made the media buy. Requests about the media buy pass it to the option `call`. */
  readonly ref?: string;
  /** The buyer's account at the seller, as JSON text. */
  readonly account?: string;
  readonly edition?: EditionName;
  /**
   * The id of the snapshot row (snapshot-rows.ts) by which the media buy's impairments are requested. The stream of an
   * open media buy is listed under this id. Absent: they are not requested.
   */
  readonly round?: string;
  readonly frequency: Frequency | null;
  /** The requested metrics, as in `AskedReports`. */
  readonly metrics?: readonly string[] | null;
  readonly products: readonly string[];
  readonly since: number;
  /** The time of the last request `get_media_buys` that the seller has answered. */
  readonly askedAt?: number;
  /** The time as of which the last answer to `get_media_buys` describes the media buy, never later than `askedAt`. */
  readonly saidAt?: number;
  /**
   * `changes`: the number of changes of the media buy, as the seller counts them. `updatedAt`: the time of the last
   * change. Both as in the last answer.
   */
  readonly changes?: number;
  readonly updatedAt?: number;
  /**
   * `asks`: the number of failed requests about the media buy since the last answer. `askAt`: the time of the next
   * request.
   */
  readonly asks?: number;
  readonly askAt?: number;
  /**
   * The revision of the media buy as the seller sent it. If an answer has another revision, the media buy has changed.
   */
  readonly revision?: string;
  /** The time at which the media buy ended, i.e. its status became terminal. */
  readonly endedAt?: number;
  /**
   * The known facts about the media buy's products: the delay of their reports, and the frequencies for which single
   * windows can be requested.
   */
  readonly delayMs?: number;
  readonly granularities?: readonly Frequency[];
  /** false: the seller gives figures only for the whole lifetime of a media buy, not for ranges of dates. */
  readonly hasRanges?: boolean;
  /** The reason why no reports can be requested from the seller; absent: they can be requested. */
  readonly unverifiable?: string;
  readonly missed: readonly Missed[];
  /** Report windows whose reports can never be fetched. */
  readonly lost: Windows;
  /** The comparison of your totals with the seller's; absent: no comparison was tried. */
  readonly totals?: TotalsTried;
  /**
   * The time at which the stream was first closed: the media buy had ended, and no report was missing. Absent before
   * that, or if the media buy has gone on since.
   */
  readonly closedAt?: number;
}

/** The totals of a media buy, as you or the seller counted them. Absent members are not known. */
export interface BuyTotals {
  readonly impressions?: number;
  readonly spend?: number;
  /** The currency of `spend`, e.g. `USD`. */
  readonly currency?: string;
}

/** The comparison of your totals of a media buy with the seller's. */
export interface ComparedTotals {
  /** The totals that your function `ours` returned; empty if it returned undefined. */
  readonly ours: BuyTotals;
  /** The totals that the seller answered. */
  readonly theirs: BuyTotals;
  /** True if your totals and the seller's differ by more than the tolerance, in a number that both have. */
  readonly differs: boolean;
  /** The time of the comparison, Unix ms on the store's clock. */
  readonly at: number;
}

/** The attempts to compare totals with the seller's. Without `nextAt` there is no further attempt. */
export interface TotalsTried {
  readonly compared?: ComparedTotals;
  /** `tries`: the number of failed attempts. `since`: the time of the first failed attempt. */
  readonly tries?: number;
  readonly since?: number;
  readonly nextAt?: number;
  readonly error?: string;
}

/**
 * Parses the stream in a row. The stream of a media buy that was never registered lacks the members of `BuyStream`.
 * @throws if the row cannot be read.
 */
export const buyStreamIn = ({ value }: Pick<RegistrationRow, 'value'>): BuyStream =>
  streamIn(value) as BuyStream;

/** False for a stream that was made from reports alone, before its media buy was registered. */
export const isRegistered = (stream: Stream): stream is BuyStream => 'since' in stream;

export function streamRow(
  { sender, id }: Pick<RegistrationRow, 'sender' | 'id'>,
  stream: BuyStream,
  state: StreamState,
  { dueAt = null, expiresAt = null }: Partial<Pick<RegistrationRow, 'dueAt' | 'expiresAt'>> = {},
): RegistrationRow {
  const list = state === 'open' ? (stream.round ?? state) : state;
  return { kind: 'stream', sender, id, value: streamText(stream), dueAt, list, expiresAt };
}

export function streamAt(rows: RegistrationRows, id: string): Stream | undefined {
  const row = rows.get('stream', id);
  return row && streamIn(row.value);
}

/**
 * Records in the stream which reports a call requests, once the call's media buy is known. From then on these reports
 * are expected (owed.md §1.2).
 */
export function keepStream(step: SellerStep, of: OperationName, stored: Stored): void {
  const { reports, taskType } = stored;
  if (reports?.mediaBuyId === undefined) {
    if (reports || taskType === 'create_media_buy') bought(step, of, stored, reports);
  } else if (stored.state === 'ended' && stored.status === 'completed') {
    updated(step, of, stored, { ...reports, mediaBuyId: reports.mediaBuyId });
  }
}

/**
 * Makes the stream of a new media buy.
 * @param reports the requested reports; undefined: unknown, because the call was made elsewhere.
 */
function bought(
  step: SellerStep,
  of: OperationName,
  stored: Stored,
  reports: AskedReports | undefined,
): void {
  const { rows, now, hashes } = step;
  const { mediaBuyId } = stored;
  if (mediaBuyId === undefined) return;
  const id = storedId(mediaBuyId, hashes);
  const known = streamAt(rows, id);
  const told = toldBy(known, stored, now);
  if (known && isRegistered(known)) {
    const row = rows.get('stream', id);
    if (row) rows.save({ ...row, value: streamText({ ...known, told }) });
    return;
  }
  const made = { ...streamMade(known ?? emptyStream(mediaBuyId), of, stored, step), told };
  const stream = reports ? placedAnew({ ...made, ...askedFor(reports, stored, now) }) : made;
  rows.save(streamRow({ sender: of.agentUrl, id }, stream, 'open', { dueAt: now }));
  addToRound(rows, of.agentUrl, stream, now);
}

/** Returns the URLs that the seller was given for a media buy: by earlier calls, and by this call. */
const toldBy = (known: Stream | undefined, stored: Stored, now: number): readonly Told[] =>
  withTold(known?.told ?? [], callToldIn(stored), timesOf(stored, now));

/**
 * Returns the URLs that the latest attempt of the call gave to the seller. After a repeat without webhooks, the URL for
 * webhooks is left out.
 */
function callToldIn({ told, withoutConfig }: Stored): CallTold {
  if (!withoutConfig) return told ?? {};
  const { push: _refused, ...others } = told ?? {};
  return others;
}

/**
 * Returns the time at which a call gave its URLs to the seller (`at`). If the call has ended as `completed`, the seller
 * has acknowledged the URLs: `ackedAt` is then the current time (told.md §1.1).
 */
const timesOf = ({ createdAt: at, state, status }: Stored, now: number): ToldTimes =>
  state === 'ended' && status === 'completed' ? { at, ackedAt: now } : { at };

function askedFor(
  reports: AskedReports,
  { createdAt }: Pick<Stored, 'createdAt'>,
  now: number,
): Pick<BuyStream, 'frequency' | 'metrics' | 'products' | 'terms'> {
  const { frequency = null, metrics, products } = reports;
  const from = Math.min(reports.start ?? now, now);
  return {
    frequency,
    ...metricsOf(metrics),
    products,
    terms: withTerms([], { from, frequency, spans: spansOf(reports, createdAt) }),
  };
}

/**
 * Takes over a running media buy: makes or changes its stream. The seller is asked for the start and end of the media
 * buy. A given frequency replaces the known one; null leaves the known one unchanged.
 */
export function adoptStream(
  step: SellerStep,
  operation: RegistrationRow,
  mediaBuyId: string,
  { frequency, metrics, told }: AdoptedReports,
): void {
  const { rows, now, hashes } = step;
  const { sender, id: operationId } = operation;
  const id = storedId(mediaBuyId, hashes);
  const known = streamAt(rows, id);
  const of = { agentUrl: sender, operationId };
  const isKnown = known !== undefined && isRegistered(known);
  const made = isKnown ? known : streamMade(known ?? emptyStream(mediaBuyId), of, storedIn(operation), step);
  const said = { frequency, ...metricsOf(metrics === undefined ? made.metrics : metrics) };
  const asked = isKnown ? withReports(known, said, now) : { ...made, ...said };
  const stream = frequency === null ? made : asked;
  const is = { ...stream, told: withTold(known?.told ?? [], told, { at: now, ackedAt: now }) };
  rows.save(streamRow({ sender, id }, is, 'open', { dueAt: now }));
  if (!isKnown) addToRound(rows, sender, is, now);
}

const metricsOf = (metrics: AskedReports['metrics'] | undefined): Pick<AskedReports, 'metrics'> =>
  metrics === undefined ? {} : { metrics };

/** The reports that an update requests, or that the owner passes to `adopt`. */
type SaidReports = Required<Pick<AskedReports, 'frequency'>> & Pick<AskedReports, 'metrics'>;

/**
 * Changes the requested reports of a stream: from now on, or for the media buy's whole time if none were requested
 * before.
 */
const withReports = (stream: BuyStream, reports: SaidReports, now: number): BuyStream =>
  hasReports(stream)
    ? withFrequency(stream, reports, now)
    : { ...stream, ...reports, terms: [], changedAt: now };

/** Changes the frequency and metrics of a stream from now on. */
function withFrequency(
  { metrics: _before, ...stream }: BuyStream,
  { frequency, metrics }: SaidReports,
  now: number,
): BuyStream {
  const last = stream.terms.at(-1);
  return {
    ...stream,
    frequency,
    ...metricsOf(metrics),
    terms: last ? withTerms(stream.terms, { ...last, from: now, frequency }) : stream.terms,
  };
}

/** The facts about a media buy's reports that the owner passes to `adopt`. */
export interface AdoptedReports {
  /** null: as far as the owner knows, no reports were requested. */
  readonly frequency: Frequency | null;
  /** The requested metrics, as in `AskedReports`; undefined: not given, so the known metrics stay. */
  readonly metrics: AskedReports['metrics'] | undefined;
  readonly told: CallTold;
}

/**
 * Makes the stream of the media buy of an operation. Facts that are unknown are left out, and the seller is asked for
 * them.
 */
export function streamMade(
  known: Stream,
  { operationId }: OperationName,
  { ref, account, seller }: Pick<Stored, 'ref' | 'account' | 'seller'>,
  { now, hashes }: Pick<SellerStep, 'now' | 'hashes'>,
): BuyStream {
  return {
    ...known,
    operationId,
    ...(ref !== undefined && { ref }),
    ...(account !== undefined && { account }),
    ...(seller.edition && { edition: seller.edition }),
    round: roundId({ ...(account !== undefined && { account }), ...(ref !== undefined && { ref }) }, hashes),
    frequency: null,
    products: [],
    since: now,
    missed: [],
    lost: {},
  };
}

/**
 * Records in the stream that a registered update of the media buy has completed. The seller is then asked for the new
 * state. A frequency in the update is valid from now on. A media buy without a stream gets one if the update requests
 * reports.
 */
function updated(
  step: SellerStep,
  of: OperationName,
  stored: Stored,
  { frequency, metrics, products, mediaBuyId }: AskedReports & { readonly mediaBuyId: string },
): void {
  const { rows, now, hashes } = step;
  const id = storedId(mediaBuyId, hashes);
  const row = rows.get('stream', id);
  const kept = row && streamIn(row.value);
  const isKnown = kept !== undefined && isRegistered(kept);
  if (!isKnown && !frequency) return;
  const known = isKnown ? kept : streamMade(kept ?? emptyStream(mediaBuyId), of, stored, step);
  const told = toldBy(known, stored, now);
  // Neither the update nor the stream requests reports, so there is nothing to request regularly. Only the URLs are
  // stored.
  if (row && !frequency && !hasReports(known)) {
    rows.save({ ...row, value: streamText({ ...known, told }) });
    return;
  }
  const stream: BuyStream = {
    ...(frequency === undefined ? known : withFrequency(known, { frequency, ...metricsOf(metrics) }, now)),
    told,
    products: [...new Set([...known.products, ...products])],
    changedAt: now,
  };
  rows.save(streamRow({ sender: of.agentUrl, id }, placedAnew(stream), 'open', { dueAt: now }));
  if (!isKnown) addToRound(rows, of.agentUrl, stream, now);
}

/**
 * Records in the stream that its media buy has ended, as an answer to a call or the end of a task says (owed.md §7.1).
 */
export function noteEnding(
  { rows, now, hashes }: SellerStep,
  { agentUrl: sender }: OperationName,
  { reports, mediaBuyId: named }: Stored,
  status: string | undefined,
): void {
  if (status === undefined) return;
  const mediaBuyId = reports?.mediaBuyId ?? named;
  if (mediaBuyId === undefined || (named !== undefined && named !== mediaBuyId)) return;
  const id = storedId(mediaBuyId, hashes);
  const known = streamAt(rows, id);
  if (!known || !isRegistered(known)) return;
  const stream = withEndSaid(known, { status, at: now }, now);
  if (stream !== known) rows.save(streamRow({ sender, id }, stream, 'open', { dueAt: now }));
}
