// The types and functions that every way of selecting a delivery's URL and senders shares (admission.md §2.10).
// Called by `select`, `several-bases.ts`, `stray.ts` and `url-trial.ts`.

import { orLate } from '../shared/time-limits.ts';
import type { RaiseAlarm } from '../shared/alarms.ts';
import type { Target } from '../auth/auth-contract.ts';
import { canonicalOrUndefined, pathAndQuery, type PublicUrl } from '../config/public-url.ts';
import type { Config } from '../config/resolve-options.ts';
import { MAX_SENDERS } from '../config/sender-source.ts';
import type { Head } from '../shared/delivery.ts';
import { Fault, isOfKind, textOf } from '../shared/errors.ts';
import type { RefusedCode } from '../shared/codes.ts';
import { type Refusal, refused, type Unavailability, unavailable } from '../shared/outcome.ts';
import type { KeyResolver } from '../keys/key-resolver.ts';
import type { Protocols } from '../shared/wire-names.ts';
import type { SenderEntry } from '../config/sender-entry.ts';
import { isThenable } from '../shared/realms.ts';
import { MAX_URL_BYTES, printableName } from '../codec/printable.ts';

/**
 * A delivery with its URL, possible senders and scheme. These come from configuration, never from headers or body.
 */
export interface Selected {
  readonly kind: 'selected';
  readonly delivery: Head;
  /** The base URL (an entry of `publicUrl`) for which the delivery is judged first. */
  readonly base: PublicUrl;
  readonly target: Target;
  /** The senders that may call the URL. Never empty; all have the same scheme. */
  readonly senders: readonly [SenderEntry, ...SenderEntry[]];
  /** Returns the selections for other base URLs, if several are possible. Rejects as `select` does. */
  readonly others?: () => Promise<readonly Selected[]>;
  /**
   * Converts a refusal to a fault (503) if the delivery may be from a sender whose keys were not tried. This happens if
   * a URL has too many senders, or a proxy may have changed the path.
   */
  readonly refused?: (refusal: Refusal) => Refusal | Unavailability;
}

export interface SelectContext {
  readonly config: Pick<Config, 'bases' | 'senders'>;
  readonly protocols: Protocols;
  readonly keys: KeyResolver;
  readonly raiseAlarm: RaiseAlarm;
  /** Returns the time of the receiver's clock, Unix ms. */
  readonly now: () => number;
}

/** Returns the request's URL under a base URL. Undefined if it has no canonical form. */
export const targetAt = (base: PublicUrl, url: string | undefined): Target | undefined =>
  base.kind === 'exact' ? base.target : canonicalOrUndefined(base.origin + pathAndQuery(url ?? '/'));

/** Returns the same URL as `targetAt`, but undefined if its path does not belong to the base URL. */
export function urlAt(base: PublicUrl, url: string | undefined): Target | undefined {
  const target = targetAt(base, url);
  return target && (base.kind === 'exact' || target.targetUri.startsWith(base.prefix)) ? target : undefined;
}

export const NO_FORM: Refusal = refused(
  'webhook_target_uri_malformed',
  'the request target has no canonical form',
  10,
);

/** A URL for which a delivery may be meant, and its base URL. */
export type UrlOfBase = Pick<Selected, 'base' | 'target'>;

/** Selects the senders that may call the URL. Returns a refusal if there are none. */
export function selectAt(
  delivery: Head,
  at: UrlOfBase,
  context: SelectContext,
): Selected | Refusal | Promise<Selected | Refusal> {
  const { target } = at;
  const found = context.config.senders.forUrl(target.targetUri);
  // A fixed list is available without waiting; only the promise of a function needs a time limit.
  return isThenable(found)
    ? inTime(found).then(
        (senders) => selectedOf(delivery, at, senders, context),
        (error: unknown) => sendersFailed(error, target, context),
      )
    : selectedOf(delivery, at, found, context);
}

function isWithinLimit(senders: readonly SenderEntry[]): senders is Selected['senders'] {
  return senders.length > 0 && senders.length <= MAX_SENDERS;
}

/**
 * Longest wait for the `senders` function. Ms. Without a limit, a look-up that never ends would block the delivery
 * and `stop()`.
 */
const SENDERS_DEADLINE_MS = 5_000;

export const inTime = <T>(work: Promise<T>): Promise<T> =>
  orLate(work, SENDERS_DEADLINE_MS, () => new Error(`no answer after ${SENDERS_DEADLINE_MS} ms`));

const nameOf = ({ targetUri }: Target): string => printableName(targetUri, MAX_URL_BYTES);

/**
 * Raises an alarm about an error of the owner's `senders` function, and throws the error as a Fault.
 * @throws Fault, always: `misconfigured`, or the fault of the store of registrations.
 */
function sendersFailed(error: unknown, target: Target, { raiseAlarm }: SelectContext): never {
  if (isOfKind(error, Fault) && error.code !== 'misconfigured') throw error;
  const message = `the senders function failed for ${nameOf(target)}: ${textOf(error)}`;
  raiseAlarm({ code: 'senders_failed', message });
  throw new Fault('misconfigured', message, { cause: error });
}

function selectedOf(
  delivery: Head,
  { base, target }: UrlOfBase,
  senders: readonly SenderEntry[],
  { raiseAlarm }: SelectContext,
): Selected | Refusal {
  if (isWithinLimit(senders)) return { kind: 'selected', delivery, base, target, senders };
  const [first, ...others] = senders.slice(0, MAX_SENDERS);
  if (!first) {
    return refused('webhook_signature_key_unknown', `no sender is registered for ${nameOf(target)}`, 7);
  }
  raiseAlarm({ code: 'misconfigured', message: TOO_MANY, url: nameOf(target) });
  return { kind: 'selected', delivery, base, target, senders: [first, ...others], refused: ofAnother };
}

const TOO_MANY = `the senders function returned more than ${MAX_SENDERS} senders for one URL: only the first ${MAX_SENDERS} are considered, and a delivery that none of them explains is answered 503. Give each seller its own path (publicUrl: '…/*').`;

/** Codes of refusals after which the delivery may still be from a sender whose keys were not tried. */
export const UNEXPLAINED: ReadonlySet<RefusedCode> = new Set([
  'webhook_signature_key_unknown',
  'webhook_signature_key_purpose_invalid',
  'webhook_signature_key_revoked',
  'webhook_target_uri_malformed',
  'webhook_signature_invalid',
]);

/**
 * Replaces a refusal by 503 if the URL has more senders than can be considered. The delivery may be from a sender that
 * was left out. That is the owner's mistake, not the seller's (verification.md §5.9).
 */
function ofAnother(refusal: Refusal): Refusal | Unavailability {
  if (!UNEXPLAINED.has(refusal.code)) return refusal;
  return unavailable('misconfigured', `${TOO_MANY} Here: ${refusal.detail}`);
}
