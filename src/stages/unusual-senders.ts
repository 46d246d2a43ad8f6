import type { RaiseAlarm } from '../alarms.ts';
import type { Target } from '../auth/contract.ts';
import { MAX_URL_BYTES, printableName } from '../codec/printable.ts';
import { MAX_SENDERS } from '../config/senders.ts';
import type { Head } from '../delivery.ts';
import { Fault, textOf } from '../errors.ts';
import { type Refusal, type RefusedCode, type Unavailability, unavailable } from '../outcome.ts';
import type { SenderEntry } from '../senders.ts';
import type { Selected } from './select.ts';

const nameOf = ({ targetUri }: Target): string => printableName(targetUri, MAX_URL_BYTES);

/** @throws Fault (rejects) `misconfigured`, always. */
export async function sendersFailed(error: unknown, target: Target, raiseAlarm: RaiseAlarm): Promise<never> {
  const message = `the senders function failed for ${nameOf(target)}: ${textOf(error)}`;
  raiseAlarm({ code: 'senders_failed', message });
  throw new Fault('misconfigured', message, { cause: error });
}

/** No sender at a URL, or more than are considered. */
export function unusualSenders(
  delivery: Head,
  target: Target,
  senders: readonly SenderEntry[],
  { raiseAlarm }: { readonly raiseAlarm: RaiseAlarm },
): Selected | Refusal {
  const [first, ...others] = senders.slice(0, MAX_SENDERS);
  if (!first) {
    return {
      kind: 'refused',
      code: 'webhook_signature_key_unknown',
      check: 7,
      detail: `no sender is registered for ${nameOf(target)}`,
    };
  }
  raiseAlarm({ code: 'misconfigured', message: TOO_MANY, url: nameOf(target) });
  return { kind: 'selected', delivery, target, senders: [first, ...others], refused: ofAnother };
}

const TOO_MANY = `the senders function gave more than ${MAX_SENDERS} for one URL: the first ${MAX_SENDERS} are considered, and what none of them explains gets 503. Give each seller a path of its own (publicUrl: '…/*') and return the one whose path it is.`;

/** Refusals that say of the senders that were considered that it is none of theirs. */
const UNEXPLAINED: ReadonlySet<RefusedCode> = new Set([
  'webhook_signature_key_unknown',
  'webhook_signature_key_purpose_invalid',
  'webhook_signature_key_revoked',
  'webhook_target_uri_malformed',
  'webhook_signature_invalid',
]);

/** What the first of them do not explain may be another's: our owner's fault, and not the seller's (verification.md §5.9). */
function ofAnother(refusal: Refusal): Refusal | Unavailability {
  if (!UNEXPLAINED.has(refusal.code)) return refusal;
  return unavailable('misconfigured', `${TOO_MANY} Here: ${refusal.detail}`);
}
