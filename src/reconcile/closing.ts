import type { BuyStream } from '../registrations/streams.ts';
import { isTerminalBuy } from '../windows/ends.ts';
import { finalDueAt, hasEnded, isReporting, type Owing, type Tolerance } from './evaluate.ts';

/*
 * When a stream is closed, and what is kept of it (owed.md §7). Pure.
 */

/**
 * The reason for which a stream is open (owed.md §7.2).
 *
 * - `media-buy`: it goes on, or its seller is asked what it has become.
 * - `window`: a report is missing, or will be due.
 * - `event`: a report is about to be handled, or DEAD.
 * - `state`: an impairment is not told as ended.
 * - `final`: the `final` report may still come.
 * - `totals`: they are not compared yet.
 */
export type OpenFor = 'media-buy' | 'window' | 'event' | 'state' | 'final' | 'totals';

/** The instant at which a stream is looked at, and what the reconciler has. */
export interface Look {
  /** On the store's clock, Unix ms. */
  readonly now: number;
  /** The owner has a function for the totals. */
  readonly hasOurs: boolean;
  /** The seller is to be asked what the media buy is. */
  readonly isAsked: boolean;
}

/** @returns undefined for a stream that is closed. */
export function openFor(stream: BuyStream, owed: Owing, look: Look): OpenFor | undefined {
  if (look.isAsked || !hasEnded(stream, look.now)) return 'media-buy';
  if (owed.isMoreDue || owed.windows.some(({ missing }) => missing.length > 0)) return 'window';
  if (isWaiting(owed) || owed.held.length > 0) return 'event';
  if (isReporting(stream) && stream.final === undefined) return 'final';
  if (look.hasOurs && !isCompared(stream)) return 'totals';
  return isImpaired(stream) ? 'state' : undefined;
}

const isWaiting = ({ isPending, claimedUntil }: Owing): boolean => isPending || claimedUntil < Infinity;

/** The totals are compared, or given up. */
const isCompared = ({ totals }: BuyStream): boolean => totals !== undefined && totals.nextAt === undefined;

/** An impairment has to be told as ended: nothing is impaired at a media buy that is terminal. */
const isImpaired = ({ status, states = [] }: BuyStream): boolean =>
  isTerminalBuy(status) && states.some((one) => !one.isEnded);

/**
 * The stream as it is found at a look: of one that goes on, after it was closed, nothing is over; and a `final` report that is not there
 * by its time is absent (owed.md §7.3).
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

/** What is kept of a stream when it is closed: nothing that grows. It stays closed since it was closed first. */
export function closed(stream: BuyStream, now: number): BuyStream & { readonly closedAt: number } {
  const { later: _later, late: _late, states: _states, closedAt = now, ...kept } = stream;
  return { ...kept, claims: [], unplaced: [], missed: [], closedAt };
}
