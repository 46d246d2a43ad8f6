import type { RegistrationRows, StoreRegistrations } from '../stores/store.ts';
import { SellerBusyError } from './seller-error.ts';
import { FIRST_TOOK_MS, livePolls, pauseOf, saveSellerRow, sellerRowIn } from './watch-task.ts';

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

/** The settings by which a seller is asked: its places, and the times of a question. */
export interface PlacesContext {
  readonly rows: StoreRegistrations;
  /** The time that a question may take, and that is waited for a place. Ms. */
  readonly callMs: number;
  /** A place is held for so long: longer than a question takes. Ms. */
  readonly leaseMs: number;
  /** Questions that a seller is asked at once. */
  readonly perSeller: number;
  /** Resolves early where the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

/**
 * A place at the seller, for a question that somebody waits for.
 * @param who of which question it is; each has a place of its own.
 * @throws SellerBusyError where there is none for longer than a question takes.
 */
export async function placeFor(
  { rows: store, callMs, leaseMs, perSeller, sleep }: PlacesContext,
  { sender, who }: { readonly sender: string; readonly who: string },
  signal: AbortSignal,
): Promise<Place> {
  const id = `${who} ${globalThis.crypto.randomUUID()}`;
  for (let leftMs = callMs; ;) {
    signal.throwIfAborted();
    const { place, waitMs } = await store.run(sender, (rows, now) => {
      const own: Place = { sender, id, until: Math.ceil(now + leaseMs) };
      return { place: own, waitMs: takePlace(rows, now, own, perSeller) };
    });
    if (waitMs === 0) return place;
    if (waitMs > leftMs) throw new SellerBusyError(429, waitMs);
    leftMs -= waitMs;
    await sleep(waitMs, signal);
  }
}
