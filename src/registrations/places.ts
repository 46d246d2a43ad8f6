// Gives out the places of a seller: the number of questions that it is asked at once, and the pauses it asks for
// (owed.md §4.4). Questions of reconciler and URL checks take places here; polls share them through the same row.
import type { RegistrationRows, StoreRegistrations } from '../stores/store.ts';
import { SellerBusyError } from './seller-error.ts';
import { FIRST_TOOK_MS, livePolls, pauseOf, saveSellerRow, sellerRowIn } from './watch-task.ts';

/** A place that is held for a question. */
export interface Place {
  readonly sender: string;
  readonly id: string;
  /** The end of its lease, Unix ms on the store's clock. */
  readonly until: number;
}

/** Takes a place if one is free. @returns 0, or the time to wait for one. Ms. */
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

/** Frees a place. @param pauseMs the pause that the seller asked for. */
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
  // The first task in the line for a place becomes due at once, for any process.
  const first = seller.line?.first === undefined ? undefined : rows.get('watch', seller.line.first);
  if (first && first.dueAt !== null) rows.save({ ...first, dueAt: Math.ceil(now) });
}

/** The settings by which a seller is asked: its places, and the times of a question. */
export interface PlacesContext {
  readonly rows: StoreRegistrations;
  /** The time limit of a question, and of the wait for a place. Ms. */
  readonly callMs: number;
  /** The lease of a place, which is longer than a question takes. Ms. */
  readonly leaseMs: number;
  /** The number of questions that one seller is asked at once. */
  readonly perSeller: number;
  /** Resolves early if the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

/**
 * Waits for a place at the seller, for a question whose answer somebody awaits.
 * @param who the name of the question; each has a place of its own.
 * @throws SellerBusyError if none is free for longer than a question may take.
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
