import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Child, launch } from '../processes/child.ts';
import type { AgentPolicy, SellerLine, SellerOptions, SellerReady } from './wire.ts';

const PROCESS = fileURLToPath(new URL('fixtures/seller.ts', import.meta.url));

/** The seller's process; killed, it comes back at the same port with what its log says. */
export interface SellerProcess {
  readonly urlOf: (agent: AgentPolicy) => string;
  /** kill -9. Resolves when the next one serves. */
  readonly kill: () => Promise<void>;
  /** Webhooks, and steps of tasks, that are still to come. */
  readonly outstanding: () => Promise<number>;
  /** All that it has written down. */
  readonly log: () => readonly SellerLine[];
  readonly destroy: () => void;
}

export interface SellerProcessOptions extends Omit<SellerOptions, 'port'> {
  /** In which processes keep what they have compiled. */
  readonly cache: string;
  readonly signal: AbortSignal;
}

export async function startSeller(options: SellerProcessOptions): Promise<SellerProcess> {
  const { folder, seed, agents, cache, signal } = options;
  mkdirSync(folder, { recursive: true });
  let child: Child<SellerReady>;
  const start = async (port: number): Promise<number> => {
    const told = { port, folder, seed, agents } satisfies SellerOptions;
    child = launch<SellerReady>('the seller', PROCESS, told, cache);
    return (await child.ready).port;
  };
  const port = await start(0);
  const origin = `http://127.0.0.1:${port}`;
  const destroy = (): void => void child.process.kill('SIGKILL');
  process.once('exit', destroy);
  return {
    urlOf: ({ name, transport }) => `${origin}/${name}/${transport === 'tool' ? 'mcp' : 'a2a'}`,
    kill: async () => {
      child.process.kill('SIGKILL');
      await child.gone;
      await start(port);
    },
    outstanding: async () => {
      for (;;) {
        signal.throwIfAborted();
        try {
          return (await (await fetch(`${origin}/outstanding`)).json()) as number;
        } catch {
          await sleep(20);
        }
      }
    },
    log: () =>
      readFileSync(join(folder, 'log'), 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as SellerLine),
    destroy: () => {
      destroy();
      process.off('exit', destroy);
    },
  };
}
