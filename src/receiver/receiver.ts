import { finishOutcome, faultVerdict, createDoor } from './finish.ts';
import type { Proof, WholeBody } from '../auth/auth-contract.ts';
import { createHealth } from './health.ts';
import { headerFields, methodOf, requireRawBytes, type Head } from '../shared/delivery.ts';
import type { ResultSchemas } from '../events/event.ts';
import { type DeliveryWatch, CONTEXT } from './instruments.ts';
import { inboxOnDemand, observeOnDemand, workerOnDemand } from './inbox-on-demand.ts';
import { once } from '../shared/single-flight.ts';
import type { Lifecycle } from './lifecycle.ts';
import { boundLogger } from '../shared/logging.ts';
import type { Receiver, ReceiverOptions, RequestInfo, Ticket } from '../config/receiver-options.ts';
import { type Outcome, type Refusal, unavailable, type Verdict } from '../shared/outcome.ts';
import {
  createReceiverContext,
  type ReadyContext,
  type ReceiverContext,
  type WithContext,
} from './context.ts';
import { admit, type WonDelivery } from '../stages/admit.ts';
import { announceLegacy } from '../stages/announce.ts';
import { authenticate, authenticateBody } from '../stages/authenticate.ts';
import { dispatch, type Dispatched } from '../stages/dispatch.ts';
import { giveBack } from '../stages/settle.ts';
import { declaredLength, guard, guardAgentPush, guardHead } from '../stages/guard.ts';
import { beyondReports, isChallenge, read, type Read, type ReadChallenge } from '../stages/read.ts';
import { isRejection } from '../stages/respond.ts';
import type { OutcomeContext } from './refused.ts';
import { requireUrl, select } from '../stages/select.ts';
import type { Selected } from '../stages/select.ts';
import { settle } from '../stages/settle.ts';
import { started, type AdmittedEvent } from '../stages/admitted-event.ts';
import type { Upload } from './ticket.ts';
import { tryFor } from '../shared/time-limits.ts';

interface Pipeline {
  readonly parts: ReceiverContext;
  readonly lifecycle: Lifecycle;
  readonly legacySeen: Set<string>;
}

/** Checks the token of senders that have one beside their signature. */
async function withToken<R extends Read | ReadChallenge>(
  body: R,
  { headers }: Head,
  parts: ReadyContext,
): Promise<R | Refusal> {
  const { notificationToken } = body.identity.sender;
  const isPush = parts.registrations?.tokenOf && body.reading.ok && body.reading.event.transport === 'agent';
  if (!notificationToken && !isPush) return body;
  const { checkToken, registeredToken } = await import('./rare.ts');
  const policy = notificationToken ?? (await registeredToken(body, parts.registrations));
  return policy ? checkToken(body, headers, policy, parts) : body;
}

/** A proof of control is a question to the owner. */
async function challenged(body: ReadChallenge, parts: ReadyContext): Promise<Verdict> {
  const { answerChallenge } = await import('./rare.ts');
  const log = boundLogger(parts.logger, { sender: body.identity.sender.agentUrl });
  return answerChallenge(body, parts, { log, background: parts.lifecycle.background });
}

/** What is known of an event before it is admitted. */
function note(known: OutcomeContext, body: Read): void {
  if (!body.claim) return;
  known.event = body.reading.event;
  known.who = { ...known.who, deliveryId: body.deliveryId };
}

/** An event that is to be run by another process takes along whose work it is. */
function withTraceparent(body: Read, { watch }: OutcomeContext): Read {
  const traceparent = watch?.traceparent;
  if (traceparent === undefined || !body.claim) return body;
  return { ...body, claim: { ...body.claim, traceparent } };
}

/** It runs here already, or is a suspect and another one runs: one at a time (admission.md §4.6). */
async function notStarted({ origin, key, lease }: AdmittedEvent, parts: ReadyContext): Promise<Verdict> {
  await giveBack({ sender: origin.agentUrl, key, owner: lease.owner }, parts);
  return unavailable('in_flight', 'this process cannot run the event now');
}

/** A delivery whose headers passed: what the second half begins with. */
interface Entered {
  readonly kind: 'entered';
  readonly parts: ReadyContext;
  readonly selected: Selected;
  readonly proof: Proof;
  readonly arrivedAt: number;
}

function passed({ watch }: OutcomeContext, what: Parameters<DeliveryWatch['passed']>[0]): void {
  watch?.passed(what);
}

