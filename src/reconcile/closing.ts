// Decides if a media buy's stream (the record of its reports) can be closed, and which members a closed stream keeps
// (owed.md §7). The functions are pure. reconciler.ts calls them at each check of a media buy.
import type { BuyStream } from '../registrations/streams.ts';
import { isTerminalBuy } from '../windows/ends.ts';
import { finalDueAt, hasEnded, isReporting, type Owing, type Tolerance } from './evaluate.ts';

/**
 * The reason why the stream of a media buy (its record) is not closed yet (owed.md §7.2).
 *
 * - `media-buy`: the media buy is running, or its seller must be asked about its state.
 * - `window`: a report is missing, or will be due.
 * - `event`: an event with a report is not handled yet, or is DEAD (its handler has failed for good).
 * - `state`: handlers were not yet informed of the end of an impairment.
 * - `final`: the `final` report may still come.
 * - `totals`: the totals are not compared yet.
 */
export type OpenFor = 'media-buy' | 'window' | 'event' | 'state' | 'final' | 'totals';

/** The time of a check, and other facts that decide if a media buy's stream (its record) can be closed. */
export interface Look {
  /** The current time on the store's clock, Unix ms. */
  readonly now: number;
  /** True if the option `ours` was given, so the media buy stays open until totals are compared. */
  readonly hasOurs: boolean;
  /** True if the seller must be asked about the media buy now. */
  readonly isAsked: boolean;
}

/** Returns the first reason why a stream (a media buy's record) stays open; undefined if the stream can be closed. */
export function openFor(stream: BuyStream, owed: Owing, look: Look): OpenFor | undefined {
  if (look.isAsked || !hasEnded(stream, look.now)) return 'media-buy';
  if (owed.isMoreDue || owed.windows.some(({ missing }) => missing.length > 0)) return 'window';
  if (isWaiting(owed) || owed.held.length > 0) return 'event';
  if (isReporting(stream) && stream.final === undefined) return 'final';
  if (look.hasOurs && !isCompared(stream)) return 'totals';
  return isImpaired(stream) ? 'state' : undefined;
}

const isWaiting = ({ isPending, claimedUntil }: Owing): boolean => isPending || claimedUntil < Infinity;

/** True if the totals were compared, or if the comparison was given up after failures. */
const isCompared = ({ totals }: BuyStream): boolean => totals !== undefined && totals.nextAt === undefined;

/**
 * True if a terminal media buy still has an impairment that is stored as open. Nothing impairs a terminal media buy, so
 * handlers must still be informed that the impairment has ended.
 */
const isImpaired = ({ status, states = [] }: BuyStream): boolean =>
  isTerminalBuy(status) && states.some((one) => !one.isEnded);

/**
 * Updates a media buy's stream (its record) at a check. While the media buy has not ended, or if it goes on again, the
 * closing time and the totals are removed. If the `final` report did not come in time, `final` becomes `absent`
 * (owed.md §7.3).
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
 * Returns the members of a stream (a media buy's record) that are kept when it is closed. Lists that could grow are
 * left out or emptied. `closedAt` stays the time of the first closing.
 */
export function closed(stream: BuyStream, now: number): BuyStream & { readonly closedAt: number } {
  const { later: _later, late: _late, states: _states, closedAt = now, ...kept } = stream;
  return { ...kept, claims: [], unplaced: [], missed: [], closedAt };
}
