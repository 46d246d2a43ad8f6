import { Fault } from '../../errors.ts';
import type { Connection } from './client.ts';

/** Calls wait here, not in the client's queue: one that was given up is not sent later. */
export interface Gate {
  /** Resolves when there is a connection; undefined where there is one. @throws Fault `store_unavailable` at `deadline` (`performance.now()`). */
  readonly ready: (deadline: number) => Promise<void> | undefined;
}

export function gateOf(connection: Connection): Gate {
  const waiting = new Set<() => void>();
  connection.on('ready', () => {
    for (const pass of waiting) pass();
  });
  return {
    ready: (deadline) => {
      if (connection.status === 'ready') return undefined;
      // Only a client that gave up for good, as on a name that did not resolve, is at its end; it may begin again.
      if (connection.status === 'end') connection.connect().catch(() => undefined);
      return new Promise((resolve, reject) => {
        const leave = (): void => {
          clearTimeout(timer);
          waiting.delete(pass);
        };
        const pass = (): void => {
          leave();
          resolve();
        };
        const timer = setTimeout(
          () => {
            leave();
            reject(new Fault('store_unavailable', 'Redis: not connected.'));
          },
          Math.max(0, deadline - performance.now()),
        );
        waiting.add(pass);
      });
    },
  };
}
