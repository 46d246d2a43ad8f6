import { singleFlight } from '../shared/single-flight.ts';
import { settledWithin } from '../shared/time-limits.ts';
import type { RaiseAlarm } from '../shared/alarms.ts';
import type { Config } from '../config/resolve-options.ts';
import { ConfigError, Fault, isOfKind, messageOf } from '../shared/errors.ts';
import type { KeyResolver } from '../keys/key-resolver.ts';
import type { ReceiverOptions } from '../config/receiver-options.ts';
import type { Outages } from './outages.ts';
import type { Store, StoreIdentity } from '../stores/store.ts';
import { isLess } from '../stores/durability.ts';
import { toldIdentity } from '../stores/identity.ts';

/**
 * What the store's settings keep, or what its owner declared where they cannot be read.
 * @param lowered told where it is less later on, and still enough.
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

/** @throws ConfigError where it is another store than `expectStoreId` says. */
async function checkIdentity(options: ReceiverOptions, raiseAlarm: RaiseAlarm): Promise<string | undefined> {
  const id = await toldIdentity(options.store, raiseAlarm);
  if (id !== undefined) requireExpected(options, id);
  return id;
}

/** @throws ConfigError */
function requireExpected({ store, expectStoreId }: ReceiverOptions, id: string): void {
  if (expectStoreId === undefined || expectStoreId === id) return;
  throw new ConfigError(
    `expectStoreId: the ${store.name} store is ${id}, and ${expectStoreId} is expected. Connect the one that is expected (is its volume mounted, is it the right database?), or set expectStoreId: '${id}' where this one is to take its place.`,
  );
}

const STOPPED = 'the receiver was stopped. Call start(): it opens the store again, and deliveries are taken.';

const noop = (): void => undefined;

/** @typeParam T What a receiver works with once it has started. */
export interface Startup<T> {
  /** Checks again, whatever the last check gave. */
  readonly check: () => Promise<T>;
  /** Resolves when a check has succeeded; else checks. @throws what `check` throws. */
  readonly passed: () => Promise<T>;
  /** The same for deliveries. @throws Fault `misconfigured` or `store_unavailable`. */
  readonly ready: () => Promise<T>;
  readonly hasPassed: () => boolean;
  /** The store is closed: what has passed counts no more. Resolves when no check is under way, at most after `graceMs`. */
  readonly reset: (graceMs: number) => Promise<void>;
  /** Which store the last check that succeeded found. */
  readonly storeId: () => string | undefined;
}

export interface StartupParts<T> {
  readonly config: Config;
  readonly options: ReceiverOptions;
  readonly keys: KeyResolver;
  readonly raiseAlarm: RaiseAlarm;
  readonly outages: Outages;
  /** Then nothing is checked: a store that was closed stays so until the receiver starts. */
  readonly isStopped: () => boolean;
  /** Loads what no receiver needs before its first delivery. */
  readonly load: () => Promise<T>;
}

/** Store, schema, settings and keys: before the first delivery; again after a failure, one at a time. */
export function createStartup<T>(context: StartupParts<T>): Startup<T> {
  const { config, options, keys, raiseAlarm, outages, isStopped, load } = context;
  let loaded: T | undefined;
  /** `loaded`, where a check of this run has succeeded. */
  let usable: T | undefined;
  let runs = 0;
  const running = new Map<'check', Promise<T>>();
  let storeId: string | undefined;

  const lowered = (message: string): void => raiseAlarm({ code: 'durability_lowered', message });

  const identityChanged = ({ id }: StoreIdentity): void => {
    requireExpected(options, id);
    const message = `the ${options.store.name} store was emptied, or another one is in its place: its identity was ${storeId} and is ${id}. What was finished before it may be handled again`;
    raiseAlarm({ code: 'store_created', message, storeId: id });
    storeId = id;
  };

  async function checkAll(): Promise<T> {
    if (isStopped()) throw new Fault('shutting_down', STOPPED);
    const run = runs;
    await options.store.open();
    options.store.watchIdentity?.(identityChanged);
    await checkDurability(options.store, config.durability, lowered);
    storeId = await checkIdentity(options, raiseAlarm);
    const [first] = await Promise.all([load(), keys.warm(config.senders.fixed ?? [])]);
    // Later on its accepts say so: a check writes nothing.
    if (!usable) outages.store();
    loaded ??= first;
    if (run === runs) usable = loaded;
    return loaded;
  }

  async function checkNoted(): Promise<T> {
    try {
      return await checkAll();
    } catch (error) {
      if (isOfKind(error, Fault) && error.code === 'store_unavailable') outages.store(error.message);
      throw error;
    }
  }

  const check = (): Promise<T> => singleFlight(running, 'check', checkNoted);

  const passed = async (): Promise<T> => usable ?? (await check());

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

  const hasPassed = (): boolean => usable !== undefined;

  async function reset(graceMs: number): Promise<void> {
    runs += 1;
    usable = undefined;
    const last = running.get('check');
    if (last) await settledWithin(last.then(noop, noop), graceMs);
  }

  return {
    check,
    passed,
    hasPassed,
    reset,
    ready: async () => usable ?? checkForDelivery(),
    storeId: () => storeId,
  };
}
