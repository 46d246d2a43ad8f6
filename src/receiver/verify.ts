// The stages that a receiver and a verifier share: `enter` checks the headers, `readWhole` the body (admission.md
// §2.1).
// Between the two calls, a ticket may collect the body while it arrives.

import type { Proof, WholeBody } from '../auth/auth-contract.ts';
import type { RequestInfo } from '../config/receiver-options.ts';
import { headerFields, type HeaderFields, methodOf, type Head } from '../shared/delivery.ts';
import { boundLogger } from '../shared/logging.ts';
import { isThenable } from '../shared/realms.ts';
import {
  type ChallengeEcho,
  type OutcomeOf,
  type Refusal,
  type Unavailability,
  unavailable,
} from '../shared/outcome.ts';
import { announceLegacy } from '../stages/announce.ts';
import { type Authentic, authenticate, authenticateBody } from '../stages/authenticate.ts';
import type { BurnContext } from '../stages/burn.ts';
import { guard, guardAgentPush } from '../stages/guard.ts';
import { beyondReports, read, type Read, type ReadChallenge } from '../stages/read.ts';
import { isRejection } from '../stages/respond.ts';
import { requireUrl, select } from '../stages/select.ts';
import type { Selected } from '../stages/selected.ts';
import { faultVerdict, finishOutcome, loadRare } from './finish.ts';
import type { DeliveryWatch } from './instruments.ts';
import type { OutcomeContext } from './refused.ts';
import type { ReadyVerifying, VerifyingContext, VerifyingParts } from './verifying.ts';

type Rejection = Refusal | Unavailability;

/** The facts that are known about a delivery when it arrives. */
export interface Arrival extends OutcomeContext {
  readonly delivery: Head;
}

/**
 * Collects the facts about an arriving delivery.
 * @param rawBytes the body, if it has already arrived.
 * @throws ConfigError for the caller's mistakes: unusable headers, or no `url` although one is needed.
 */
export function arrival(
  { config }: VerifyingParts,
  headers: unknown,
  given: RequestInfo | null | undefined,
  rawBytes?: Uint8Array,
  watch?: DeliveryWatch,
): Arrival {
  const { method, url, urlNormalised = false, signal } = given ?? {};
  const delivery = { method: methodOf(method), url, urlNormalised, headers: headerFields(headers) };
  requireUrl(config.bases, url);
  return { watch, who: {}, delivery, signal, rawBytes };
}

/** Converts a thrown error to an outcome that is answered with 503. */
export function faulted(
  error: unknown,
  known: OutcomeContext,
  context: VerifyingParts,
): OutcomeOf<Unavailability> {
  return finishOutcome(faultVerdict(error, context), known, context);
}

/**
 * Counts a delivery as in progress while `work` runs. If `work` throws, returns an outcome that is answered with 503.
 */
export async function counted<T>(
  context: VerifyingParts,
  known: OutcomeContext,
  work: () => Promise<T>,
): Promise<T | OutcomeOf<Unavailability>> {
  const { lifecycle } = context;
  lifecycle.arrived();
  try {
    return await work();
  } catch (error) {
    return faulted(error, known, context);
  } finally {
    lifecycle.answered();
  }
}

/** The facts about a delivery whose headers passed, with which its body is processed. */
export interface Entered<R> {
  readonly kind: 'entered';
  readonly parts: R;
  readonly selected: Selected;
  readonly proof: Proof;
  readonly arrivedAt: number;
}

export function passed({ watch }: OutcomeContext, what: Parameters<DeliveryWatch['passed']>[0]): void {
  watch?.passed(what);
}

/**
 * Checks a delivery's headers in three stages: guard (method, media type, size), select (URL and senders) and
 * authenticate.
 */
export async function enter<R extends ReadyVerifying>(
  context: VerifyingContext<R>,
  known: Arrival,
): Promise<Rejection | Entered<R>> {
  const arrivedAt = context.now();
  if (context.lifecycle.stopping()) return unavailable('shutting_down', 'the receiver stops');

  const { delivery: head } = known;
  const guarded = guard(head, context, known.rawBytes);
  if (isRejection(guarded)) return guarded;

  // `ready()` may return a value without a promise. Such a value is not awaited, because `await` would delay the
  // delivery.
  const checked = context.startup.ready();
  const ready = isThenable(checked) ? await checked : checked;
  const found = select(guarded, ready, loadRare);
  const selected = isThenable(found) ? await found : found;
  if (isRejection(selected)) return selected;
  known.selected = selected;
  const unasked = guardAgentPush(head.headers, selected.senders, context);
  if (unasked) return unasked;

  const chosen = ready.authContext();
  const auth = isThenable(chosen) ? await chosen : chosen;
  const proving = authenticate(selected, auth, arrivedAt);
  const proof = isThenable(proving) ? await proving : proving;
  if (isRejection(proof)) return rejected(proof, selected, context);
  known.proved = proof.sender?.agentUrl;
  passed(known, 'headers');
  return { kind: 'entered', parts: ready, selected, proof, arrivedAt };
}

