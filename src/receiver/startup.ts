// Checks the store (schema, durability, identity) and the keys before the first delivery, and loads the code that
// deliveries need (admission.md §2.13, §7).
// Called by `ready()`, `start()`, the first delivery, the worker and health checks.

import { singleFlight } from '../shared/single-flight.ts';
import { settledWithin } from '../shared/time-limits.ts';
import type { RaiseAlarm } from '../shared/alarms.ts';
import type { Config } from '../config/resolve-options.ts';
import { ConfigError, Fault, isOfKind, messageOf } from '../shared/errors.ts';
import type { KeyResolver } from '../keys/key-resolver.ts';
import type { ReceiverOptions } from '../config/receiver-options.ts';
import type { Outages } from './outages.ts';
import type { StoreHold } from './store-holders.ts';
import type { Store, StoreIdentity } from '../stores/store.ts';
import { isLess } from '../stores/durability.ts';
import { toldIdentity } from '../stores/identity.ts';

/**
 * Checks that the store's settings are durable enough. If they cannot be read, the option `durability.declared` is
 * used.
 * @param lowered called if durability is later reduced, but is still sufficient.
 */
async function checkDurability(
  store: Store,
  { required, declared }: Config['durability'],
  lowered: (message: string) => void,
): Promise<void> {
  const read = await store.durability();
  const actual = read === 'unknown' ? declared : read;
  if (actual !== undefined && !isLess(actual, required)) {
    store.keepDurability?.(required, lowered);
    return;
  }
  const found =
    actual === undefined
      ? 'its settings cannot be read (durability: { declared: … } if you know them)'
      : `'${actual}'`;
  throw new ConfigError(
    `store: an answered event must survive as durability: { require: '${required}' } says, but the ${store.name} store keeps ${found}. Use a stronger store or setting, or lower durability.require.${store.durabilityAdvice ? ` ${store.durabilityAdvice}` : ''}`,
  );
}

/**
 * Checks the identity of the store and returns its id.
 * @throws ConfigError if the store is not the one that `expectStoreId` names.
 */
async function checkIdentity(options: ReceiverOptions, raiseAlarm: RaiseAlarm): Promise<string | undefined> {
  const id = await toldIdentity(options.store, raiseAlarm);
  if (id !== undefined) requireExpected(options, id);
  return id;
}

/**
 * Compares the store's id with the option `expectStoreId`.
 * @throws ConfigError if the ids differ.
 */
function requireExpected({ store, expectStoreId }: ReceiverOptions, id: string): void {
  if (expectStoreId === undefined || expectStoreId === id) return;
  throw new ConfigError(
    `expectStoreId: the ${store.name} store is ${id}, and ${expectStoreId} is expected. Connect the expected one (check its volume and database), or set expectStoreId: '${id}' if this one replaces it.`,
  );
}

const noop = (): void => undefined;

/**
 * The startup check of a receiver or a verifier, and its result.
 * @typeParam T The parts with which a receiver or a verifier works once it has started.
 */
export interface Startup<T> {
  /** Performs the startup check, even if an earlier check has succeeded. */
  readonly check: () => Promise<T>;
  /**
   * Resolves when a check has succeeded. Performs one if none has.
   * @throws the errors of `check`.
   */
  readonly passed: () => Promise<T>;
  /**
   * Works like `passed`, but for deliveries: after a successful check it returns no promise, which would delay a
   * delivery.
   * @throws Fault (rejects) `misconfigured` or `store_unavailable`.
   */
  readonly ready: () => T | Promise<T>;
  readonly hasPassed: () => boolean;
  /**
   * Forgets that a check has passed, because the receiver stops. Resolves when no check is in progress, after
   * `graceMs` at the latest.
   */
  readonly reset: (graceMs: number) => Promise<void>;
}

/** The startup check of a receiver, which has a store. */
export interface StoreStartup<T> extends Startup<T> {
  /** Returns the id of the store that the last successful check found. */
  readonly storeId: () => string | undefined;
}

interface CheckParts {
  readonly raiseAlarm: RaiseAlarm;
  /** True while the receiver is stopped. Then a check fails, so that it does not open the closed store again. */
  readonly isStopped: () => boolean;
}

