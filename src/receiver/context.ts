// Makes all parts of a receiver from its options, once. `createVerifyingParts` makes the parts that a verifier has too;
// this file adds the parts for the store and the handlers.
// Called by `createReceiver`, and by the runner of conformance vectors (test cases), which chooses the crypto engine.

import { resolveOptions } from '../config/resolve-options.ts';
import type { CryptoEngine } from '../crypto/engine.ts';
import type { QueueWatch } from './queue-watch.ts';
import { createWakeSignal, type WakeSignal } from '../inbox/wake-signal.ts';
import type { CONTEXT } from './instruments.ts';
import { createThinning, type Thinning } from '../shared/logging.ts';
import type { ResultSchemas } from '../events/event.ts';
import type { Handlers, ReceiverOptions } from '../config/receiver-options.ts';
import { createRunning, type Running } from '../stages/running.ts';
import { createWaiting, type Waiting } from '../stages/wait.ts';
import { createStartup, type StoreStartup } from './startup.ts';
import type { Store } from '../stores/store.ts';
import { type StoreHold, storeHold } from './store-holders.ts';
import { createTickets, type Tickets } from './ticket.ts';
import { createQueueWatch } from './queue-watch.ts';
import { observedBy, type RunObserver } from '../stages/on-handled.ts';
import { createVerifyingParts, type Loaded, type VerifyingContext } from './verifying.ts';

/** Every part of a receiver, made once from its options. */
export interface ReceiverContext extends VerifyingContext<ReadyContext> {
  readonly handlers: Handlers;
  readonly resultSchemas: ResultSchemas | undefined;
  readonly store: Store;
  readonly storeHold: StoreHold;
  readonly waiting: Waiting;
  readonly running: Running;
  readonly startup: StoreStartup<ReadyContext>;
  /** Wakes this process's worker early when there is work. */
  readonly wakeSignal: WakeSignal;
  /** Limits the number of handler errors that are logged with a stack. */
  readonly handlerErrors: Thinning;
  readonly observed: RunObserver;
  /** Makes tickets, which take the bodies of deliveries chunk by chunk. */
  readonly tickets: Tickets;
  readonly random: () => number;
  /** Returns a signal that aborts when the receiver has stopped. */
  readonly closed: () => AbortSignal;
}

/** Every part that a delivery needs: the parts of the receiver, and the parts that the startup check loads. */
export interface ReadyContext extends ReceiverContext, Loaded, QueueWatch {}

async function makeReady(context: ReceiverContext, load: () => Promise<Loaded>): Promise<ReadyContext> {
  const loaded = await load();
  if (context.instruments.handled) Object.assign(context.observed, observedBy(context));
  return { ...context, ...createQueueWatch(context), ...loaded };
}

/**
 * Makes the parts of a receiver.
 * @param engineName the crypto engine to use instead of the runtime's fastest; set by conformance vectors.
 * @throws ConfigError if the options are wrong.
 */
export function createReceiverContext(
  options: ReceiverOptions,
  engineName?: CryptoEngine['name'],
): ReceiverContext {
  const config = resolveOptions(options);
  options.registrations?.requireTheirs?.({ ...options, bases: config.bases });
  const { handlers, resultSchemas, store } = options;
  const { parts, load } = createVerifyingParts(options, { config, store, engineName });
  const { keys, raiseAlarm, outages, logger, newId, lifecycle } = parts;
  const hold = storeHold(store);
  const checked = {
    config,
    options,
    keys,
    raiseAlarm,
    outages,
    storeHold: hold,
    isStopped: lifecycle.stopping,
  };
  const context: ReceiverContext = {
    ...parts,
    handlers,
    resultSchemas,
    store,
    storeHold: hold,
    waiting: createWaiting(store),
    running: createRunning({ store, config, logger, newId }),
    startup: createStartup({ ...checked, load: () => makeReady(context, load) }),
    wakeSignal: createWakeSignal(),
    handlerErrors: createThinning(),
    observed: {},
    tickets: createTickets(parts),
    random: () => Math.random(),
    closed: lifecycle.closed,
  };
  return context;
}

/**
 * A receiver with the hidden member through which other entries of this package, e.g. `proto-webhooks/otel`, reach the
 * receiver's parts.
 */
export interface WithContext {
  readonly [CONTEXT]: ReceiverContext;
}
