// Compares the booked totals of a media buy (e.g. impressions) with the seller's totals, when the media buy has ended
// or on request (owed.md §8). Called by reconciler.ts and by `reconciler.compare`.
import type { PollFailure } from '../poll/failure.ts';
import { MAX_TEXT, printableText } from '../codec/printable.ts';
import { PrintableError } from '../codec/printable-value.ts';
import type { Hashes } from '../crypto/engine.ts';
import {
  type BuyStream,
  type BuyTotals,
  buyStreamIn,
  type ComparedTotals,
  isRegistered,
} from '../registrations/streams.ts';
import { freePlace, type Place, takePlace } from '../registrations/places.ts';
import { ConfigError, isOfKind, messageOf } from '../shared/errors.ts';
import { limited, orAborted } from '../shared/time-limits.ts';
import { storedId } from '../stages/ids.ts';
import { streamText } from '../windows/stream.ts';
import { after, misconfigured, NO_RANGES } from './ask-seller.ts';
import type { Held, ReconcilerContext } from './context.ts';
import { askSeller, pauseOf } from './question.ts';
import { differences, givenTotals, theirTotals, totalsArguments, triedAgain } from './totals.ts';

/** Thrown by `reconciler.compare` if totals cannot be compared now. `cause` has the seller's error, if there is one. */
export class CompareError extends PrintableError {
  override readonly name = 'CompareError';
  /** The stable code, always `compare_failed`. */
  readonly code = 'compare_failed';
}

/** The totals that the option `ours` and the seller returned, or the error because of which they are unknown. */
interface Asked {
  readonly ours?: BuyTotals | undefined;
  /**
   * The seller's totals. Undefined also if `ours` returned nothing for a media buy that has ended: the seller is not
   * asked then.
   */
  readonly theirs?: BuyTotals | undefined;
  readonly error?: string;
  readonly cause?: unknown;
  readonly failure?: PollFailure;
  /** True if the seller refused a request with dates, because it can only answer for a media buy's whole lifetime. */
  readonly hasNoRanges?: true;
}

/**
 * Calls the option `ours` for the booked totals. `ours` may take half of `callMs`. Together with the request to the
 * seller, this is less than the row's lease, which is twice `callMs`.
 */
async function askOwner(
  context: ReconcilerContext,
  sender: string,
  { mediaBuyId, ref }: BuyStream,
  stopping: AbortSignal,
): Promise<Asked> {
  const ms = Math.ceil(context.callMs / 2);
  try {
    const buy = { agentUrl: sender, mediaBuyId, ...(ref !== undefined && { ref }) };
    const reason = `it did not return within ${ms} ms`;
    const given = await limited({ ms, reason }, stopping, (signal) =>
      orAborted(Promise.resolve(context.totals?.ours(buy)), signal),
    );
    return { ours: givenTotals(given) };
  } catch (cause) {
    const error = isOfKind(cause, ConfigError) ? cause.message : `ours failed: ${messageOf(cause)}`;
    if (!stopping.aborted) misconfigured(context, sender, error);
    return { error, cause };
  }
}

async function askForTotals(
  context: ReconcilerContext,
  sender: string,
  stream: BuyStream,
  now: number,
  stopping: AbortSignal,
): Promise<Asked> {
  const args = totalsArguments(stream, now);
  const question = ['get_media_buy_delivery', args] as const;
  const answered = await askSeller(context, { sender }, stream, question, stopping);
  if ('data' in answered) {
    const theirs = theirTotals(answered.data, stream.mediaBuyId);
    return theirs ? { theirs } : { error: 'the answer has no totals of the media buy' };
  }
  const { failure, code = '', cause } = answered;
  const hasNoRanges = 'start_date' in args && NO_RANGES.has(code);
  return { failure, cause, error: failure.message, ...(hasNoRanges && { hasNoRanges }) };
}

function compared(
  { totals }: ReconcilerContext,
  { ours = {}, theirs = {} }: Pick<Asked, 'ours' | 'theirs'>,
  at: number,
): ComparedTotals {
  const { tolerance } = totals ?? {};
  return { ours, theirs, differs: !!tolerance && differences(ours, theirs, tolerance).length > 0, at };
}

/** Compares the totals of a media buy whose stream (its record) is about to be closed, and stores the result. */
export async function compareAtEnd(
  context: ReconcilerContext,
  held: Held,
  { stream, place, now }: { readonly stream: BuyStream; readonly place: Place; readonly now: number },
  stopping: AbortSignal,
): Promise<void> {
  const own = await askOwner(context, held.sender, stream, stopping);
  // If `ours` returned nothing, there is nothing to compare, so the seller is not asked.
  const asked = own.ours
    ? { ...own, ...(await askForTotals(context, held.sender, stream, now, stopping)) }
    : own;
  let found: ComparedTotals | undefined;
  await after(context, held, place, asked, (known, at) => {
    found = undefined;
    if (stopping.aborted) return known;
    if (asked.hasNoRanges) return { ...known, hasRanges: false };
    if (asked.error !== undefined) return { ...known, totals: triedAgain(known.totals, asked.error, at) };
    if (!asked.theirs) return { ...known, totals: {} };
    found = compared(context, asked, at);
    return { ...known, totals: { compared: found } };
  });
  if (found) tell(context, held.sender, stream, found);
}

