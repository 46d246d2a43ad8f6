// Makes the account of a media buy's reports when a call buys, updates or adopts it (owed.md §1.1, §1.2). Settling
// calls it, and the reconciler keeps the account from then on. Rules of the store note what arrives, and know `Stream`
// alone.
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

/** A run of windows that could not be fetched. */
export interface Missed {
  readonly frequency: Frequency;
  readonly first: number;
  /** The number behind the last window. */
  readonly end: number;
  readonly tries: number;
  /** The time when it was first asked for, and the next one, on the store's clock, Unix ms. */
  readonly since: number;
  readonly nextAt: number;
  readonly error: string;
}

/** The account of a media buy. Times are Unix ms on the store's clock, unless a member says otherwise. */
export interface BuyStream extends Stream {
  /** The operation that bought it; absent: unknown. */
  readonly operationId?: string;
  /** The operation's `ref`, with which its seller is asked. */
  readonly ref?: string;
  /** As JSON text. */
  readonly account?: string;
  readonly edition?: EditionName;
  /**
   * The id of the row by which its impairments are asked for, which is also the list of its stream. Absent: they are
   * not asked for.
   */
  readonly round?: string;
  readonly frequency: Frequency | null;
  /** As in `AskedReports`. */
  readonly metrics?: readonly string[] | null;
  readonly products: readonly string[];
  readonly since: number;
  /** The time of the last answer to `get_media_buys`. */
  readonly askedAt?: number;
  /** The instant that the answer gave for itself; no later than `askedAt`. */
  readonly saidAt?: number;
  /** The seller's count of changes, and the time of the last one, as the answer said. */
  readonly changes?: number;
  readonly updatedAt?: number;
  /** The number of questions about the buy that failed since, and the time of the next. */
  readonly asks?: number;
  readonly askAt?: number;
  /** The revision as the seller gave it: a different one means that something has changed. */
  readonly revision?: string;
  /** The time at which it became terminal. */
  readonly endedAt?: number;
  /** The known facts about its products. */
  readonly delayMs?: number;
  readonly granularities?: readonly Frequency[];
  /** false: the seller only answers for the whole lifetime. */
  readonly hasRanges?: boolean;
  /** The reason why nothing can be asked for; absent: it can. */
  readonly unverifiable?: string;
  readonly missed: readonly Missed[];
  /** Windows that can never be fetched. */
  readonly lost: Windows;
  /** Absent: no comparison was tried. */
  readonly totals?: TotalsTried;
  /** The time of its first closing, unless the media buy has gone on since. */
  readonly closedAt?: number;
}

/** The totals that one side has of a media buy. Absent members are not known. */
export interface BuyTotals {
  readonly impressions?: number;
  readonly spend?: number;
  /** The currency of `spend`, e.g. `USD`. */
  readonly currency?: string;
}

/** The totals of a media buy, compared. */
export interface ComparedTotals {
  /** The totals that your function `ours` returned; empty if that was undefined. */
  readonly ours: BuyTotals;
  /** The totals that the seller answered. */
  readonly theirs: BuyTotals;
  /** True if a member of both differs by more than the tolerance. */
  readonly differs: boolean;
  /** The time of the comparison, Unix ms on the store's clock. */
  readonly at: number;
}

/** The tries to compare totals. Without `nextAt` there are no further ones. */
export interface TotalsTried {
  readonly compared?: ComparedTotals;
  /** The number of failed tries, and the time of the first. */
  readonly tries?: number;
  readonly since?: number;
  readonly nextAt?: number;
  readonly error?: string;
}

/**
 * The stream in a row. A stream that nobody has registered lacks the members of `BuyStream`.
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

/** Records the reports that a call asks for, once its media buy is known: it is owed from then on (owed.md §1.2). */
export function keepStream(step: SellerStep, of: OperationName, stored: Stored): void {
  const { reports, taskType } = stored;
  if (reports?.mediaBuyId === undefined) {
    if (reports || taskType === 'create_media_buy') bought(step, of, stored, reports);
  } else if (stored.state === 'ended' && stored.status === 'completed') {
    updated(step, of, stored, { ...reports, mediaBuyId: reports.mediaBuyId });
  }
}

/** Makes the stream of a bought media buy. @param reports undefined: unknown, because the call was made elsewhere. */
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

/** The URLs that the seller was given for a media buy, those of the call included. */
const toldBy = (known: Stream | undefined, stored: Stored, now: number): readonly Told[] =>
  withTold(known?.told ?? [], callToldIn(stored), timesOf(stored, now));

/** The URLs that the call named when it was made last. */
function callToldIn({ told, withoutConfig }: Stored): CallTold {
  if (!withoutConfig) return told ?? {};
  const { push: _refused, ...others } = told ?? {};
  return others;
}

/** The times at which a call named its URLs: acknowledged at its end (told.md §1.1). */
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
 * Takes over a running media buy: its seller is asked for its flight. A known frequency is replaced. null: as far as is
 * known, no reports are asked for.
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

/** The reports that an update or the owner names. */
type SaidReports = Required<Pick<AskedReports, 'frequency'>> & Pick<AskedReports, 'metrics'>;

/** The stream with another frequency: from now on, or for all its time if it was not known to report. */
const withReports = (stream: BuyStream, reports: SaidReports, now: number): BuyStream =>
  hasReports(stream)
    ? withFrequency(stream, reports, now)
    : { ...stream, ...reports, terms: [], changedAt: now };

/** The stream with another frequency and other metrics from now on. */
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

/** The facts that `adopt` gives about the reports of a media buy. */
export interface AdoptedReports {
  /** null: as far as is known, none were asked for. */
  readonly frequency: Frequency | null;
  /** As in `AskedReports`; undefined: not given, so the known ones stay. */
  readonly metrics: AskedReports['metrics'] | undefined;
  readonly told: CallTold;
}

/** A stream for a media buy of an operation. The seller is asked for whatever is unknown. */
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
 * Notes that our own update is done: the seller is asked for the new state. A frequency that we gave holds from now;
 * with one, a media buy without a stream gets one.
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
  // Without reports, nothing is asked for by itself.
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

/** Notes that the answer or the end of a call of ours says that its media buy has ended (owed.md §7.1). */
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
