import { ConfigError, Fault } from '../../errors.ts';
import type { Connection } from './client.ts';
import { withTimeout } from './send.ts';
import { checkKept } from './settings.ts';

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

const LOOK_AGAIN_MS = 10_000;

export interface WatchOptions {
  readonly timeoutMs: number;
  /** Whether what was answered was on disk when the store was opened. */
  readonly onDisk: boolean;
}

export function watchOf(connection: Connection, { timeoutMs, onDisk }: WatchOptions): Watch {
  let lookedAt = performance.now();
  let looking: Promise<void> | undefined;
  const due = (): void => {
    lookedAt = -Infinity;
  };
  connection.on('ready', due);
  // Cluster: a node that was not there before.
  connection.on('+node', due);
  const look = async (): Promise<void> => {
    const since = performance.now();
    // Not due while this one is under way.
    lookedAt = Infinity;
    try {
      await checkKept(connection, { onDisk, timeoutMs });
      // Unless a new connection came meanwhile.
      if (lookedAt === Infinity) lookedAt = since;
    } catch (error) {
      due();
      throw error instanceof ConfigError ? new Fault('not_durable', error.message, { cause: error }) : error;
    }
  };
  return {
    passed: (deadline) => {
      if (performance.now() - lookedAt >= LOOK_AGAIN_MS) {
        looking ??= look().finally(() => {
          looking = undefined;
        });
      }
      return looking && withTimeout(looking, Math.max(0, deadline - performance.now()));
    },
  };
}
