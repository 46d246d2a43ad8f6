// `createReceiver`: connects the stages of a delivery, from the arrival of its headers to the answer (admission.md
// §2.1). `proceed` runs the stages after the body has arrived; `verify.ts` has the earlier stages.
// Adapters call `open`, other callers `verifyAndDispatch`.

import type { WholeBody } from '../auth/auth-contract.ts';
import type {
  Readiness,
  Receiver,
  ReceiverOptions,
  RequestInfo,
  Ticket,
} from '../config/receiver-options.ts';
import type { ResultSchemas } from '../events/event.ts';
import { requireRawBytes } from '../shared/delivery.ts';
import { boundLogger } from '../shared/logging.ts';
import {
  type Outcome,
  type Refusal,
  type Unavailability,
  unavailable,
  type Verdict,
} from '../shared/outcome.ts';
import { isThenable } from '../shared/realms.ts';
import { once } from '../shared/single-flight.ts';
import { startStop } from '../shared/start-stop.ts';
import { tryFor } from '../shared/time-limits.ts';
import { admit, type WonDelivery } from '../stages/admit.ts';
import { started, type AdmittedEvent } from '../stages/admitted-event.ts';
import { dispatch, type Dispatched } from '../stages/dispatch.ts';
import { declaredLength } from '../stages/guard.ts';
import { isChallenge, type Read } from '../stages/read.ts';
import { isRejection } from '../stages/respond.ts';
import { giveBack } from '../stages/give-back.ts';
import { settle } from '../stages/settle.ts';
import {
  createReceiverContext,
  type ReadyContext,
  type ReceiverContext,
  type WithContext,
} from './context.ts';
import { createDoor, finishOutcome, loadRare } from './finish.ts';
import { createHealth } from './health.ts';
import { inboxOnDemand, observeOnDemand, workerOnDemand } from './inbox-on-demand.ts';
import { type DeliveryWatch, CONTEXT } from './instruments.ts';
import type { OutcomeContext } from './refused.ts';
import type { Upload } from './ticket.ts';
import { arrival, challenged, enter, type Entered, faulted, passed, readWhole } from './verify.ts';

/** Adds the `traceparent` of a delivery's trace to its event, for the process that will run the event's handler. */
function withTraceparent(body: Read, { watch }: OutcomeContext): Read {
  const traceparent = watch?.traceparent;
  if (traceparent === undefined || !body.claim) return body;
  return { ...body, claim: { ...body.claim, traceparent } };
}

/**
 * Gives the event's lease back without running the handler. Either the event already runs in this process, or it is a
 * suspect (its process died while it ran) and another suspect runs. Suspects run one at a time (admission.md §4.6).
 */
async function notStarted({ origin, key, lease }: AdmittedEvent, context: ReadyContext): Promise<Verdict> {
  await giveBack({ sender: origin.agentUrl, key, owner: lease.owner }, context);
  return unavailable('in_flight', 'this process cannot run the event now');
}

/**
 * Processes a delivery whose body has arrived. The stages are authenticate, read (parse the event), admit (store the
 * event), dispatch (run the handler) and settle (record the result).
 */
async function proceed(
  entered: Entered<ReadyContext>,
  whole: WholeBody,
  known: OutcomeContext,
): Promise<Verdict> {
  const { parts: context, arrivedAt } = entered;
  const found = readWhole(entered, whole, known);
  const body = isThenable(found) ? await found : found;
  if (body.kind !== 'read') return body;
  if (isChallenge(body)) return challenged(body, context);

  const admitted = await admit(withTraceparent(body, known), context, known.signal);
  passed(known, 'admitted');
  if (admitted.kind === 'stale') context.observed.stale?.(admitted.event, body.deliveryId ?? '');
  if (admitted.kind !== 'won') return admitted;

  const { deliveryId, key, origin } = admitted;
  const log = boundLogger(context.logger, { sender: origin.agentUrl, key, deliveryId });
  const run = started(admitted, context.running);
  if (!run) return notStarted(admitted, context);
  const dispatched = await dispatch(run, context, log);
  const settled = await settle(dispatched, context, {
    log,
    background: context.lifecycle.background,
    arrivedAt,
  });
  return isRejection(settled) ? settled : handled(admitted, dispatched, settled.state);
}

/** Returns the verdict after a run. If a handler ran, the verdict contains the event as that handler received it. */
function handled(admitted: WonDelivery, { run }: Dispatched, state: 'applied' | 'dead'): Verdict {
  const { event, changed } = admitted;
  return { kind: 'accepted', state, event: run.event ?? event, changed };
}

/** Makes `ready`, `start` and `stop`: the checks, the worker if there is one, and the orderly end. */
function running(
  context: ReceiverContext,
): Pick<Receiver, 'ready' | 'start' | 'stop' | typeof Symbol.asyncDispose> {
  const { config, lifecycle, startup, keys, store, storeHold, registrations } = context;
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
    await storeHold.close();
  };
  const { start, stop } = startStop(begin, end);
  return { ready, start, stop, [Symbol.asyncDispose]: stop };
}

