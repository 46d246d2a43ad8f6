// Answers a proof of control: a signed request by which a seller checks that a URL is yours. Registrations decide about
// their subscriptions, the owner's `onChallenge` about all others (verification.md §7.9).
// Loaded on demand by `src/receiver/verify.ts`, in place of `admit`.

import type { SafeLogger } from '../shared/logging.ts';
import { comparedWith, hmacSecretsOf } from '../auth/credentials.ts';
import { quoted } from '../codec/printable.ts';
import { utf8 } from '../codec/encoding.ts';
import type { Hashes } from '../crypto/engine.ts';
import { Fault } from '../shared/errors.ts';
import { type ChallengeBody, readChallenge, type WebhookChallenge } from '../events/challenge.ts';
import type { EventRegistrations } from '../events/event-registration.ts';
import type { OnChallenge } from '../events/handlers.ts';
import { settledWithin } from '../shared/time-limits.ts';
import {
  type ChallengeEcho,
  type Refusal,
  refused,
  unavailable,
  type Unavailability,
} from '../shared/outcome.ts';
import type { AuthPolicy } from '../config/sender-entry.ts';
import { burn, type BurnContext } from './burn.ts';
import type { ReadChallenge } from './read.ts';

export interface ChallengeParts extends BurnContext {
  readonly onChallenge: OnChallenge | undefined;
  readonly registrations: Pick<EventRegistrations, 'answersChallenge'> | undefined;
}

/** The logger and the background work of one delivery. */
export interface ChallengeDelivery {
  readonly log: SafeLogger;
  /** Makes the receiver's `stop()` wait for this work: a decision that comes after the answer was sent. */
  readonly background: (work: Promise<unknown>) => void;
}

/** Time limit of a decision, because the seller waits for the answer. Ms. */
const DEADLINE_MS = 5_000;

/** The reason for a refusal and, if an option of the receiver may be wrong, the option's name. */
interface No {
  readonly reason: string;
  readonly option?: 'registrations' | 'onChallenge';
}

/**
 * True if the challenge names the authentication that is configured for the sender. A legacy scheme without a
 * fingerprint does not match, because the challenge then does not show which credential the seller has.
 */
function authMatches(
  { delivery_auth: deliveryAuth }: ChallengeBody,
  auth: AuthPolicy,
  hashes: Hashes,
): boolean {
  if (auth.scheme === 'signature' && deliveryAuth?.mode === 'rfc9421') return true;
  const [mode, credentials] =
    auth.scheme === 'bearer' ? ['Bearer', auth.tokens] : ['HMAC-SHA256', hmacSecretsOf(auth)];
  const fingerprint = deliveryAuth?.credential_fingerprint?.toLowerCase();
  if (deliveryAuth?.mode !== mode || fingerprint === undefined) return false;
  const accepted = credentials.map((credential) => hashes.sha256Hex(utf8(credential)));
  return comparedWith(fingerprint, hashes)(accepted);
}

interface Question {
  /** Frozen, because the owner's `onChallenge` receives it, and the answer is made from it afterwards. */
  readonly challenge: WebhookChallenge;
  /** The agent URL of the verified sender. */
  readonly sender: string;
}

/**
 * Returns the challenge that registrations or the owner must decide, or the reason to refuse it without asking them.
 */
function questionOf({ identity, reading }: ReadChallenge, hashes: Hashes): Question | No {
  const { agentUrl: sender, auth } = identity.sender;
  if (identity.scheme !== 'signature')
    return { reason: 'it is not signed (RFC 9421), as a proof of control always is' };
  const body = readChallenge(reading.payload);
  if (typeof body === 'string') return { reason: body };
  const { seller_agent_url: claimedSeller } = body;
  if (claimedSeller !== sender)
    return { reason: `its seller_agent_url is ${quoted(claimedSeller)}, and ${sender} signed it` };
  return { sender, challenge: Object.freeze({ ...body, authMatches: authMatches(body, auth, hashes) }) };
}

