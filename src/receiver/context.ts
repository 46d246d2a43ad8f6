import { printableValue } from '../codec/printable-value.ts';
import type { AuthContext } from '../auth/auth-contract.ts';
import { resolveOptions } from '../config/resolve-options.ts';
import type { CryptoEngine, Hashes } from '../crypto/engine.ts';
import { loadHashes } from '../crypto/native-hashes.ts';
import { threadPoolRule } from '../crypto/pool.ts';
import type { ReadBody } from '../events/reading.ts';
import type { EventRegistrations } from '../events/event-registration.ts';
import { createOutages, type Outages } from './outages.ts';
import type { QueueWatch } from './queue-watch.ts';
import { createWakeSignal, type WakeSignal } from '../inbox/wake-signal.ts';
import type { Instruments, CONTEXT } from './instruments.ts';
import { keysOnDemand } from '../keys/on-demand.ts';
import { createLifecycle, type Lifecycle } from './lifecycle.ts';
import {
  alarmRaiser,
  consoleLogger,
  createThinning,
  harmless,
  safeLogger,
  type Thinning,
} from '../shared/logging.ts';
import type { ResultSchemas } from '../events/event.ts';
import { once } from '../shared/single-flight.ts';
import type { Handlers, ReceiverOptions } from '../config/receiver-options.ts';
import type { Outcome } from '../shared/outcome.ts';
import { createRunning, type Running } from '../stages/running.ts';
import { createSetUpWatch } from '../stages/misconfiguration.ts';
import { createWaiting, type Waiting } from '../stages/wait.ts';
import { createStartup, type Startup } from './startup.ts';
import type { Store } from '../stores/store.ts';
import { createTickets, type Tickets } from './ticket.ts';
import type { RefusalParts } from './refused.ts';
import { createQueueWatch } from './queue-watch.ts';
import { observedBy, type RunObserver } from '../stages/on-handled.ts';

/** Everything a receiver is made of, made once from its options. */
export interface ReceiverContext extends RefusalParts {
  readonly handlers: Handlers;
  readonly onChallenge: ReceiverOptions['onChallenge'];
  readonly resultSchemas: ResultSchemas | undefined;
  readonly registrations: EventRegistrations | undefined;
  readonly store: Store;
  readonly waiting: Waiting;
  readonly running: Running;
  readonly startup: Startup<ReadyContext>;
  readonly lifecycle: Lifecycle;
  /** Notified when there is work for a worker of this process. */
  readonly wakeSignal: WakeSignal;
  /** Errors of handlers whose stack is logged. */
  readonly handlerErrors: Thinning;
  /** `onHandled` among them. */
  readonly instruments: Instruments;
  readonly observed: RunObserver;
  readonly onOutcome: (outcome: Outcome) => void;
  readonly outages: Outages;
  readonly newId: () => string;
  readonly random: () => number;
  /** As of `Lifecycle`. */
  readonly closed: () => AbortSignal;
}

/** Everything that a delivery needs: the parts, and what was loaded by the check before the first one. */
export interface ReadyContext extends ReceiverContext, QueueWatch {
  readonly hashes: Hashes;
  readonly readBody: ReadBody;
  /** Takes bodies that are still coming. */
  readonly tickets: Tickets;
  /** The engine is chosen at first use. */
  readonly authContext: () => Promise<AuthContext>;
}

type Engine = () => Promise<AuthContext['engine']>;

/** The code of the engines. The startup check asks for it too, so that the first delivery does not wait for it. */
const loadCrypto = (): Promise<typeof import('../crypto/index.ts')> => import('../crypto/index.ts');