/** Up to the body: guard, select, authenticate. */
async function enter(
  { parts, lifecycle }: Pipeline,
  head: Head,
  known: OutcomeContext,
): Promise<Verdict | Entered> {
  const arrivedAt = parts.now();
  if (lifecycle.stopping()) return unavailable('shutting_down', 'the receiver stops');

  // A body that is there already declares its length best.
  const { rawBytes } = known;
  const guarded = rawBytes ? guard({ ...head, rawBody: rawBytes }, parts) : guardHead(head, parts);
  if (isRejection(guarded)) return guarded;

  const ready = await parts.startup.ready();
  const selected = await select(guarded, ready);
  if (isRejection(selected)) return selected;
  known.selected = selected;
  const unasked = guardAgentPush(head.headers, selected.senders, parts);
  if (unasked) return unasked;

  const auth = await ready.authContext();
  const proof = await authenticate(selected, auth, arrivedAt);
  if (isRejection(proof)) return proof;
  known.proved = proof.sender?.agentUrl;
  passed(known, 'headers');
  return { kind: 'entered', parts: ready, selected, proof, arrivedAt };
}

/** With the body: authenticate, read, admit, dispatch, settle. */
async function proceed(
  { lifecycle, legacySeen }: Pipeline,
  { parts, selected, proof, arrivedAt }: Entered,
  whole: WholeBody,
  signal: AbortSignal | undefined,
  known: OutcomeContext,
): Promise<Verdict> {
  passed(known, 'body');
  const authentic = await authenticateBody(proof, whole, selected);
  if (isRejection(authentic)) return authentic;
  passed(known, 'verified');
  const sender = authentic.identity.sender.agentUrl;
  known.who = { sender };
  announceLegacy(authentic.identity, legacySeen, parts.raiseAlarm);

  const found = read(authentic, parts);
  const body = beyondReports(found) ?? (await withToken(found, selected.delivery, parts));
  if (isRejection(body)) return body;
  if (isChallenge(body)) return challenged(body, parts);
  note(known, body);

  const admitted = await admit(withTraceparent(body, known), parts, signal);
  passed(known, 'admitted');
  if (admitted.kind === 'stale') parts.observed.stale?.(admitted.event, body.deliveryId ?? '');
  if (admitted.kind !== 'won') return admitted;

  const { deliveryId, key } = admitted;
  const log = boundLogger(parts.logger, { sender, key, deliveryId });
  const run = started(admitted, parts.running);
  if (!run) return notStarted(admitted, parts);
  const dispatched = await dispatch(run, parts, log);
  const settled = await settle(dispatched, parts, { log, background: lifecycle.background, arrivedAt });
  return isRejection(settled) ? settled : handled(admitted, dispatched, settled.state);
}

/** The event as its handler got it, where one ran. */
function handled(admitted: WonDelivery, { run }: Dispatched, state: 'applied' | 'dead'): Verdict {
  const { event, changed } = admitted;
  return { kind: 'accepted', state, event: run.event ?? event, changed };
}

/** `start` and `stop`: the worker, where the mode has one, and the end of everything. */
function running(
  parts: ReceiverContext,
  lifecycle: Lifecycle,
): Pick<Receiver, 'start' | 'stop' | typeof Symbol.asyncDispose> {
  const { leaseMs } = parts.config;
  const worker = workerOnDemand(parts);
  const stop = async (): Promise<void> => {
    await Promise.all([lifecycle.drain(leaseMs), worker.stop(leaseMs)]);
    parts.close();
    parts.keys.stop();
    await parts.store.close();
  };
  return { start: worker.start, stop, [Symbol.asyncDispose]: stop };
}

/**
 * Makes a receiver.
 * @throws ConfigError where an option is missing or wrong; the message says what to change.
 */
export function createReceiver<const S extends ResultSchemas = ResultSchemas, Tx = unknown>(
  options: ReceiverOptions<S, Tx>,
): Receiver<S> {
  return receiverOf(createReceiverContext(options as unknown as ReceiverOptions)) as unknown as Receiver<S>;
}

