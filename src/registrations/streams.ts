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

/*
 * The account of a media buy's reports as registrations make it and the reconciler keeps it (owed.md §1.1). What arrives is noted in
 * it by the rules of the store, which know `Stream` alone.
 */

/** The state of a stream. `closed`: the media buy is terminal, and nothing of it is missing. */
export type StreamState = 'open' | 'closed';

/** Windows that could not be got, running ones together. */
export interface Missed {
  readonly frequency: Frequency;
  readonly first: number;
  /** Behind the last. */
  readonly end: number;
  readonly tries: number;
  /** When it was first asked for, and when it is asked for again, on the store's clock, Unix ms. */
  readonly since: number;
  readonly nextAt: number;
  readonly error: string;
}

/** The account of a media buy. Times are Unix ms on the store's clock, where nothing else is said. */
export interface BuyStream extends Stream {
  /** The operation that bought it; absent: nobody knows. */
  readonly operationId?: string;
  /** By what its seller is asked: of the operation. */
  readonly ref?: string;
  /** As JSON text. */
  readonly account?: string;
  readonly edition?: EditionName;
  /** Of the row by which its impairments are asked for, which is the list of its stream too; absent: they are not. */
  readonly round?: string;
  readonly frequency: Frequency | null;
  /** As of `AskedReports`. */
  readonly metrics?: readonly string[] | null;
  readonly products: readonly string[];
  readonly since: number;
  /** `get_media_buys` was answered last then. */
  readonly askedAt?: number;
  /** The instant of which the answer was, as it said; no later than `askedAt`. */
  readonly saidAt?: number;
  /** The seller's count of changes, and when the last one was, as the answer said. */
  readonly changes?: number;
  readonly updatedAt?: number;
  /** Questions about the buy that failed since, and when it is asked again. */
  readonly asks?: number;
  readonly askAt?: number;
  /** As the seller gave it: another one means that something has changed. */
  readonly revision?: string;
  /** When it became terminal. */
  readonly endedAt?: number;
  /** What is known of its products. */
  readonly delayMs?: number;
  readonly granularities?: readonly Frequency[];
  /** false: the seller answers for a lifetime alone. */
  readonly hasRanges?: boolean;
  /** Why nothing can be asked for; absent: it can. */
  readonly unverifiable?: string;
  readonly missed: readonly Missed[];
  /** Windows that cannot be got at all. */
  readonly lost: Windows;
  /** Absent: nobody has tried to compare them. */
  readonly totals?: TotalsTried;
  /** When it was closed first, unless the media buy has gone on since. */
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

/** Tries to compare totals. Without `nextAt` there are no more of them. */
export interface TotalsTried {
  readonly compared?: ComparedTotals;
  /** In vain, the first of them then. */
  readonly tries?: number;
  readonly since?: number;
  readonly nextAt?: number;
  readonly error?: string;
}

/** @throws where it is a stream that nobody has registered. */
export const buyStreamIn = ({ value }: Pick<RegistrationRow, 'value'>): BuyStream =>
  streamIn(value) as BuyStream;

/** A stream that was made from reports alone, before anybody registered its media buy. */
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

/** A call has been answered, and its media buy is known: what it asks for is owed from now on (owed.md §1.2). */
export function keepStream(step: SellerStep, of: OperationName, stored: Stored): void {
  const { reports, taskType } = stored;
  if (reports?.mediaBuyId === undefined) {
    if (reports || taskType === 'create_media_buy') bought(step, of, stored, reports);
  } else if (stored.state === 'ended' && stored.status === 'completed') {
    updated(step, of, stored, { ...reports, mediaBuyId: reports.mediaBuyId });
  }
}

/** @param reports undefined: nobody knows what the call asked for. It was made elsewhere. */
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

/** By which URLs the seller was told to send, the call among them. */
const toldBy = (known: Stream | undefined, stored: Stored, now: number): readonly Told[] =>
  withTold(known?.told ?? [], callToldIn(stored), timesOf(stored, now));

/** By which URLs the call was told, as it was made last. */
function callToldIn({ told, withoutConfig }: Stored): CallTold {
  if (!withoutConfig) return told ?? {};
  const { push: _refused, ...others } = told ?? {};
  return others;
}

/** It is acknowledged at its end (told.md §1.1). */
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
 * A running media buy is taken over: its seller is asked for its flight. A frequency that is known is replaced; null: no reports are
 * asked for, as far as is known.
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

/** Reports as an update or the owner says them. */
type SaidReports = Required<Pick<AskedReports, 'frequency'>> & Pick<AskedReports, 'metrics'>;

/** The seller reports so often: from now on, or if it was not known that it does, all along. */
const withReports = (stream: BuyStream, reports: SaidReports, now: number): BuyStream =>
  hasReports(stream)
    ? withFrequency(stream, reports, now)
    : { ...stream, ...reports, terms: [], changedAt: now };

/** From now on the seller reports so often, and that. */
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

/** What `adopt` says of the reports of a media buy. */
export interface AdoptedReports {
  /** null: none were asked for, as far as is known. */
  readonly frequency: Frequency | null;
  /** As of `AskedReports`; undefined: not said, what is known stays. */
  readonly metrics: AskedReports['metrics'] | undefined;
  readonly told: CallTold;
}

/** A stream that is asked for by an operation. What is not known of it yet, the seller is asked. */
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
 * Our own update is done: the seller is asked for what it has become. A frequency that we gave holds from now; a media buy without
 * a stream has one by it.
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
  // Without reports nothing of it is asked for by itself.
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

/** The answer or the end of a call of ours says that its media buy has ended (owed.md §7.1). */
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