interface LoadParts<T> extends CheckParts {
  readonly config: Pick<Config, 'senders' | 'durability'>;
  readonly keys: Pick<KeyResolver, 'warm'>;
  /** Loads the code that deliveries need. */
  readonly load: () => Promise<T>;
}

export interface StartupParts<T> extends LoadParts<T> {
  readonly options: ReceiverOptions;
  readonly outages: Outages;
  readonly storeHold: Pick<StoreHold, 'take' | 'drop'>;
}

async function loadAndWarm<T>({ config, keys, load }: LoadParts<T>): Promise<T> {
  const [loaded] = await Promise.all([load(), keys.warm(config.senders.fixed ?? [])]);
  return loaded;
}

/**
 * The startup of a verifier, which has no store: loads keys and code. Runs before the first delivery, and again
 * after a failure; only one run is in progress at a time.
 */
export const startupWithout = <T>(context: LoadParts<T>): Startup<T> =>
  startupBy(() => loadAndWarm(context), context, 'the verifier was stopped. Call start().');

/**
 * Makes a `Startup` from a check.
 * @param checkAll performs the whole check. Later checks run it again, but keep the parts that the first success
 * returned.
 * @param stopped the error message for a call while the receiver or verifier is stopped.
 */
function startupBy<T>(
  checkAll: () => Promise<T>,
  { raiseAlarm, isStopped }: CheckParts,
  stopped: string,
): Startup<T> {
  let loaded: T | undefined;
  /** The loaded parts, once a check has succeeded since the last `reset`. */
  let usable: T | undefined;
  let runs = 0;
  const running = new Map<'check', Promise<T>>();

  async function checkThisRun(): Promise<T> {
    if (isStopped()) throw new Fault('shutting_down', stopped);
    const run = runs;
    const first = await checkAll();
    loaded ??= first;
    if (run === runs) usable = loaded;
    return loaded;
  }

  const check = (): Promise<T> => singleFlight(running, 'check', checkThisRun);

  async function checkForDelivery(): Promise<T> {
    try {
      return await check();
    } catch (error) {
      if (error instanceof Fault) throw error;
      const message = messageOf(error);
      raiseAlarm({ code: 'misconfigured', message });
      throw new Fault('misconfigured', message, { cause: error });
    }
  }

  async function reset(graceMs: number): Promise<void> {
    runs += 1;
    usable = undefined;
    const last = running.get('check');
    if (last) await settledWithin(last.then(noop, noop), graceMs);
  }

  return {
    check,
    passed: async () => usable ?? (await check()),
    hasPassed: () => usable !== undefined,
    reset,
    ready: () => usable ?? checkForDelivery(),
  };
}

const STOPPED = 'the receiver was stopped. Call start(): it opens the store again and accepts deliveries.';

/**
 * The startup of a receiver: checks store, schema, settings and keys. Runs before the first delivery, and again
 * after a failure; only one run is in progress at a time.
 */
export function createStartup<T>(context: StartupParts<T>): StoreStartup<T> {
  const { options, raiseAlarm, outages, storeHold } = context;
  let storeId: string | undefined;

  const lowered = (message: string): void => raiseAlarm({ code: 'durability_lowered', message });

  const identityChanged = ({ id }: StoreIdentity): void => {
    requireExpected(options, id);
    const message = `the ${options.store.name} store was emptied or replaced: its identity was ${storeId} and is now ${id}. Events that were finished before may be handled again`;
    raiseAlarm({ code: 'store_created', message, storeId: id });
    storeId = id;
  };

  async function checkAll(): Promise<T> {
    await options.store.open();
    options.store.watchIdentity?.(identityChanged);
    await checkDurability(options.store, context.config.durability, lowered);
    storeId = await checkIdentity(options, raiseAlarm);
    const loaded = await loadAndWarm(context);
    // Only the first successful check reports here that the store works. Later, only calls of `Store.accept` report it,
    // because a check writes nothing.
    if (!startup.hasPassed()) outages.store();
    return loaded;
  }

  async function checkNoted(): Promise<T> {
    storeHold.take();
    try {
      return await checkAll();
    } catch (error) {
      if (!startup.hasPassed()) storeHold.drop();
      if (isOfKind(error, Fault) && error.code === 'store_unavailable') outages.store(error.message);
      throw error;
    }
  }

  const startup = startupBy(checkNoted, context, STOPPED);
  return { ...startup, storeId: () => storeId };
}
