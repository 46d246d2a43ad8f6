import type { Logger, RaiseAlarm } from './alarms.ts';
import type { AuthContext } from './auth/contract.ts';
import { resolveOptions, type Config } from './config/resolve.ts';
import { createEngine, createHashes } from './crypto/index.ts';
import type { CryptoEngine, Hashes } from './crypto/engine.ts';
import { createBell, type Bell } from './inbox/bell.ts';
import type { KeyResolver } from './keys/contract.ts';
import { withPressureGauge } from './keys/admission-pressure.ts';
import { createKeyResolver } from './keys/resolver.ts';
import { defaultTransport } from './keys/safe-fetch.ts';
import { alarmRaiser, consoleLogger, harmless, harmlessLogger } from './logging.ts';
import type { ResultSchemas } from './events/event.ts';
import type { Handlers, ReceiverOptions } from './options.ts';
import type { Outcome } from './outcome.ts';
import type { Protocol } from './protocol.ts';
import { createWaiting, type Waiting } from './stages/wait.ts';
import { createStartup, type Startup } from './startup.ts';
import type { Store } from './stores/contract.ts';

/** Everything a receiver is made of, made once from its options. */
export interface Parts {
  readonly config: Config;
  readonly protocol: Protocol;
  readonly handlers: Handlers;
  readonly resultSchemas: ResultSchemas | undefined;
  readonly store: Store;
  readonly keys: KeyResolver;
  readonly hashes: Hashes;
  readonly waiting: Waiting;
  readonly startup: Startup;
  /** Rings when there is work for a worker of this process. */
  readonly bell: Bell;
  readonly queued: () => void;
  readonly logger: Logger;
  readonly raiseAlarm: RaiseAlarm;
  readonly onOutcome: (outcome: Outcome) => void;
  readonly authContext: () => Promise<AuthContext>;
  /** Unix ms. */
  readonly now: () => number;
  readonly newId: () => string;
  readonly random: () => number;
  /** Aborts when the receiver has stopped. */
  readonly closed: AbortSignal;
  readonly close: () => void;
}

/** A promise made at first use and kept. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => (made ??= make());
}

/** What `authenticate` needs; the engine is chosen at first use. */
function authParts(
  parts: Omit<AuthContext, 'engine'>,
  engine: () => Promise<CryptoEngine>,
): () => Promise<AuthContext> {
  return once(async () => ({ ...parts, engine: await engine() }));
}

/** Every handler that runs listens to it, and above ten of them Node 20 would warn of a leak. No other runtime minds. */
function heardByMany(signal: AbortSignal): void {
  if (globalThis.process?.versions?.node?.startsWith('20.')) {
    globalThis.process.getBuiltinModule?.('node:events').setMaxListeners(0, signal);
  }
}

/**
 * @param engineName the crypto engine to use, where the fastest of the runtime is not wanted: for tests.
 * @throws ConfigError where the options are wrong.
 */
export function createParts(options: ReceiverOptions, engineName?: CryptoEngine['name']): Parts {
  const config = resolveOptions(options);
  const logger = harmlessLogger(options.logger ?? consoleLogger());
  const { protocol, allowLoopback, hostCheck } = config;
  const now = options.now ?? Date.now;
  const raiseAlarm = alarmRaiser(logger, options.onAlarm, now);
  const hashes = createHashes();
  const bell = createBell();
  const engine = once(() => createEngine(engineName));
  const transport = options.transport ?? defaultTransport(allowLoopback);
  const keys = withPressureGauge(
    createKeyResolver({ protocol, engine, transport, now, allowLoopback, raiseAlarm, logger }),
    { thresholds: config.admissionPressure, now, raiseAlarm },
  );
  const closing = new AbortController();
  heardByMany(closing.signal);
  return {
    config,
    protocol,
    handlers: options.handlers,
    resultSchemas: options.resultSchemas,
    store: options.store,
    keys,
    hashes,
    waiting: createWaiting(options.store),
    startup: createStartup({ config, options, keys, raiseAlarm }),
    bell,
    queued: bell.ring,
    logger,
    raiseAlarm,
    onOutcome: harmless(options.onOutcome),
    authContext: authParts({ protocol, hashes, keys, hostCheck, raiseAlarm }, engine),
    now,
    newId: () => globalThis.crypto.randomUUID(),
    random: () => Math.random(),
    closed: closing.signal,
    close: () => closing.abort(),
  };
}