/** The receiver that parts make. By itself only for `vectors/`, whose parts have the crypto engine that is to be tested. */
export function receiverOf(parts: ReceiverContext): Receiver {
  const { lifecycle } = parts;
  const pipeline: Pipeline = { parts, lifecycle, legacySeen: new Set() };

  const sampling = once(async () =>
    (await import('./rare.ts')).createBodySampling(parts, (verdict, known) =>
      finishOutcome(verdict, known, parts),
    ),
  );

  function headOf(headers: unknown, { method, url, urlNormalised = false }: RequestInfo): Head {
    const head = { method: methodOf(method), url, urlNormalised, headers: headerFields(headers) };
    requireUrl(parts.config.publicUrl, url);
    return head;
  }

  /** Counts it as under way until it is answered; a fault is an outcome too. */
  async function counted<T>(known: OutcomeContext, work: () => Promise<T>): Promise<T | Outcome> {
    lifecycle.arrived();
    try {
      return await work();
    } catch (error) {
      return finishOutcome(faultVerdict(error, parts), known, parts);
    } finally {
      lifecycle.answered();
    }
  }

  async function deliver(
    rawBytes: unknown,
    headers: unknown,
    given: RequestInfo | null | undefined,
    watch?: DeliveryWatch,
  ): Promise<Outcome> {
    const request = given ?? {};
    const rawBody = requireRawBytes(rawBytes);
    const head = headOf(headers, request);
    const known: OutcomeContext = { watch, who: {}, delivery: head, rawBytes: rawBody };
    return counted(known, async () => {
      const entered = await enter(pipeline, head, known);
      if (entered.kind !== 'entered') return finishOutcome(entered, known, parts);
      const whole = { rawBody, wholeAt: entered.arrivedAt };
      return finishOutcome(await proceed(pipeline, entered, whole, request.signal, known), known, parts);
    });
  }

  /** The second half of what came by `open`. A body that is still coming holds up no `stop()`. */
  async function finish(
    entered: Entered,
    whole: WholeBody,
    signal: AbortSignal | undefined,
    known: OutcomeContext,
  ) {
    known.rawBytes = whole.rawBody;
    return counted(known, async () => {
      const verdict = lifecycle.stopping()
        ? unavailable('shutting_down', 'the receiver stops')
        : await proceed(pipeline, entered, whole, signal, known);
      return finishOutcome(verdict, known, parts);
    });
  }

  async function openTicket(
    headers: unknown,
    given: RequestInfo | null | undefined,
    watch?: DeliveryWatch,
  ): Promise<Outcome | Ticket> {
    const request = given ?? {};
    const head = headOf(headers, request);
    const known: OutcomeContext = { watch, who: {}, delivery: head };
    return counted(known, async () => {
      const entered = await enter(pipeline, head, known);
      const upload: Upload | Verdict =
        entered.kind === 'entered'
          ? {
              kind: 'upload',
              proof: entered.proof,
              hashes: entered.parts.hashes,
              declared: declaredLength(head.headers),
              maxBytes: parts.config.maxBodyBytes,
              finish: (whole) => {
                const second = () => finish(entered, whole, request.signal, known);
                return watch ? watch.resumed(second) : second();
              },
              fail: (verdict) => finishOutcome(verdict, known, parts),
            }
          : entered.kind === 'refused' && parts.onRefused
            ? await (
                await sampling()
              )(entered, known)
            : entered;
      if (upload.kind !== 'upload') return finishOutcome(upload, known, parts);
      const { tickets } = await parts.startup.ready();
      const opened = tickets(upload);
      return opened.kind === 'ticket' ? opened : finishOutcome(opened, known, parts);
    });
  }

  const observe = observeOnDemand(parts);
  if (parts.store.inbox) parts.registrations?.observeBy?.(observe, parts.raiseAlarm);

  const { instruments } = parts;
  const inside: WithContext = { [CONTEXT]: parts };
  return {
    ...inside,
    verifyAndDispatch: (rawBytes, headers, request) =>
      instruments.delivery
        ? instruments.delivery((watch) => deliver(rawBytes, headers, request, watch))
        : deliver(rawBytes, headers, request),
    open: (headers, request) =>
      instruments.delivery
        ? instruments.delivery((watch) => openTicket(headers, request, watch))
        : openTicket(headers, request),
    ready: async () => {
      await tryFor(parts.config.startMs, () => parts.startup.check(), lifecycle.stopping);
      return { storeId: parts.startup.storeId() };
    },
    ...running(parts, lifecycle),
    health: createHealth(parts),
    inbox: inboxOnDemand(parts, lifecycle),
    observe,
    door: createDoor(parts),
  };
}
