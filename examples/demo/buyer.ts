// Starts, watches and kills the receiver's process.
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const RECEIVER = fileURLToPath(new URL('receiver.ts', import.meta.url));

interface Told {
  readonly ready?: boolean;
  readonly saw?: string;
  readonly pong?: boolean;
}

export interface Buyer {
  /** What handlers said since the last call. */
  readonly takeSeen: () => Promise<string[]>;
  /** Resolves when a handler next says something. */
  readonly nextSeen: () => Promise<void>;
  readonly start: () => Promise<void>;
  /** kill -9: nothing in the process can tidy up. */
  readonly kill: () => Promise<void>;
}

export function createBuyer(env: Readonly<Record<string, string>>): Buyer {
  let child: ChildProcess | undefined;
  let seen: string[] = [];
  let listeners: (() => void)[] = [];

  async function start(): Promise<void> {
    const started = fork(RECEIVER, { env: { ...process.env, ...env } });
    child = started;
    const ready = new Promise<void>((resolve, reject) => {
      started.once('exit', () => reject(new Error('the receiver ended before it was ready')));
      started.on('message', ({ ready: isReady, saw }: Told) => {
        if (isReady) resolve();
        if (saw === undefined) return;
        seen.push(saw);
        for (const listener of listeners.splice(0)) listener();
      });
    });
    await ready;
    started.removeAllListeners('exit');
  }

  return {
    async takeSeen() {
      // An answer over HTTP may overtake what the handler said over this channel; a pong cannot.
      const pong = new Promise<void>((resolve) => {
        child?.on('message', function listen({ pong }: Told) {
          if (!pong) return;
          child?.off('message', listen);
          resolve();
        });
      });
      child?.send({ ping: true });
      await pong;
      const taken = seen;
      seen = [];
      return taken;
    },
    nextSeen: () =>
      new Promise((resolve) => {
        listeners = [...listeners, resolve];
      }),
    start,
    async kill() {
      const killed = child;
      if (!killed || killed.exitCode !== null || killed.signalCode !== null) return;
      const exited = once(killed, 'exit');
      killed.kill('SIGKILL');
      await exited;
    },
  };
}
