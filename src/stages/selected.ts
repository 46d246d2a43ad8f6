// The URL that a delivery is for, and who may call it: the parts that every way of selecting shares
// (admission.md §2.10).
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
 * A delivery whose URL, possible senders and scheme are known, from configuration and never from headers or
 * body.
 */
export interface Selected {
  readonly kind: 'selected';
  readonly delivery: Head;
  /** The base by which the delivery is judged first. */
  readonly base: PublicUrl;
  readonly target: Target;
  /** Not empty; all of one scheme. */
  readonly senders: readonly [SenderEntry, ...SenderEntry[]];
  /** The other selections that are possible, if there are several bases. Rejects as `select` does. */
  readonly others?: () => Promise<readonly Selected[]>;
  /** Converts a refusal if the delivery may be from a sender that was not considered. */
  readonly refused?: (refusal: Refusal) => Refusal | Unavailability;
}

export interface SelectContext {
  readonly config: Pick<Config, 'bases' | 'senders'>;
  readonly protocols: Protocols;
  readonly keys: KeyResolver;
  readonly raiseAlarm: RaiseAlarm;
  /** Unix ms. */
  readonly now: () => number;
}

/** The URL of a request under that base; undefined if its target has no canonical form. */
export const targetAt = (base: PublicUrl, url: string | undefined): Target | undefined =>
  base.kind === 'exact' ? base.target : canonicalOrUndefined(base.origin + pathAndQuery(url ?? '/'));

/** As `targetAt`, and undefined if the path is not under the base. */
export function urlAt(base: PublicUrl, url: string | undefined): Target | undefined {
  const target = targetAt(base, url);
  return target && (base.kind === 'exact' || target.targetUri.startsWith(base.prefix)) ? target : undefined;
}

export const NO_FORM: Refusal = refused(
  'webhook_target_uri_malformed',
  'the request target has no canonical form',
  10,
);

/** A URL that a delivery may be for. */
export type UrlOfBase = Pick<Selected, 'base' | 'target'>;

/** Selects who may call the URL; a refusal if nobody may. */
export function selectAt(
  delivery: Head,
  at: UrlOfBase,
  context: SelectContext,
): Selected | Refusal | Promise<Selected | Refusal> {
  const { target } = at;
  const found = context.config.senders.forUrl(target.targetUri);
  // A list is there at once; only a function's promise needs a timer.
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
 * Longest wait for the senders function. Without a limit, a look-up that hangs would hold the delivery and
 * `stop()`. Ms.
 */
const SENDERS_DEADLINE_MS = 5_000;

export const inTime = <T>(work: Promise<T>): Promise<T> =>
  orLate(work, SENDERS_DEADLINE_MS, () => new Error(`no answer after ${SENDERS_DEADLINE_MS} ms`));

const nameOf = ({ targetUri }: Target): string => printableName(targetUri, MAX_URL_BYTES);

/** @throws Fault, always: `misconfigured`, or the fault of the store of registrations. */
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

/** Refusals that mean: the delivery is from none of the senders that were considered. */
export const UNEXPLAINED: ReadonlySet<RefusedCode> = new Set([
  'webhook_signature_key_unknown',
  'webhook_signature_key_purpose_invalid',
  'webhook_signature_key_revoked',
  'webhook_target_uri_malformed',
  'webhook_signature_invalid',
]);

/**
 * Beyond the limit the delivery may be from a sender that was not considered: our owner's fault, not the
 * seller's (verification.md §5.9).
 */
function ofAnother(refusal: Refusal): Refusal | Unavailability {
  if (!UNEXPLAINED.has(refusal.code)) return refusal;
  return unavailable('misconfigured', `${TOO_MANY} Here: ${refusal.detail}`);
}