/** The reader of bodies has the schemas with it, a fifth of the package. */
async function makeReady(parts: ReceiverContext, engine: Engine): Promise<ReadyContext> {
  const [hashes, { readBody }, { installedSodium }] = await Promise.all([
    loadHashes(),
    import('../events/reading.ts'),
    loadCrypto(),
  ]);
  const { protocols, keys, raiseAlarm, config } = parts;
  const setUp = createSetUpWatch(parts, () => import('./rare.ts'));
  const context = { protocols, hashes, keys, hostCheck: config.hostCheck, raiseAlarm, setUp };
  const authContext = once(async () => ({ ...context, engine: await engine() }));
  // What is found on the machine is looked at before the first delivery.
  if (config.verification !== 'pool' && installedSodium()) await engine();
  const tickets = createTickets(parts);
  if (parts.instruments.handled) Object.assign(parts.observed, observedBy(parts));
  return { ...parts, ...createQueueWatch(parts), hashes, readBody, tickets, authContext };
}

/**
 * Node puts a UUID together from pieces, and the tree of them takes ten times the text's room for as long as a store
 * keeps it; to look at a character makes one text of it.
 */
function newId(): string {
  const id = globalThis.crypto.randomUUID();
  id.charCodeAt(0);
  return id;
}

/** What the owner handed in, as it is. */
function handedIn({
  handlers,
  onChallenge,
  resultSchemas,
  registrations,
  store,
}: ReceiverOptions): Pick<
  ReceiverContext,
  'handlers' | 'onChallenge' | 'resultSchemas' | 'registrations' | 'store'
> {
  return { handlers, onChallenge, resultSchemas, registrations, store };
}

/**
 * @param engineName the crypto engine to use, where the fastest of the runtime is not wanted: for tests.
 * @throws ConfigError where the options are wrong.
 */
export function createReceiverContext(
  options: ReceiverOptions,
  engineName?: CryptoEngine['name'],
): ReceiverContext {
  const config = resolveOptions(options);
  options.registrations?.requireTheirs?.({ ...options, publicUrl: config.publicUrl });
  const logger = safeLogger(options.logger ?? consoleLogger());
  const { protocols, allowLoopback, admissionPressure: thresholds } = config;
  const { fetch, now = Date.now } = options;
  const raiseAlarm = alarmRaiser(logger, options, now);
  const outages = createOutages(now, raiseAlarm);
  const wakeSignal = createWakeSignal();
  const lifecycle = createLifecycle();
  const useThreadPool = threadPoolRule(config.verification, lifecycle.inFlight);
  const unusable = (reason: string): void =>
    raiseAlarm({
      code: 'sodium_unusable',
      message: `sodium-native is installed and not used: ${reason}. OpenSSL verifies. Install sodium-native 5.1, or set PROTO_WEBHOOKS_SODIUM=0`,
    });
  const { verification } = config;
  const engine = once(async () =>
    (await loadCrypto()).receiverEngine(engineName, { useThreadPool, verification, unusable }),
  );
  const { onHandled } = options;
  const instruments: Instruments = {
    ...(onHandled && { handled: harmless((handled) => onHandled(printableValue(handled))) }),
  };
  const source = {
    instruments,
    protocols,
    engine,
    fetch,
    dns: options.advanced?.dns,
    now,
    allowLoopback,
    raiseAlarm,
    logger,
    thresholds,
    limits: { maxBytes: config.maxKeyDocumentBytes },
    store: options.store,
  };
  const keys = keysOnDemand(source);
  const checked = { config, options, keys, raiseAlarm, outages, isStopped: lifecycle.stopping };
  const context: ReceiverContext = {
    config,
    protocols,
    ...handedIn(options),
    keys,
    waiting: createWaiting(options.store),
    running: createRunning({ store: options.store, config, logger, newId }),
    startup: createStartup({ ...checked, load: () => makeReady(context, engine) }),
    lifecycle,
    wakeSignal,
    logger,
    raiseAlarm,
    refusals: createThinning(),
    handlerErrors: createThinning(),
    instruments,
    observed: {},
    onOutcome: harmless(options.onOutcome),
    onRefused: options.onRefused && harmless(options.onRefused),
    refusedBodyBytes: options.onRefused?.maxBodyBytes ?? 0,
    outages,
    notes: { senders: new Map(), worker: { state: 'off' } },
    now,
    newId,
    random: () => Math.random(),
    closed: lifecycle.closed,
  };
  return context;
}

/** A receiver as this package makes it. */
export interface WithContext {
  readonly [CONTEXT]: ReceiverContext;
}
