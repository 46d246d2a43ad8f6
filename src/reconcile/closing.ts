// Decides if a stream can be closed, and which part of it is kept then (owed.md §7). It is pure. The loop of streams
// calls it at each check.
import type { BuyStream } from '../registrations/streams.ts';
import { isTerminalBuy } from '../windows/ends.ts';
import { finalDueAt, hasEnded, isReporting, type Owing, type Tolerance } from './evaluate.ts';

/**
 * The reason why a stream stays open (owed.md §7.2).
 *
 * - `media-buy`: the media buy is running, or its seller must be asked about its state.
 * - `window`: a report is missing, or will be due.
 * - `event`: an event with a report is about to be handled, or is DEAD.
 * - `state`: handlers were not yet informed of the end of an impairment.
 * - `final`: the `final` report may still come.
 * - `totals`: the totals are not compared yet.
 */
export type OpenFor = 'media-buy' | 'window' | 'event' | 'state' | 'final' | 'totals';

/** The time of a check, and facts about the reconciler. */
export interface Look {
  /** The current time on the store's clock, Unix ms. */
  readonly now: number;
  /** True if the owner has a function for the totals. */
  readonly hasOurs: boolean;
  /** True if the seller must be asked about the media buy now. */
  readonly isAsked: boolean;
}

/** Returns the reason why a stream stays open. @returns undefined for a stream that can be closed. */
export function openFor(stream: BuyStream, owed: Owing, look: Look): OpenFor | undefined {
  if (look.isAsked || !hasEnded(stream, look.now)) return 'media-buy';
  if (owed.isMoreDue || owed.windows.some(({ missing }) => missing.length > 0)) return 'window';
  if (isWaiting(owed) || owed.held.length > 0) return 'event';
  if (isReporting(stream) && stream.final === undefined) return 'final';
  if (look.hasOurs && !isCompared(stream)) return 'totals';
  return isImpaired(stream) ? 'state' : undefined;
}

const isWaiting = ({ isPending, claimedUntil }: Owing): boolean => isPending || claimedUntil < Infinity;

/** True if the totals were compared, or the comparison was given up. */
const isCompared = ({ totals }: BuyStream): boolean => totals !== undefined && totals.nextAt === undefined;

/** True if handlers must still be informed of the end of an impairment: a terminal media buy has none. */
const isImpaired = ({ status, states = [] }: BuyStream): boolean =>
  isTerminalBuy(status) && states.some((one) => !one.isEnded);

/**
 * Returns the stream at a check. If its media buy goes on after the stream was closed, the end and the totals are
 * removed. If the `final` report did not come in time, it is marked as absent (owed.md §7.3).
 */
export function withEnd(
  stream: BuyStream,
  { now, tolerance }: { readonly now: number; readonly tolerance: Tolerance },
): BuyStream {
  if (!hasEnded(stream, now)) {
    const { closedAt: _closed, totals: _compared, final, ...is } = stream;
    return final === 'received' ? { ...is, final } : is;
  }
  const isAbsent = isReporting(stream) && stream.final === undefined && finalDueAt(stream, tolerance) <= now;
  return isAbsent ? { ...stream, final: 'absent' } : stream;
}

/**
 * Returns the part of a stream that is kept when it is closed, without lists that could grow. `closedAt` stays the time
 * of the first closing.
 */
export function closed(stream: BuyStream, now: number): BuyStream & { readonly closedAt: number } {
  const { later: _later, late: _late, states: _states, closedAt = now, ...kept } = stream;
  return { ...kept, claims: [], unplaced: [], missed: [], closedAt };
}
