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
import { authenticate, authenticateBody } from '../stages/authenticate.ts';
import type { BurnContext } from '../stages/burn.ts';
import { guard, guardAgentPush, guardHead } from '../stages/guard.ts';
import { beyondReports, read, type Read, type ReadChallenge } from '../stages/read.ts';
import { isRejection } from '../stages/respond.ts';
import { requireUrl, select, type Selected } from '../stages/select.ts';
import { faultVerdict, finishOutcome } from './finish.ts';
import type { DeliveryWatch } from './instruments.ts';
import type { OutcomeContext } from './refused.ts';
import type { ReadyVerifying, VerifyingContext, VerifyingParts } from './verifying.ts';

type Rejection = Refusal | Unavailability;

/** @throws ConfigError for the caller's mistakes: unusable headers, no `url` where it is needed. */
export function headOf(
  { config }: VerifyingParts,
  headers: unknown,
  { method, url, urlNormalised = false }: RequestInfo,
): Head {
  const head = { method: methodOf(method), url, urlNormalised, headers: headerFields(headers) };
  requireUrl(config.publicUrl, url);
  return head;
}

/** Counts it as under way until it is answered; a fault is an outcome too. */
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
    return finishOutcome(faultVerdict(error, context), known, context);
  } finally {
    lifecycle.answered();
  }
}

/** A delivery whose headers passed: what the second half begins with. */
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

/** Up to the body: guard, select, authenticate. */
export async function enter<R extends ReadyVerifying>(
  context: VerifyingContext<R>,
  head: Head,
  known: OutcomeContext,
): Promise<Rejection | Entered<R>> {
  const arrivedAt = context.now();
  if (context.lifecycle.stopping()) return unavailable('shutting_down', 'the receiver stops');

  // A body that is there already declares its length best.
  const { rawBytes } = known;
  const guarded = rawBytes ? guard({ ...head, rawBody: rawBytes }, context) : guardHead(head, context);
  if (isRejection(guarded)) return guarded;

  const ready = await context.startup.ready();
  const selected = await select(guarded, ready);
  if (isRejection(selected)) return selected;
  known.selected = selected;
  const unasked = guardAgentPush(head.headers, selected.senders, context);
  if (unasked) return unasked;

  const auth = await ready.authContext();
  const proof = await authenticate(selected, auth, arrivedAt);
  if (isRejection(proof)) return proof;
  known.proved = proof.sender?.agentUrl;
  passed(known, 'headers');
  return { kind: 'entered', parts: ready, selected, proof, arrivedAt };
}

/** With the body: authenticate, read. What is read is an event, a question to the owner, or neither. */
export async function readWhole(
  { parts: context, selected, proof }: Entered<ReadyVerifying>,
  whole: WholeBody,
  known: OutcomeContext,
): Promise<Rejection | Read | ReadChallenge> {
  passed(known, 'body');
  const authentic = await authenticateBody(proof, whole, selected);
  if (isRejection(authentic)) return authentic;
  passed(known, 'verified');
  known.who = { sender: authentic.identity.sender.agentUrl };
  announceLegacy(authentic.identity, context.legacySeen, context.raiseAlarm);

  const found = read(authentic, context);
  const checked = beyondReports(found) ?? withToken(found, selected.delivery, context);
  // An ordinary delivery makes no promise for it.
  const body = isThenable(checked) ? await checked : checked;
  if (!isRejection(body)) note(known, body);
  return body;
}

/** Checks the token of senders that have one beside their signature. */
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
  const { checkToken, registeredToken } = await import('./rare.ts');
  const policy =
    body.identity.sender.notificationToken ?? (await registeredToken(body, context.registrations));
  return policy ? checkToken(body, headers, policy, context) : body;
}

/** What is known of an event before it is admitted. */
function note(known: OutcomeContext, body: Read | ReadChallenge): void {
  if (!body.claim) return;
  known.event = body.reading.event;
  known.who = { ...known.who, deliveryId: body.deliveryId };
}

/** A proof of control is a question to the owner. */
export async function challenged(
  body: ReadChallenge,
  context: ReadyVerifying & BurnContext,
): Promise<ChallengeEcho | Rejection> {
  const { answerChallenge } = await import('./rare.ts');
  const log = boundLogger(context.logger, { sender: body.identity.sender.agentUrl });
  return answerChallenge(body, context, { log, background: context.lifecycle.background });
}
