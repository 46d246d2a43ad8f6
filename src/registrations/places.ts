// Gives out the call slots of a seller, which limit the concurrent requests to the seller. This file also keeps the
// pauses that the seller asks for (owed.md §4.4). The reconciler and URL checks take slots here. The poller takes slots
// in the same row by its own code.
import type { RegistrationRows, StoreRegistrations } from '../stores/store.ts';
import { SellerBusyError } from './seller-error.ts';
import { FIRST_TOOK_MS, livePolls, pauseOf, saveSellerRow, sellerRowIn } from './watch-task.ts';

/** One of a seller's call slots, reserved for one request. */
export interface Place {
  readonly sender: string;
  readonly id: string;
  /** The time at which the reservation expires, Unix ms on the store's clock. */
  readonly until: number;
}

/**
 * Takes a call slot, if one is free and the seller has asked for no pause.
 * @returns 0 if a slot was taken; otherwise the time to wait before the next try. Ms.
 */
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

/** Frees a call slot. @param pauseMs the pause that the seller asked for; it holds for all requests to the seller. */
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
  // A slot is free now, so the first task in the seller's queue becomes due immediately, for any process.
  const first = seller.line?.first === undefined ? undefined : rows.get('watch', seller.line.first);
  if (first && first.dueAt !== null) rows.save({ ...first, dueAt: Math.ceil(now) });
}

/** The store and the limits for requests to sellers. */
export interface PlacesContext {
  readonly rows: StoreRegistrations;
  /** The time limit of a request, and of the wait for a slot. Ms. */
  readonly callMs: number;
  /** The time after which a slot becomes free if its process has died. It is longer than a request takes. Ms. */
  readonly leaseMs: number;
  /** The largest number of concurrent requests to one seller. */
  readonly perSeller: number;
  /** Waits for `ms`, or less if the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

/**
 * Waits for a call slot of the seller, for a request whose answer a caller awaits.
 * @param who the kind of request, e.g. `check`, with which the id of the slot begins.
 * @throws SellerBusyError if no slot becomes free within the time that a request may take.
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
