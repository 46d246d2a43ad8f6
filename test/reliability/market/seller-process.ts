import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Child, launch } from '../processes/child.ts';
import type { AgentPolicy, SellerLine, SellerOptions, SellerReady } from './wire.ts';

const PROCESS = fileURLToPath(new URL('fixtures/seller.ts', import.meta.url));

/** A seller's process. */
export interface SellerServer<L> {
  readonly origin: string;
  /** kill -9; it comes back at the same port with what its log says. Resolves when the next one serves. */
  readonly kill: () => Promise<void>;
  /** All that it has written down. */
  readonly log: () => readonly L[];
  readonly destroy: () => void;
}

/** The seller of a market, with its agents. */
export interface SellerProcess extends SellerServer<SellerLine> {
  readonly urlOf: (agent: AgentPolicy) => string;
  /** Webhooks, and steps of tasks, that are still to come. */
  readonly outstanding: () => Promise<number>;
}

export interface SellerProcessOptions extends Omit<SellerOptions, 'port'> {
  /** In which processes keep what they have compiled. */
  readonly cache: string;
  readonly signal: AbortSignal;
}

/** @param file of the process. @param told what it is told beside its port: the folder of its log, and more. */
export async function startServer<L>(
  file: string,
  told: { readonly folder: string },
  cache: string,
): Promise<SellerServer<L>> {
  const { folder } = told;
  mkdirSync(folder, { recursive: true });
  let child: Child<SellerReady>;
  const start = async (port: number): Promise<number> => {
    child = launch<SellerReady>('the seller', file, { ...told, port }, cache);
    return (await child.ready).port;
  };
  const port = await start(0);
  const destroy = (): void => void child.process.kill('SIGKILL');
  process.once('exit', destroy);
  return {
    origin: `http://127.0.0.1:${port}`,
    kill: async () => {
      child.process.kill('SIGKILL');
      await child.gone;
      await start(port);
    },
    log: () =>
      readFileSync(join(folder, 'log'), 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as L),
    destroy: () => {
      destroy();
      process.off('exit', destroy);
    },
  };
}

export async function startSeller({ cache, signal, ...told }: SellerProcessOptions): Promise<SellerProcess> {
  const server = await startServer<SellerLine>(PROCESS, told, cache);
  const { origin } = server;
  return {
    ...server,
    urlOf: ({ name, transport }) => `${origin}/${name}/${transport === 'tool' ? 'mcp' : 'a2a'}`,
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
  };
}