/**
 * Converts a refusal to a 503 if the URL has more senders than are considered, because a sender left out may have sent
 * the delivery.
 */
function explained(rejection: Rejection, { refused }: Selected): Rejection {
  return refused && rejection.kind === 'refused' ? refused(rejection) : rejection;
}

/** Returns the refusal, or a 503 if the delivery's credentials were retired in the registrations. */
function rejected(
  proof: Rejection,
  selected: Selected,
  context: VerifyingParts,
): Rejection | Promise<Rejection> {
  const rejection = explained(proof, selected);
  if (!context.registrations?.retired) return rejection;
  return loadRare().then(({ retiredOr }) => retiredOr(rejection, selected, context));
}

type Whole = Rejection | Read | ReadChallenge;

/**
 * Authenticates and parses the body. Returns an event, a proof of control (a seller's challenge to the URL), or a
 * refusal or fault. The result is a promise only if something has to be awaited.
 */
export function readWhole(
  entered: Entered<ReadyVerifying>,
  whole: WholeBody,
  known: OutcomeContext,
): Whole | Promise<Whole> {
  passed(known, 'body');
  const proved = authenticateBody(entered.proof, whole, entered.selected);
  return isThenable(proved)
    ? proved.then((authentic) => readAuthentic(authentic, entered, known))
    : readAuthentic(proved, entered, known);
}

function readAuthentic(
  authentic: Authentic | Rejection,
  { parts: context, selected }: Entered<ReadyVerifying>,
  known: OutcomeContext,
): Whole | Promise<Whole> {
  if (isRejection(authentic)) return rejected(authentic, selected, context);
  passed(known, 'verified');
  const { sender, target } = authentic.identity;
  known.who = { sender: sender.agentUrl };
  // If the signature verified for another base URL than the one that was tried first, the outcome names that URL.
  if (target && target !== selected.target) known.selected = { target, senders: selected.senders };
  announceLegacy(authentic.identity, context.legacySeen, context.raiseAlarm);

  const { url, identity } = authentic;
  const isPrevious = identity.scheme === 'signature' ? undefined : identity.isPrevious === true;
  const heard = context.registrations?.heard?.(url, identity.sender.agentUrl, isPrevious);
  if (heard?.written) context.lifecycle.background(heard.written);
  const found = read(authentic, context, heard?.url);
  const checked = beyondReports(found) ?? withToken(found, selected.delivery, context);
  return isThenable(checked) ? checked.then((body) => noted(known, body)) : noted(known, checked);
}

/** Checks the notification token, for senders that send one in addition to a signature. */
function withToken<R extends Read | ReadChallenge>(
  body: R,
  { headers }: Head,
  context: ReadyVerifying,
): R | Promise<R | Refusal> {
  const { notificationToken } = body.identity.sender;
  const isPush =
    context.registrations?.tokenOf && body.reading.ok && body.reading.event.transport === 'agent';
  return notificationToken || isPush ? tokenChecked(body, headers, context) : body;
}

async function tokenChecked<R extends Read | ReadChallenge>(
  body: R,
  headers: HeaderFields,
  context: ReadyVerifying,
): Promise<R | Refusal> {
  const { checkToken, registeredToken } = await loadRare();
  const policy =
    body.identity.sender.notificationToken ?? (await registeredToken(body, context.registrations));
  return policy ? checkToken(body, headers, policy, context) : body;
}

/** Records the event and its delivery id in `known`, from which the outcome is made. */
function noted(known: OutcomeContext, body: Whole): Whole {
  if (isRejection(body) || !body.claim) return body;
  known.event = body.reading.event;
  known.who = { ...known.who, deliveryId: body.deliveryId };
  return body;
}

/**
 * Answers a proof of control (a seller's challenge to the URL). The registrations or the owner's `onChallenge` decide
 * about it.
 */
export async function challenged(
  body: ReadChallenge,
  context: ReadyVerifying & BurnContext,
): Promise<ChallengeEcho | Rejection> {
  const { answerChallenge } = await loadRare();
  const log = boundLogger(context.logger, { sender: body.identity.sender.agentUrl });
  return answerChallenge(body, context, { log, background: context.lifecycle.background });
}
