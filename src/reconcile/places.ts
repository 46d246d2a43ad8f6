import type { RegistrationRows } from '../stores/store.ts';
import {
  FIRST_TOOK_MS,
  livePolls,
  pauseOf,
  saveSellerRow,
  sellerRowIn,
} from '../registrations/watch-task.ts';

/*
 * The places of a seller, of which polls have theirs too: how many questions it is asked at once, and when it asked for a pause
 * (owed.md §4.4).
 */

/** A place that is held. */
export interface Place {
  readonly sender: string;
  readonly id: string;
  /** Unix ms, on the store's clock. */
  readonly until: number;
}

/** @returns how long to wait, where there is none. Ms. */
export function takePlace(
  rows: RegistrationRows,
  now: number,
  { sender, id, until }: Place,
  perSeller: number,
): number {
  const seller = sellerRowIn(rows);
  const { tookMs = FIRST_TOOK_MS } = seller;
  const pausedUntil = pauseOf(seller, now);
  const polls = livePolls(seller, now);
  if (pausedUntil > now) return pausedUntil - now;
  if (polls.length >= perSeller) return tookMs;
  saveSellerRow(rows, sender, { ...seller, polls: [...polls, [id, until]] });
  return 0;
}

/** @param pauseMs the seller asked to be left alone for so long. */
export function freePlace(
  rows: RegistrationRows,
  now: number,
  { sender, id, until }: Place,
  pauseMs: number | undefined,
): void {
  const seller = sellerRowIn(rows);
  const polls = livePolls(seller, now).filter(([own, ends]) => own !== id || ends !== until);
  const pausedUntil =
    pauseMs === undefined ? undefined : Math.max(seller.pausedUntil ?? 0, Math.ceil(now + pauseMs));
  saveSellerRow(rows, sender, { ...seller, polls, ...(pausedUntil !== undefined && { pausedUntil }) });
  // The task that waits first for a place is looked at at once, by any process.
  const first = seller.line?.first === undefined ? undefined : rows.get('watch', seller.line.first);
  if (first && first.dueAt !== null) rows.save({ ...first, dueAt: Math.ceil(now) });
}
