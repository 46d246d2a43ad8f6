// Checks the settings of Redis servers again while the store is used (admission.md §7.3).
// Called by redis-session.ts, and by redis-schema.ts for version and identity (`watchBy`).
import { ConfigError, Fault } from '../../shared/errors.ts';
import { type LookAgain, lookAgain } from '../schema-version.ts';
import type { RedisConnection } from './redis-client.ts';
import { withTimeout } from './send-script.ts';
import { checkKept } from './redis-settings.ts';

/**
 * Checks the servers' settings again. A server that restarts forgets the values of `CONFIG SET`, and after a failover
 * the new primary may have other settings. Answers would then be less durable than when the store was opened.
 */
export interface Watch {
  /**
   * Checks after each new connection, and every 10 s while the store is used. After a failed check every call checks
   * again, until a check succeeds. Returns undefined if no check is due.
   *
   * @throws Fault `not_durable`, with the setting to change; `store_unavailable` if a check has not ended at `deadline`
   *   (`performance.now()`).
   */
  readonly passed: (deadline: number) => Promise<void> | undefined;
}

export interface WatchOptions {
  readonly timeoutMs: number;
  /** True if writes were on disk before their answer when the store was opened. */
  readonly onDisk: boolean;
}

export function watchOf(connection: RedisConnection, { timeoutMs, onDisk }: WatchOptions): Watch {
  const again = lookAgain(
    async () => {
      try {
        await checkKept(connection, { onDisk, timeoutMs });
      } catch (error) {
        throw error instanceof ConfigError
          ? new Fault('not_durable', error.message, { cause: error })
          : error;
      }
    },
    () => performance.now(),
  );
  connection.on('ready', again.due);
  // The client emits `+node` when a Cluster has a new node, whose settings were not checked yet.
  connection.on('+node', again.due);
  return watchBy(again);
}

export function watchBy({ passed }: LookAgain): Watch {
  return {
    passed: (deadline) => {
      const looking = passed();
      return looking && withTimeout(looking, Math.max(0, deadline - performance.now()));
    },
  };
}
