// Looks again at the settings of Redis servers while the store is used (admission.md §7.3).
// Called by redis-session.ts, and by redis-schema.ts for version and identity (`watchBy`).
import { ConfigError, Fault } from '../../shared/errors.ts';
import { type LookAgain, lookAgain } from '../schema-version.ts';
import type { RedisConnection } from './redis-client.ts';
import { withTimeout } from './send-script.ts';
import { checkKept } from './redis-settings.ts';

/**
 * Looks at the servers' settings again. A server that restarts forgets the values of `CONFIG SET`, and a failover may
 * lead to one with other settings. Its answers would then not be as durable as when the store was opened.
 */
export interface Watch {
  /**
   * Looks with each new connection and, while it is used, every 10 s. Once something is wrong, it looks with each call
   * until it is mended. Otherwise undefined: there is nothing to wait for.
   *
   * @throws Fault `not_durable`, with the setting to change; `store_unavailable` at `deadline` (`performance.now()`).
   */
  readonly passed: (deadline: number) => Promise<void> | undefined;
}

export interface WatchOptions {
  readonly timeoutMs: number;
  /** True if answers were on disk when the store was opened. */
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
  // Cluster: a node that was not there before.
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