function tell(
  { parts }: ReconcilerContext,
  sender: string,
  { mediaBuyId }: BuyStream,
  { ours, theirs, differs }: ComparedTotals,
): void {
  if (!differs) return;
  parts.raiseAlarm({
    code: 'totals_differ',
    sender,
    mediaBuyId,
    ours,
    theirs,
    message: `The totals of media buy ${printableText(mediaBuyId, MAX_TEXT)} differ: ${textOf(ours)} are booked, the seller has ${textOf(theirs)}. Compare your books with the seller's figures.`,
  });
}

const textOf = ({ impressions, spend, currency }: BuyTotals): string =>
  [
    `${impressions ?? 'no'} impressions`,
    ...(spend === undefined ? [] : [`${[spend, currency].flatMap((one) => one ?? []).join(' ')} spent`]),
  ].join(' and ');

/** Selects the media buy whose totals `reconciler.compare` compares with the seller's. */
export interface CompareQuery {
  /** The agent URL of the seller. */
  readonly agentUrl: string;
  readonly mediaBuyId: string;
}

/**
 * Compares the totals of a media buy now. If the option `ours` returns nothing, the result has empty `ours`.
 * @throws CompareError if the media buy is unknown, `ours` fails, or the seller cannot be asked or has no totals.
 */
export async function compareNow(
  context: ReconcilerContext,
  hashes: Hashes,
  { agentUrl: sender, mediaBuyId }: CompareQuery,
): Promise<ComparedTotals> {
  const id = storedId(mediaBuyId, hashes);
  const stopping = new AbortController().signal;
  const { stream, place, now } = await placed(context, { sender, id }, stopping);
  const own = await askOwner(context, sender, stream, stopping);
  let asked = own;
  if (own.error === undefined) {
    asked = { ...own, ...(await askForTotals(context, sender, stream, now, stopping)) };
    const whole = { ...stream, hasRanges: false };
    if (asked.hasNoRanges) asked = { ...own, ...(await askForTotals(context, sender, whole, now, stopping)) };
  }
  const result = await context.rows.run(sender, (rows, at) => {
    freePlace(rows, at, place, asked.failure && pauseOf(asked.failure));
    const is = asked.error === undefined ? compared(context, asked, at) : undefined;
    const row = rows.get('stream', id);
    const known = row && buyStreamIn(row);
    // The result is stored only for a closed media buy, because the totals of an open one are compared again before it
    // is closed.
    if (is && row && known?.closedAt !== undefined)
      rows.save({ ...row, value: streamText({ ...known, totals: { compared: is } } as BuyStream) });
    return is;
  });
  if (!result) {
    const why = asked.error?.replace(/\.$/, '');
    throw new CompareError(`The totals cannot be compared: ${why}.`, { cause: asked.cause });
  }
  tell(context, sender, stream, result);
  return result;
}

/**
 * Takes a call slot of the seller, because the slots limit concurrent calls. It waits for a free slot at most for the
 * time limit of one request (`callMs`).
 * @throws CompareError if the media buy is unknown, or no slot becomes free in time.
 */
async function placed(
  context: ReconcilerContext,
  { sender, id }: Pick<Held, 'sender' | 'id'>,
  stopping: AbortSignal,
): Promise<{ readonly stream: BuyStream; readonly place: Place; readonly now: number }> {
  const { callMs, leaseMs, perSeller, rows: store, sleep } = context;
  for (let left = callMs; ;) {
    const found = await store.run(sender, (rows, now) => {
      const row = rows.get('stream', id);
      const stream = row && buyStreamIn(row);
      if (!stream || !isRegistered(stream)) return undefined;
      const place = { sender, id: `compare/${id}`, until: Math.ceil(now + leaseMs) };
      return { stream, place, now, waitMs: takePlace(rows, now, place, perSeller) };
    });
    if (!found) {
      throw new CompareError(
        'The totals cannot be compared: the media buy is not known. It has to be bought by these registrations, or adopted.',
      );
    }
    const { waitMs } = found;
    if (waitMs === 0) return found;
    if (waitMs > left) {
      throw new CompareError(
        `The totals cannot be compared: the seller is not to be asked for ${Math.ceil(waitMs)} ms. Try again then.`,
      );
    }
    left -= Math.max(waitMs, 1);
    await sleep(Math.max(waitMs, 1), stopping);
  }
}
