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
import type {
  Readiness,
  Receiver,
  ReceiverOptions,
  RequestInfo,
  Ticket,
} from '../config/receiver-options.ts';
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
import { startStop } from '../shared/start-stop.ts';
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
  context: ReadyContext,
): Promise<R | Refusal> {
  const { notificationToken } = body.identity.sender;
  const isPush =
    context.registrations?.tokenOf && body.reading.ok && body.reading.event.transport === 'agent';
  if (!notificationToken && !isPush) return body;
  const { checkToken, registeredToken } = await import('./rare.ts');
  const policy = notificationToken ?? (await registeredToken(body, context.registrations));
  return policy ? checkToken(body, headers, policy, context) : body;
}

/** A proof of control is a question to the owner. */
async function challenged(body: ReadChallenge, context: ReadyContext): Promise<Verdict> {
  const { answerChallenge } = await import('./rare.ts');
  const log = boundLogger(context.logger, { sender: body.identity.sender.agentUrl });
  return answerChallenge(body, context, { log, background: context.lifecycle.background });
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
async function notStarted({ origin, key, lease }: AdmittedEvent, context: ReadyContext): Promise<Verdict> {
  await giveBack({ sender: origin.agentUrl, key, owner: lease.owner }, context);
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
  { parts: context, lifecycle }: Pipeline,
  head: Head,
  known: OutcomeContext,
): Promise<Verdict | Entered> {
  const arrivedAt = context.now();
  if (lifecycle.stopping()) return unavailable('shutting_down', 'the receiver stops');

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

/** With the body: authenticate, read, admit, dispatch, settle. */
async function proceed(
  { lifecycle, legacySeen }: Pipeline,
  { parts: context, selected, proof, arrivedAt }: Entered,
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
  announceLegacy(authentic.identity, legacySeen, context.raiseAlarm);

  const found = read(authentic, context);
  const body = beyondReports(found) ?? (await withToken(found, selected.delivery, context));
  if (isRejection(body)) return body;
  if (isChallenge(body)) return challenged(body, context);
  note(known, body);

  const admitted = await admit(withTraceparent(body, known), context, signal);
  passed(known, 'admitted');
  if (admitted.kind === 'stale') context.observed.stale?.(admitted.event, body.deliveryId ?? '');
  if (admitted.kind !== 'won') return admitted;

  const { deliveryId, key } = admitted;
  const log = boundLogger(context.logger, { sender, key, deliveryId });
  const run = started(admitted, context.running);
  if (!run) return notStarted(admitted, context);
  const dispatched = await dispatch(run, context, log);
  const settled = await settle(dispatched, context, { log, background: lifecycle.background, arrivedAt });
  return isRejection(settled) ? settled : handled(admitted, dispatched, settled.state);
}

/** The event as its handler got it, where one ran. */
function handled(admitted: WonDelivery, { run }: Dispatched, state: 'applied' | 'dead'): Verdict {
  const { event, changed } = admitted;
  return { kind: 'accepted', state, event: run.event ?? event, changed };
}

/** `ready`, `start` and `stop`: the checks, the worker where there is one, and the end of everything. */
function running(
  context: ReceiverContext,
): Pick<Receiver, 'ready' | 'start' | 'stop' | typeof Symbol.asyncDispose> {
  const { config, lifecycle, startup, keys, store, registrations } = context;
  const { leaseMs } = config;
  const worker = workerOnDemand(context);
  const hasWorker = store.inbox !== undefined && (config.mode === 'inbox' || registrations !== undefined);
  const ready = async (): Promise<Readiness> => {
    await tryFor(config.startMs, startup.check, lifecycle.stopping);
    return { storeId: startup.storeId() };
  };
  const begin = async (): Promise<void> => {
    lifecycle.resume();
    keys.resume();
    if (hasWorker) await worker.start();
    else await ready();
  };
  const end = async (): Promise<void> => {
    await Promise.all([lifecycle.drain(leaseMs), worker.stop(leaseMs)]);
    lifecycle.close();
    keys.stop();
    await startup.reset(leaseMs);
    await store.close();
  };
  const { start, stop } = startStop(begin, end);
  return { ready, start, stop, [Symbol.asyncDispose]: stop };
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
export function receiverOf(context: ReceiverContext): Receiver {
  const { lifecycle } = context;
  const pipeline: Pipeline = { parts: context, lifecycle, legacySeen: new Set() };

  const sampling = once(async () =>
    (await import('./rare.ts')).createBodySampling(context, (verdict, known) =>
      finishOutcome(verdict, known, context),
    ),
  );

  function headOf(headers: unknown, { method, url, urlNormalised = false }: RequestInfo): Head {
    const head = { method: methodOf(method), url, urlNormalised, headers: headerFields(headers) };
    requireUrl(context.config.publicUrl, url);
    return head;
  }

  /** Counts it as under way until it is answered; a fault is an outcome too. */
  async function counted<T>(known: OutcomeContext, work: () => Promise<T>): Promise<T | Outcome> {
    lifecycle.arrived();
    try {
      return await work();
    } catch (error) {
      return finishOutcome(faultVerdict(error, context), known, context);
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
      if (entered.kind !== 'entered') return finishOutcome(entered, known, context);
      const whole = { rawBody, wholeAt: entered.arrivedAt };
      return finishOutcome(await proceed(pipeline, entered, whole, request.signal, known), known, context);
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
      return finishOutcome(verdict, known, context);
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
              maxBytes: context.config.maxBodyBytes,
              finish: (whole) => {
                const second = () => finish(entered, whole, request.signal, known);
                return watch ? watch.resumed(second) : second();
              },
              fail: (verdict) => finishOutcome(verdict, known, context),
            }
          : entered.kind === 'refused' && context.onRefused
            ? await (
                await sampling()
              )(entered, known)
            : entered;
      if (upload.kind !== 'upload') return finishOutcome(upload, known, context);
      const { tickets } = await context.startup.ready();
      const opened = tickets(upload);
      return opened.kind === 'ticket' ? opened : finishOutcome(opened, known, context);
    });
  }

  const observe = observeOnDemand(context);
  if (context.store.inbox) context.registrations?.observeBy?.(observe, context.raiseAlarm);

  const { instruments } = context;
  const inside: WithContext = { [CONTEXT]: context };
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
    ...running(context),
    health: createHealth(context),
    inbox: inboxOnDemand(context, lifecycle),
    observe,
    door: createDoor(context),
  };
}
