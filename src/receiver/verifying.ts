// Makes the parts that a receiver and a verifier share: logs, alarms, keys, crypto engine, lifecycle.
// Code that only deliveries need is loaded by the startup check, so that importing the package is fast.

import { refusedHook } from '../config/refused-hook.ts';
import type { AuthContext } from '../auth/auth-contract.ts';
import { printableValue } from '../codec/printable-value.ts';
import type { ReceiverOptions } from '../config/receiver-options.ts';
import type { Config } from '../config/resolve-options.ts';
import type { VerifierOptions } from '../config/verifier-options.ts';
import type { CryptoEngine, Hashes } from '../crypto/engine.ts';
import { loadHashes } from '../crypto/native-hashes.ts';
import { threadRule } from '../crypto/pool.ts';
import type { EventRegistrations } from '../events/event-registration.ts';
import type { ReadBody } from '../events/reading.ts';
import { keysOnDemand } from '../keys/on-demand.ts';
import { alarmRaiser, consoleLogger, createThinning, harmless, safeLogger } from '../shared/logging.ts';
import type { Outcome } from '../shared/outcome.ts';
import { once } from '../shared/single-flight.ts';
import { createSetUpWatch } from '../stages/misconfiguration.ts';
import type { Store } from '../stores/store.ts';
import type { Instruments } from './instruments.ts';
import { createLifecycle, type Lifecycle } from './lifecycle.ts';
import { createOutages, type Outages } from './outages.ts';
import type { RefusalParts } from './refused.ts';
import type { Startup } from './startup.ts';

/** Parts for verifying and answering deliveries, which a receiver and a verifier both have. */
export interface VerifyingParts extends RefusalParts {
  readonly onChallenge: ReceiverOptions['onChallenge'];
  readonly registrations: EventRegistrations | undefined;
  readonly lifecycle: Lifecycle;
  /** Called when an HTTP request arrives, before its body is read. */
  readonly requestCame: () => void;
  readonly instruments: Instruments;
  readonly onOutcome: (outcome: Outcome) => void;
  readonly outages: Outages;
  /** Agent URLs of senders for which the warning about legacy authentication was already raised. */
  readonly legacySeen: Set<string>;
  readonly newId: () => string;
}

/**
 * The parts that a receiver and a verifier share, and the startup check.
 * @typeParam R The parts that deliveries need, once they are loaded.
 */
export interface VerifyingContext<R> extends VerifyingParts {
  readonly startup: Startup<R>;
}

/** Parts that were loaded before the first delivery. */
export interface Loaded {
  readonly hashes: Hashes;
  readonly readBody: ReadBody;
  /**
   * Returns the parts for authentication. The result is a promise only until the crypto engine is chosen, at first use.
   */
  readonly authContext: () => AuthContext | Promise<AuthContext>;
}

/** Every part that verifying a delivery needs. */
export type ReadyVerifying = VerifyingParts & Loaded;

/** Loads the code of the crypto engines. The startup check calls this too, so that the first delivery does not wait. */
const loadCrypto = (): Promise<typeof import('../crypto/index.ts')> => import('../crypto/index.ts');

type Engine = () => Promise<CryptoEngine>;

/**
 * A random UUID as one flat string. Node builds a UUID as a tree of pieces, which takes ten times the memory for as
 * long as a store keeps it. Reading a character makes it flat.
 */
function newId(): string {
  const id = globalThis.crypto.randomUUID();
  id.charCodeAt(0);
  return id;
}

/** Options that a receiver and a verifier have in common and that are not in `Config`. */
type Options = Pick<ReceiverOptions, 'onHandled' | 'registrations'> & VerifierOptions;

/** The arguments of `createVerifyingParts` other than the options. */
interface Given {
  readonly config: Config;
  /** The store, which provides its clock and stores the thumbprints of keys. A verifier has none. */
  readonly store?: Pick<Store, 'name' | 'clock' | 'registrations'> | undefined;
  /** The crypto engine to use instead of the runtime's fastest; set by conformance vectors. */
  readonly engineName?: CryptoEngine['name'] | undefined;
}

/**
 * Makes the parts that a receiver and a verifier share.
 * @returns the parts, and a function that loads the parts that only deliveries need.
 */
export function createVerifyingParts(
  options: Options,
  { config, store, engineName }: Given,
): { readonly parts: VerifyingParts; readonly load: () => Promise<Loaded> } {
  const logger = safeLogger(options.logger ?? consoleLogger());
  const { protocols, allowLoopback, admissionPressure: thresholds, verification } = config;
  const { fetch, advanced, now = Date.now, onHandled } = options;
  const refused = refusedHook(options.onRefused);
  const raiseAlarm = alarmRaiser(logger, options, now);
  const lifecycle = createLifecycle();
  const { useThreadPool, requestCame } = threadRule(verification, lifecycle.inFlight);
  const unusable = (reason: string): void =>
    raiseAlarm({
      code: 'sodium_unusable',
      message: `sodium-native is installed and not used: ${reason}. OpenSSL verifies. Install sodium-native 5.1, or set PROTO_WEBHOOKS_SODIUM=0`,
    });
  const engine: Engine = once(async () =>
    (await loadCrypto()).receiverEngine(engineName, { useThreadPool, verification, unusable }),
  );
  const instruments: Instruments = {
    ...(onHandled && { handled: harmless((handled) => onHandled(printableValue(handled))) }),
  };
  const keys = keysOnDemand({
    instruments,
    protocols,
    engine,
    fetch,
    dns: advanced?.dns,
    now,
    allowLoopback,
    raiseAlarm,
    logger,
    thresholds,
    limits: { maxBytes: config.maxKeyDocumentBytes },
    store,
  });
  const parts: VerifyingParts = {
    config,
    protocols,
    keys,
    lifecycle,
    requestCame,
    instruments,
    logger,
    raiseAlarm,
    onChallenge: options.onChallenge,
    registrations: options.registrations,
    refusals: createThinning(),
    onOutcome: harmless(options.onOutcome),
    onRefused: refused && harmless(refused.handle),
    refusedBodyBytes: refused?.maxBodyBytes ?? 0,
    outages: createOutages(now, raiseAlarm),
    notes: { senders: new Map(), worker: { state: 'off' } },
    legacySeen: new Set(),
    now,
    newId,
  };
  return { parts, load: () => loadFor(parts, engine, store) };
}

/**
 * Loads hashes, the parser of bodies and the crypto engines. The parser includes the schemas, a fifth of the package's
 * code.
 */
async function loadFor(parts: VerifyingParts, engine: Engine, store: Given['store']): Promise<Loaded> {
  const [hashes, { readBody }, { installedSodium }] = await Promise.all([
    loadHashes(),
    import('../events/reading.ts'),
    loadCrypto(),
  ]);
  const { protocols, keys, raiseAlarm, config, now } = parts;
  const watched = { config, raiseAlarm, now, store: store ?? { name: 'no' } };
  const setUp = createSetUpWatch(watched, () => import('./rare.ts'));
  const context = { protocols, hashes, keys, hostCheck: config.hostCheck, raiseAlarm, setUp };
  let auth: AuthContext | undefined;
  const chosen = async (): Promise<AuthContext> => (auth ??= { ...context, engine: await engine() });
  // If sodium-native is installed, its engine is loaded and tested now, and not with the first delivery.
  if (config.verification !== 'pool' && installedSodium()) await engine();
  return { hashes, readBody, authContext: () => auth ?? chosen() };
}
