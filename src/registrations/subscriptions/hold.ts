// Reserves the row of a set for one process, so that only one at a time changes it (subscriptions.md §1.4). A
// reservation lasts longer than a call takes. `subscribe`, `unsubscribe` and the checks of sets use it.
import type { Hashes } from '../../crypto/engine.ts';
import type { RegistrationRows, StoreRegistrations } from '../../stores/store.ts';
import { isSameUrl } from '../../windows/told.ts';
import { givenAt, saveGiven } from '../told/url-row.ts';
import { setAt, setRow, type SubscriptionSet, urlsOf } from './set-row.ts';

export interface HoldContext {
  readonly registrations: StoreRegistrations;
  readonly hashes: Pick<Hashes, 'sha256Hex'>;
  /** The time for which a set is reserved: longer than a call takes. Ms. */
  readonly holdMs: number;
}

/** A set that is reserved for this process. */
export interface Held {
  readonly agentUrl: string;
  readonly name: string;
  readonly by: string;
}

export type Taken = { readonly set: SubscriptionSet } | { readonly waitMs: number } | undefined;

/**
 * Returns the time for which another process still has the set reserved. It is at most the length of one reservation,
 * in case a clock was ahead. Ms.
 */
function leftMs({ hold }: SubscriptionSet, by: string, now: number): number {
  if (!hold || hold.by === by) return 0;
  const left = hold.until - now;
  return left <= hold.ms ? Math.max(0, left) : 0;
}

/**
 * Reserves the set, and changes it to what is wanted, in one atomic change.
 * @param want returns the wanted set; undefined: nothing has to be done.
 * @returns the set, or the time for which another process may have it reserved; undefined if nothing has to be done.
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
 * The result of a change of a reserved set. With `released`, the reservation ends, and the next check of the set is
 * after `waitMs`, ms.
 */
export interface Step {
  readonly set: SubscriptionSet;
  readonly released?: { readonly waitMs: number | undefined };
}

/**
 * Changes a set that is reserved for this process, and prolongs or ends the reservation.
 * @returns the result of `change`; undefined if another process has taken the set, or it was deleted.
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

/** Notes the time at the URLs that the set's subscriptions no longer use (told.md §3.4). */
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

/** Prolongs the reservation of a set. @returns the set. */
export const heldOn = (context: HoldContext, held: Held): Promise<Step | undefined> =>
  whileHeld(context, held, (set) => ({ set }));
