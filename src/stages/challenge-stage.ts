import type { SafeLogger } from '../shared/logging.ts';
import { comparedWith, hmacSecretsOf } from '../auth/credentials.ts';
import { quoted } from '../codec/printable.ts';
import { utf8 } from '../codec/encoding.ts';
import type { Hashes } from '../crypto/engine.ts';
import { Fault } from '../shared/errors.ts';
import { type ChallengeBody, readChallenge, type WebhookChallenge } from '../events/challenge.ts';
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
}

/** What belongs to one delivery. */
export interface ChallengeDelivery {
  readonly log: SafeLogger;
  /** Keeps the receiver from stopping under a question that is answered too late. */
  readonly background: (work: Promise<unknown>) => void;
}

/** A seller waits for the answer. Ms. */
const DEADLINE_MS = 5_000;
const LATE = `onChallenge ran over ${DEADLINE_MS} ms`;

const refusedChallenge = (detail: string): Refusal => refused('challenge_refused', detail);

/** A fingerprint that is absent says nothing of a credential, so it does not match. */
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
  readonly ask: OnChallenge;
  readonly challenge: WebhookChallenge;
  /** Agent URL. */
  readonly sender: string;
}

/** What the owner is to be asked, or what keeps it from being asked. */
function questionOf(
  { identity, reading }: ReadChallenge,
  { onChallenge: ask, hashes }: ChallengeParts,
): Question | string {
  const { agentUrl: sender, auth } = identity.sender;
  if (identity.scheme !== 'signature') return 'it is not signed (RFC 9421), as a proof of control always is';
  const body = readChallenge(reading.payload);
  if (typeof body === 'string') return body;
  const { seller_agent_url: claimedSeller } = body;
  if (claimedSeller !== sender)
    return `its seller_agent_url is ${quoted(claimedSeller)}, and ${sender} signed it`;
  if (!ask) return 'onChallenge is missing: give one';
  // Frozen: what is echoed is read from it after it was handed out.
  const challenge = Object.freeze({ ...body, authMatches: authMatches(body, auth, hashes) });
  return { ask, challenge, sender };
}

async function called(
  { ask, challenge, sender }: Question,
  signal: AbortSignal,
  { log }: ChallengeDelivery,
): Promise<{ readonly accepted: unknown }> {
  return { accepted: await ask(challenge, { sender, signal, log }) };
}

/** What the owner says; undefined where that takes too long. */
async function asked(
  question: Question,
  delivery: ChallengeDelivery,
): Promise<{ readonly accepted: unknown } | undefined> {
  const abort = new AbortController();
  const answering = called(question, abort.signal, delivery);
  const answer = await settledWithin(answering, DEADLINE_MS);
  if (answer) return answer;
  abort.abort(new Fault('handler_timeout', LATE));
  const { log, background } = delivery;
  background(answering.catch((error: unknown) => log.error({ err: error }, 'a late onChallenge failed')));
  return undefined;
}

async function answerOf(
  question: Question,
  delivery: ChallengeDelivery,
): Promise<ChallengeEcho | Refusal | Unavailability> {
  const { challenge } = question;
  try {
    const answer = await asked(question, delivery);
    if (!answer) return unavailable('handler_timeout', LATE);
    if (answer.accepted === true) return { kind: 'challenge', challenge };
    if (answer.accepted === false)
      return refusedChallenge(`onChallenge said no (authMatches: ${challenge.authMatches})`);
    return refusedChallenge(`onChallenge returned ${typeof answer.accepted}: it has to return true or false`);
  } catch (error) {
    delivery.log.error({ err: error }, 'onChallenge failed');
    return unavailable('handler_failed', 'onChallenge failed');
  }
}

/**
 * Answers a proof of control (verification.md §7.9). The nonce is burned together with a yes or a no, and not where
 * nothing was decided: the seller may then send the same again.
 */
export async function answerChallenge(
  body: ReadChallenge,
  parts: ChallengeParts,
  delivery: ChallengeDelivery,
): Promise<ChallengeEcho | Refusal | Unavailability> {
  const question = questionOf(body, parts);
  const answer =
    typeof question === 'string' ? refusedChallenge(question) : await answerOf(question, delivery);
  if (answer.kind === 'unavailable') return answer;
  const verdict = await burn(body, answer, parts);
  if (verdict === answer && answer.kind === 'refused') {
    parts.raiseAlarm({
      code: 'challenge_refused',
      option: 'onChallenge',
      sender: body.identity.sender.agentUrl,
      message: `A proof of control was answered 403, so the seller does not activate its subscription: ${answer.detail}.`,
    });
  }
  return verdict;
}
