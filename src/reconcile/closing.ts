// Decides if a stream is closed, and the part of it that is kept (owed.md §7). Pure. The loop of streams calls it at
// each look.
import type { BuyStream } from '../registrations/streams.ts';
import { isTerminalBuy } from '../windows/ends.ts';
import { finalDueAt, hasEnded, isReporting, type Owing, type Tolerance } from './evaluate.ts';

/**
 * The reason for which a stream is open (owed.md §7.2).
 *
 * - `media-buy`: it runs, or its seller is asked about its state.
 * - `window`: a report is missing, or will be due.
 * - `event`: a report is about to be handled, or DEAD.
 * - `state`: handlers were not told the end of an impairment.
 * - `final`: the `final` report may still come.
 * - `totals`: they are not compared yet.
 */
export type OpenFor = 'media-buy' | 'window' | 'event' | 'state' | 'final' | 'totals';

/** The time of a look, and the facts about the reconciler. */
export interface Look {
  /** On the store's clock, Unix ms. */
  readonly now: number;
  /** True if the owner has a function for the totals. */
  readonly hasOurs: boolean;
  /** True if the seller is to be asked about the media buy. */
  readonly isAsked: boolean;
}

/** The reason for which a stream is open. @returns undefined for a stream that can be closed. */
export function openFor(stream: BuyStream, owed: Owing, look: Look): OpenFor | undefined {
  if (look.isAsked || !hasEnded(stream, look.now)) return 'media-buy';
  if (owed.isMoreDue || owed.windows.some(({ missing }) => missing.length > 0)) return 'window';
  if (isWaiting(owed) || owed.held.length > 0) return 'event';
  if (isReporting(stream) && stream.final === undefined) return 'final';
  if (look.hasOurs && !isCompared(stream)) return 'totals';
  return isImpaired(stream) ? 'state' : undefined;
}

const isWaiting = ({ isPending, claimedUntil }: Owing): boolean => isPending || claimedUntil < Infinity;

/** True if the totals are compared, or given up. */
const isCompared = ({ totals }: BuyStream): boolean => totals !== undefined && totals.nextAt === undefined;

/** True if the end of an impairment is still to be told: nothing impairs a terminal media buy. */
const isImpaired = ({ status, states = [] }: BuyStream): boolean =>
  isTerminalBuy(status) && states.some((one) => !one.isEnded);

/**
 * The stream at a look. If it goes on after it was closed, its end and totals are forgotten. A `final` report that has
 * not come in time is absent (owed.md §7.3).
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
 * The part of a stream that is kept when it is closed: no list that grows. `closedAt` stays the time of its first
 * closing.
 */
export function closed(stream: BuyStream, now: number): BuyStream & { readonly closedAt: number } {
  const { later: _later, late: _late, states: _states, closedAt = now, ...kept } = stream;
  return { ...kept, claims: [], unplaced: [], missed: [], closedAt };
}
