import { ConfigError, Fault } from '../../shared/errors.ts';
import { type LookAgain, lookAgain } from '../schema-version.ts';
import type { RedisConnection } from './redis-client.ts';
import { withTimeout } from './send-script.ts';
import { checkKept } from './redis-settings.ts';

/**
 * Looks at the servers' settings again: a server that restarts forgets what `CONFIG SET` gave it, and a failover may
 * lead to one that was set up otherwise. What it would answer then is not kept as it was when the store was opened.
 */
export interface Watch {
  /**
   * Looks with each new connection and, as it is used, every 10 s; once something is wrong, with each call until it is
   * mended. Else undefined: there is nothing to wait for.
   * @throws Fault `not_durable`, with the setting to change; `store_unavailable` at `deadline` (`performance.now()`).
   */
  readonly passed: (deadline: number) => Promise<void> | undefined;
}

export interface WatchOptions {
  readonly timeoutMs: number;
  /** Whether what was answered was on disk when the store was opened. */
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
