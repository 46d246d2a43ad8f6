import type { UnavailableCode } from './outcome.ts';

/** A fault, as `outcome.code` and `outcome.detail` have it. For your own eyes: the text may name hosts. */
export interface HealthFault {
  readonly code: UnavailableCode;
  readonly message: string;
  /** Unix ms, the receiver's clock. */
  readonly at: number;
}

/** The store, asked now: one read of one record, or the check of `ready()` where none has succeeded yet. */
export interface StoreHealth {
  readonly ok: boolean;
  /** When it was asked: at most once a second, however often `health` is called. Unix ms. */
  readonly checkedAt: number;
  /** Why it is not ok. `misconfigured`: waiting does not help, the message names the fix. */
  readonly fault?: HealthFault;
  /** The last delivery that was answered 503 for the store's sake; gone with the next one that the store took. */
  readonly deliveryFault?: HealthFault;
}

/** The worker of this process. */
export interface WorkerHealth {
  /**
   * - `off`: `start()` was not called, or the mode is `inline`.
   * - `starting`: the store has not answered it yet.
   * - `running`: its last call of the store was answered.
   * - `failing`: its last call failed; it tries again, at least every 30 s.
   * - `stopped`: by `stop()`.
   */
  readonly state: 'off' | 'starting' | 'running' | 'failing' | 'stopped';
  /** When it last asked the store for events and was answered. Unix ms. */
  readonly lastLookedAt?: number;
  /** Its last call's, until one is answered. */
  readonly error?: string;
  /** Handlers under way in this process, those of mode `inline` too. */
  readonly handlers: number;
}

/** What this process saw of a seller. Instants are Unix ms, the receiver's clock; absent: not since it began. */
export interface SenderHealth {
  readonly agentUrl: string;
  /** Last answered 2xx. */
  readonly lastAcceptedAt?: number;
  /** Last answered anything else: proved to be of this seller, or under a key id of its set. */
  readonly lastRefusedAt?: number;
  /** Why, as `outcome.code`. */
  readonly lastCode?: string;
  /** The end of its key set's lifetime, as fetched here. Past: it could not be fetched again, or nothing needed it since. */
  readonly keysFreshUntil?: number;
}

/** How a receiver and its process are: what `receiver.health()` resolves with. */
export interface Health {
  /** False once `stop()` is over: such a process never takes anything again. No fault of a store, seller or worker changes it. */
  readonly live: boolean;
  /** Deliveries are taken: the checks of `ready()` have succeeded, the store answers, and nothing is stopping. */
  readonly ready: boolean;
  readonly store: StoreHealth;
  readonly worker: WorkerHealth;
  /** Sellers of a `senders` list, and those that a function gave and that delivered here; at most 1 000, the latest ones. */
  readonly senders: readonly SenderHealth[];
}
