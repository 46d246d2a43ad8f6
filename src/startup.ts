import type { RaiseAlarm } from './alarms.ts';
import type { Config } from './config/resolve.ts';
import { ConfigError, Fault } from './errors.ts';
import type { KeyResolver } from './keys/contract.ts';
import type { ReceiverOptions } from './options.ts';
import type { Durability, Store } from './stores/contract.ts';

const STRENGTH: Readonly<Record<Durability, number>> = { process: 0, disk: 1, failover: 2 };

/** What the store's settings keep, or what its owner declared where they cannot be read. */
async function checkDurability(store: Store, options: ReceiverOptions): Promise<void> {
  const required = options.requireDurability ?? 'disk';
  const read = await store.durability();
  const actual = read === 'unknown' ? options.declaredDurability : read;
  if (actual !== undefined && STRENGTH[actual] >= STRENGTH[required]) return;
  const found =
    actual === undefined
      ? 'its settings cannot be read (declaredDurability: … if you know them)'
      : `'${actual}'`;
  throw new ConfigError(
    `store: an answered event must survive as requireDurability: '${required}' says, but the ${store.name} store keeps ${found}. Use a stronger store or setting, or lower requireDurability.${store.durabilityAdvice ? ` ${store.durabilityAdvice}` : ''}`,
  );
}

export interface Startup {
  /** Checks again, whatever the last check gave. */
  readonly check: () => Promise<void>;
  /** Resolves when a check has succeeded; else checks. @throws what `check` throws. */
  readonly passed: () => Promise<void>;
  /** The same for deliveries. @throws Fault `misconfigured` or `store_unavailable`. */
  readonly ready: () => Promise<void>;
}

export interface StartupParts {
  readonly config: Config;
  readonly options: ReceiverOptions;
  readonly keys: KeyResolver;
  readonly raiseAlarm: RaiseAlarm;
}

/** Store, schema, settings and keys: once, before the first delivery; again after a failure, one at a time. */
export function createStartup({ config, options, keys, raiseAlarm }: StartupParts): Startup {
  let passed = false;
  let running: Promise<void> | undefined;

  async function checkAll(): Promise<void> {
    await options.store.open();
    await checkDurability(options.store, options);
    await keys.warm(config.senders.fixed ?? []);
    passed = true;
  }

  const check = (): Promise<void> => {
    running ??= checkAll().finally(() => {
      running = undefined;
    });
    return running;
  };

  const untilPassed = async (): Promise<void> => {
    if (!passed) await check();
  };

  async function ready(): Promise<void> {
    if (passed) return;
    try {
      await check();
    } catch (error) {
      if (error instanceof Fault) throw error;
      const message = error instanceof Error ? error.message : String(error);
      raiseAlarm({ code: 'misconfigured', message });
      throw new Fault('misconfigured', message, { cause: error });
    }
  }

  return { check, passed: untilPassed, ready };
}
