// Makes the stream of a media buy when a call buys, updates or adopts the buy (owed.md §1.1, §1.2). A stream is the
// stored account of a media buy's reports. Settling calls it; the reconciler maintains the stream from then on. The
// rules of stores note what arrives, and know only the members of `Stream`.
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

/** The state of a stream. `closed`: the media buy is terminal, and no report of it is missing. */
export type StreamState = 'open' | 'closed';

/** A run of consecutive windows whose reports could not be fetched. */
export interface Missed {
  readonly frequency: Frequency;
  readonly first: number;
  /** The number that follows the last window of the run. */
  readonly end: number;
  readonly tries: number;
  /** The time when the run was first requested, and the time of the next try, on the store's clock, Unix ms. */
  readonly since: number;
  readonly nextAt: number;
  readonly error: string;
}

/** The account of a media buy's reports. Times are Unix ms on the store's clock, unless a member says otherwise. */
export interface BuyStream extends Stream {
  /** The operation that made the media buy; absent: unknown. */
  readonly operationId?: string;
  /** The operation's `ref`, which is passed on when its seller is asked. */
  readonly ref?: string;
  /** The buyer's account as JSON text. */
  readonly account?: string;
  readonly edition?: EditionName;
  /**
   * The id of the row by which its impairments are requested, which is also the list of its stream. Absent: they are
   * not requested.
   */
  readonly round?: string;
  readonly frequency: Frequency | null;
  /** As in `AskedReports`. */
  readonly metrics?: readonly string[] | null;
  readonly products: readonly string[];
  readonly since: number;
  /** The time of the last answer to `get_media_buys`. */
  readonly askedAt?: number;
  /** The time that the answer stated for itself, never later than `askedAt`. */
  readonly saidAt?: number;
  /** The seller's number of changes, and the time of the last change, as the answer stated them. */
  readonly changes?: number;
  readonly updatedAt?: number;
  /** The number of failed requests about the buy since that answer, and the time of the next request. */
  readonly asks?: number;
  readonly askAt?: number;
  /** The revision as the seller sent it. If it differs from the stored one, something has changed. */
  readonly revision?: string;
  /** The time at which the media buy became terminal. */
  readonly endedAt?: number;
  /** The known facts about its products. */
  readonly delayMs?: number;
  readonly granularities?: readonly Frequency[];
  /** false: the seller only answers for the whole lifetime. */
  readonly hasRanges?: boolean;
  /** The reason why no reports can be requested; absent: they can. */
  readonly unverifiable?: string;
  readonly missed: readonly Missed[];
  /** Windows whose reports can never be fetched. */
  readonly lost: Windows;
  /** Absent: no comparison was tried. */
  readonly totals?: TotalsTried;
  /** The time at which the stream was first closed. Absent if it was not, or if the media buy has gone on since. */
  readonly closedAt?: number;
}

/** The totals of a media buy, as one side has them. Absent members are not known. */
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
  /** True if a member of both differs by more than the tolerance. */
  readonly differs: boolean;
  /** The time of the comparison, Unix ms on the store's clock. */
  readonly at: number;
}

/** The tries to compare totals. Without `nextAt` there will be no further try. */
export interface TotalsTried {
  readonly compared?: ComparedTotals;
  /** The number of failed tries, and the time of the first one. */
  readonly tries?: number;
  readonly since?: number;
  readonly nextAt?: number;
  readonly error?: string;
}

/**
 * Returns the stream in a row. If its media buy was never registered, it lacks the members of `BuyStream`.
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

/** Stores which reports a call requests, once its media buy is known. From then on they are expected (owed.md §1.2). */
export function keepStream(step: SellerStep, of: OperationName, stored: Stored): void {
  const { reports, taskType } = stored;
  if (reports?.mediaBuyId === undefined) {
    if (reports || taskType === 'create_media_buy') bought(step, of, stored, reports);
  } else if (stored.state === 'ended' && stored.status === 'completed') {
    updated(step, of, stored, { ...reports, mediaBuyId: reports.mediaBuyId });
  }
}

/** Makes the stream of a new media buy. @param reports undefined: unknown, because the call was made elsewhere. */
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

/** Returns the URLs that the seller was given for a media buy, including those of the call. */
const toldBy = (known: Stream | undefined, stored: Stored, now: number): readonly Told[] =>
  withTold(known?.told ?? [], callToldIn(stored), timesOf(stored, now));

/** Returns the URLs that the latest attempt of the call named. */
function callToldIn({ told, withoutConfig }: Stored): CallTold {
  if (!withoutConfig) return told ?? {};
  const { push: _refused, ...others } = told ?? {};
  return others;
}

/**
 * Returns the times at which a call gave its URLs to the seller. They are acknowledged when the call completes (told.md
 * §1.1).
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
 * Takes over a running media buy. Its seller is asked for the buy's start and end. A given frequency replaces the known
 * one; null means that no reports are known to be requested.
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

/** The reports that an update or the owner requests. */
type SaidReports = Required<Pick<AskedReports, 'frequency'>> & Pick<AskedReports, 'metrics'>;

/** Changes the frequency of a stream: from now on, or for its whole time if it had no reports before. */
const withReports = (stream: BuyStream, reports: SaidReports, now: number): BuyStream =>
  hasReports(stream)
    ? withFrequency(stream, reports, now)
    : { ...stream, ...reports, terms: [], changedAt: now };

/** Changes frequency and metrics of a stream from now on. */
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
  /** null: as far as is known, no reports were requested. */
  readonly frequency: Frequency | null;
  /** As in `AskedReports`; undefined: not given, so the known ones stay. */
  readonly metrics: AskedReports['metrics'] | undefined;
  readonly told: CallTold;
}

/** Makes the stream of an operation's media buy. The seller is asked for whatever is unknown. */
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
 * Notes that an update of ours is done: the seller is asked for the new state. A frequency in the update is valid from
 * now on. If the media buy has no stream yet, it gets one.
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
  // Without reports there is nothing to request regularly.
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

/** Notes that a media buy has ended, as the answer or the end of a call of ours says (owed.md §7.1). */
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
