// Options of `createRegistrations`, and the parts that differ between runtimes: hashes, randomness, clock, sleep.
import type { Hashes } from '../crypto/engine.ts';
import type { Alarm, Logger } from '../shared/alarms.ts';
import { ConfigError, textOf } from '../shared/errors.ts';
import type { Store, StoreRegistrations } from '../stores/store.ts';
import type { CallSeller } from './call-seller.ts';
import type { RandomBytes } from './secrets.ts';

/** Options of `createRegistrations`: the store, the base URL, the secrets, and the client that calls sellers. */
export interface RegistrationsOptions {
  readonly store: Store;
  /**
   * Calls operations of sellers: `mcpCaller`, `a2aCaller`, or your own client. `registration.call`, `start` and a
   * poller of these registrations use it. Absent: you make each call yourself, and pass its answer to `settle`.
   */
  readonly call?: CallSeller | undefined;
  /**
   * The URL below which sellers get their URLs, e.g. `https://buyer.example/webhooks`. It may be a list of at most 8:
   * sellers are given URLs below the first, and URLs below the others are still served.
   */
  readonly baseUrl: string | readonly string[];
  /**
   * The secrets, newest first, each at least 32 random characters. An undefined secret, e.g. of an unset environment
   * variable, is a ConfigError.
   */
  readonly secrets: readonly (string | undefined)[];
  /** If true, allows http URLs, for development. Default: false. */
  readonly allowLoopback?: boolean | undefined;
  /** The time limit of a call, ms. After it another process repeats the call. Default: 120 000. */
  readonly callMs?: number | undefined;
  /** The time for which `ready()` keeps trying while the store is unreachable, ms; 0: one try. Default: 30 000. */
  readonly startMs?: number | undefined;
  /**
   * The time for which an operation is kept after its end, and after each report on its media buy, ms. Default: 70
   * days, which is longer than two months.
   */
  readonly retentionMs?: number | undefined;
  /**
   * The largest number of one seller's operations that have not ended. If the limit is reached, `create` rejects with
   * `too_many_open`. Operations are not counted on each call: each process may exceed the limit by 100. Default:
   * 10 000.
   */
  readonly maxOpen?: number | undefined;
  /** The age at which HMAC and bearer credentials are due to be renewed, ms. Default: 30 days. */
  readonly renewAfterMs?: number | undefined;
  /**
   * `auto`: `start` renews credentials that are due. `manual`: `apply` renews them, with a plan that has `renew: true`.
   * Former credentials are accepted until no delivery has come to their URLs for some time. Then `start` retires them.
   * Default: `manual`.
   */
  readonly renew?: 'auto' | 'manual' | undefined;
  /** The logger. Default: the receiver's; without a receiver warnings and errors go to the console. */
  readonly logger?: Logger | undefined;
  /**
   * Called with each alarm about registered calls, subscriptions and URLs, e.g. `answer_refused` or
   * `operation_orphaned`. Default: the receiver's `onAlarm`.
   */
  readonly onAlarm?: ((alarm: Alarm) => void) | undefined;
}

export const REGISTRATIONS_OPTIONS: Readonly<Record<keyof RegistrationsOptions, true>> = {
  store: true,
  call: true,
  baseUrl: true,
  secrets: true,
  allowLoopback: true,
  callMs: true,
  startMs: true,
  retentionMs: true,
  maxOpen: true,
  renewAfterMs: true,
  renew: true,
  logger: true,
  onAlarm: true,
};

/** The parts that differ between runtimes. */
export interface RegistrationsParts {
  readonly hashes: Hashes;
  readonly randomBytes: RandomBytes;
  readonly newId: () => string;
  readonly now: () => number;
  /** Waits for `ms`, or less if the signal aborts. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
}

/** Returns the part of a store that keeps registrations. @throws ConfigError if the store has none. */
export function registrationsIn(store: Store): StoreRegistrations {
  if (store?.registrations) return store.registrations;
  const which =
    typeof store?.name === 'string'
      ? `the ${store.name} store has no registrations`
      : `store: ${textOf(store)} is not a store`;
  throw new ConfigError(`createRegistrations: ${which}. Use a store of this package.`);
}