/** A challenge that is being decided, with the signal that aborts at the time limit, and the logger of the delivery. */
interface Asking extends Question {
  readonly signal: AbortSignal;
  readonly log: SafeLogger;
  /** Called before `onChallenge`, so that a missed time limit is blamed on `onChallenge` and not on registrations. */
  readonly ownerAsked: () => void;
}

/**
 * Returns the accepted challenge, a refusal, or the failure of `onChallenge`. Rejects if the store of registrations
 * cannot answer.
 */
async function answerOf(
  { challenge, sender, signal, log, ownerAsked }: Asking,
  { registrations, onChallenge }: ChallengeParts,
): Promise<ChallengeEcho | No | Unavailability> {
  const known = await registrations?.answersChallenge?.(challenge, sender);
  if (known === true) return { kind: 'challenge', challenge };
  if (known !== undefined) return { reason: known, option: 'registrations' };
  if (!onChallenge) return { reason: missing(challenge, registrations), option: 'onChallenge' };
  signal.throwIfAborted();
  ownerAsked();
  try {
    const accepted: unknown = await onChallenge(challenge, { sender, signal, log });
    if (accepted === true) return { kind: 'challenge', challenge };
    const reason =
      accepted === false
        ? `onChallenge said no (authMatches: ${challenge.authMatches})`
        : `onChallenge returned ${typeof accepted}: it has to return true or false`;
    return { reason, option: 'onChallenge' };
  } catch (error) {
    log.error({ err: error }, signal.aborted ? 'a late onChallenge failed' : 'onChallenge failed');
    return unavailable('handler_failed', 'onChallenge failed');
  }
}

/** Returns the reason for a refusal if neither registrations nor the owner can decide. */
function missing(
  { subscriber_id: subscriberId }: WebhookChallenge,
  registrations: ChallengeParts['registrations'],
): string {
  if (!registrations?.answersChallenge) return 'onChallenge is missing: give one';
  return `registrations have no subscription of subscriber_id ${quoted(subscriberId ?? '')}, and onChallenge is missing: make subscriptions by registrations.subscribe, or give onChallenge for those that you make yourself`;
}

/**
 * Waits for the decision until the time limit, because the seller waits. After the limit it returns an unavailability
 * (503), and ignores a late decision.
 */
async function asked(
  question: Question,
  parts: ChallengeParts,
  { log, background }: ChallengeDelivery,
): Promise<ChallengeEcho | No | Unavailability> {
  const abort = new AbortController();
  let isOwners = false;
  const ownerAsked = (): void => void (isOwners = true);
  const answering = answerOf({ ...question, signal: abort.signal, log, ownerAsked }, parts);
  const answer = await settledWithin(answering, DEADLINE_MS);
  if (answer) return answer;
  const late = isOwners
    ? unavailable('handler_timeout', `onChallenge ran over ${DEADLINE_MS} ms`)
    : unavailable('store_unavailable', `registrations have not answered in ${DEADLINE_MS} ms`);
  abort.abort(new Fault(late.code, late.detail));
  background(
    answering.catch((error: unknown) => log.error({ err: error }, 'a late answer of registrations failed')),
  );
  return late;
}

/**
 * Answers a proof of control (verification.md §7.9). After a decision, yes or no, the delivery's nonce is stored as
 * used. Without a decision the nonce stays unused, so that the seller may send the same bytes again.
 * @throws Fault (rejects) if a store cannot answer.
 */
export async function answerChallenge(
  body: ReadChallenge,
  parts: ChallengeParts,
  delivery: ChallengeDelivery,
): Promise<ChallengeEcho | Refusal | Unavailability> {
  const question = questionOf(body, parts.hashes);
  const answer = 'reason' in question ? question : await asked(question, parts, delivery);
  if (!('reason' in answer)) return answer.kind === 'unavailable' ? answer : burn(body, answer, parts);
  const refusal = refused('challenge_refused', answer.reason);
  const verdict = await burn(body, refusal, parts);
  if (verdict === refusal) {
    parts.raiseAlarm({
      code: 'challenge_refused',
      ...(answer.option && { option: answer.option }),
      sender: body.identity.sender.agentUrl,
      message: `A proof of control was answered 403, so the seller does not activate its subscription: ${answer.reason}.`,
    });
  }
  return verdict;
}