/**
 * Creates a receiver of webhooks. It verifies deliveries, stores each event once, runs its handler, and decides the
 * answer. Serve it with an adapter, e.g. `webhookHandler` of `proto-webhooks/node`.
 * @throws ConfigError if an option is missing or wrong; the message says what to change.
 * @example
 * ```ts
 * import { createReceiver } from 'proto-webhooks';
 * import { sqliteStore } from 'proto-webhooks/sqlite';
 *
 * const receiver = createReceiver({
 *   publicUrl: 'https://buyer.example/webhooks/proto',
 *   senders: [{ agentUrl: 'https://seller.example/mcp' }],
 *   store: sqliteStore('webhooks.db'),
 *   handlers: {
 *     completed: async (event) => console.log(event.taskId, event.data),
 *     other: async (event) => console.log(event.kind),
 *   },
 * });
 * await receiver.start();
 * ```
 */
export function createReceiver<const S extends ResultSchemas = ResultSchemas, Tx = unknown>(
  options: ReceiverOptions<S, Tx>,
): Receiver<S> {
  return receiverOf(createReceiverContext(options as unknown as ReceiverOptions)) as unknown as Receiver<S>;
}

/**
 * Makes a receiver from its parts. The runner of conformance vectors calls this directly, with the crypto engine under
 * test among the parts.
 */
export function receiverOf(context: ReceiverContext): Receiver {
  const { lifecycle } = context;

  const sampling = once(async () =>
    (await loadRare()).createBodySampling(context, (verdict, known) =>
      finishOutcome(verdict, known, context),
    ),
  );

  async function deliver(
    rawBytes: unknown,
    headers: unknown,
    request: RequestInfo | null | undefined,
    watch?: DeliveryWatch,
  ): Promise<Outcome> {
    const rawBody = requireRawBytes(rawBytes);
    const known = arrival(context, headers, request, rawBody, watch);
    lifecycle.arrived();
    try {
      const entered = await enter(context, known);
      const verdict =
        entered.kind === 'entered'
          ? await proceed(entered, { rawBody, wholeAt: entered.arrivedAt }, known)
          : entered;
      return finishOutcome(verdict, known, context);
    } catch (error) {
      return faulted(error, known, context);
    } finally {
      lifecycle.answered();
    }
  }

  /**
   * Processes a delivery that came by `open`, once its body is complete. Before that, the delivery is not counted as
   * running, so that a slow body does not delay `stop()`.
   */
  async function finish(
    entered: Entered<ReadyContext>,
    whole: WholeBody,
    known: OutcomeContext,
  ): Promise<Outcome> {
    known.rawBytes = whole.rawBody;
    lifecycle.arrived();
    try {
      const verdict = lifecycle.stopping()
        ? unavailable('shutting_down', 'the receiver stops')
        : await proceed(entered, whole, known);
      return finishOutcome(verdict, known, context);
    } catch (error) {
      return faulted(error, known, context);
    } finally {
      lifecycle.answered();
    }
  }

  /** Returns the functions and limits with which a ticket takes the body of a delivery whose headers passed. */
  function uploadOf(entered: Entered<ReadyContext>, known: OutcomeContext): Upload {
    const { parts, proof, selected } = entered;
    return {
      kind: 'upload',
      proof,
      hashes: parts.hashes,
      declared: declaredLength(selected.delivery.headers),
      maxBytes: parts.config.maxBodyBytes,
      finish: (whole) =>
        known.watch
          ? known.watch.resumed(() => finish(entered, whole, known))
          : finish(entered, whole, known),
      fail: (verdict) => finishOutcome(verdict, known, context),
    };
  }

  /**
   * Returns an upload, which reads the body of a delivery that was refused by its headers, if `onRefused` wants bodies.
   * Otherwise returns the verdict.
   */
  async function sampled(
    verdict: Refusal | Unavailability,
    known: OutcomeContext,
  ): Promise<Refusal | Unavailability | Upload> {
    return verdict.kind === 'refused' && context.onRefused ? (await sampling())(verdict, known) : verdict;
  }

  async function openTicket(
    headers: unknown,
    request: RequestInfo | null | undefined,
    watch?: DeliveryWatch,
  ): Promise<Outcome | Ticket> {
    const known = arrival(context, headers, request, undefined, watch);
    context.requestCame();
    lifecycle.arrived();
    try {
      const entered = await enter(context, known);
      const upload = entered.kind === 'entered' ? uploadOf(entered, known) : await sampled(entered, known);
      const opened = upload.kind === 'upload' ? context.tickets(upload) : upload;
      return opened.kind === 'ticket' ? opened : finishOutcome(opened, known, context);
    } catch (error) {
      return faulted(error, known, context);
    } finally {
      lifecycle.answered();
    }
  }

  const observe = observeOnDemand(context);
  if (context.store.inbox)
    context.registrations?.observeBy?.(observe, context.raiseAlarm, context.logger.own);

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
