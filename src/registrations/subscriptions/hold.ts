// Reserves the row of a subscription set for one process, so that only one process at a time changes the set
// (subscriptions.md §1.4). A reservation lasts longer than a call to the seller. Used by `subscribe`, `unsubscribe` and
// the daily checks.
import type { Hashes } from '../../crypto/engine.ts';
import type { RegistrationRows, StoreRegistrations } from '../../stores/store.ts';
import { isSameUrl } from '../../windows/told.ts';
import { givenAt, saveGiven } from '../told/url-row.ts';
import { setAt, setRow, type SubscriptionSet, urlsOf } from './set-row.ts';

export interface HoldContext {
  readonly registrations: StoreRegistrations;
  readonly hashes: Pick<Hashes, 'sha256Hex'>;
  /** The length of a reservation of a subscription set: longer than a call to the seller takes. Ms. */
  readonly holdMs: number;
}

/** A subscription set that this process has reserved. `by` identifies the reservation. */
export interface Held {
  readonly agentUrl: string;
  readonly name: string;
  readonly by: string;
}

export type Taken = { readonly set: SubscriptionSet } | { readonly waitMs: number } | undefined;

/**
 * Returns the remaining time of another process's reservation; 0 if there is none. A reservation that would last longer
 * than its length `ms` is ignored, because a clock was ahead when it was written. Ms.
 */
function leftMs({ hold }: SubscriptionSet, by: string, now: number): number {
  if (!hold || hold.by === by) return 0;
  const left = hold.until - now;
  return left <= hold.ms ? Math.max(0, left) : 0;
}

/**
 * Reserves a subscription set for `by` and stores the wanted set, in one transaction.
 * @param want returns the set to store; undefined if nothing has to be done.
 * @returns the stored set; the wait if another process has the set reserved; undefined if nothing has to be done.
 */
export function take(
  { registrations, hashes, holdMs }: HoldContext,
  { agentUrl, name, by }: Held,
  want: (set: SubscriptionSet | undefined, now: number) => SubscriptionSet | undefined,
): Promise<Taken> {
  return registrations.run(agentUrl, (rows, now): Taken => {
    const known = setAt(rows, name);
    const waitMs = known ? leftMs(known, by, now) : 0;
    if (waitMs > 0) return { waitMs };
    const wanted = want(known, now);
    if (!wanted) return undefined;
    const until = Math.ceil(now + holdMs);
    const set = { ...wanted, hold: { by, until, ms: holdMs } };
    rows.save(setRow(name, set, until));
    if (known) noteLeft(rows, known, wanted, { now, hashes });
    return { set };
  });
}

/**
 * The result of a change of a reserved subscription set. If `released` is present, the reservation ends, and the set is
 * checked again after `waitMs` (undefined: never). Ms.
 */
export interface Step {
  readonly set: SubscriptionSet;
  readonly released?: { readonly waitMs: number | undefined };
}

/**
 * Changes a set that this process has reserved, in one transaction, and prolongs or ends the reservation.
 * @returns the result of `change`; undefined if another process has reserved the set by now, or the set was deleted.
 */
export function whileHeld<T extends Step>(
  { registrations, hashes, holdMs }: HoldContext,
  { agentUrl, name, by }: Held,
  change: (set: SubscriptionSet, now: number, rows: RegistrationRows) => T,
): Promise<T | undefined> {
  return registrations.run(agentUrl, (rows, now) => {
    const known = setAt(rows, name);
    if (known?.hold?.by !== by) return undefined;
    const done = change(known, now, rows);
    noteLeft(rows, known, done.set, { now, hashes });
    const { hold: _hold, ...set }: SubscriptionSet = done.set;
    const { released } = done;
    if (released) {
      rows.save(setRow(name, set, released.waitMs === undefined ? null : now + released.waitMs));
      return done;
    }
    const until = Math.ceil(now + holdMs);
    rows.save(setRow(name, { ...set, hold: { by, until, ms: holdMs } }, until));
    return done;
  });
}

/**
 * Stores the current time as `leftAt` in the row of each URL that the set's subscriptions no longer use (told.md §3.4).
 */
function noteLeft(
  rows: RegistrationRows,
  before: SubscriptionSet,
  after: SubscriptionSet,
  { now, hashes }: { readonly now: number } & Pick<HoldContext, 'hashes'>,
): void {
  const on = after.subscriptions.flatMap(urlsOf);
  for (const url of before.subscriptions.flatMap(urlsOf)) {
    const given = on.some((one) => isSameUrl(one, url)) ? undefined : givenAt(rows, url, hashes);
    if (given) saveGiven(rows, before.seller.agentUrl, { ...given, leftAt: now }, hashes);
  }
}

/** Prolongs the reservation of a set. @returns the set; undefined if another process has reserved it by now. */
export const heldOn = (context: HoldContext, held: Held): Promise<Step | undefined> =>
  whileHeld(context, held, (set) => ({ set }));
