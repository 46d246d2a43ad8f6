import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
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
  readonly stop: () => Promise<void>;
  readonly destroy: () => void;
}

export interface SellerProcessOptions extends Omit<SellerOptions, 'port'> {
  /** In which processes keep what they have compiled. */
  readonly cache: string;
  readonly signal: AbortSignal;
}

/** Rejects where the process ends before it serves. */
async function serving(child: ChildProcess, said: readonly string[]): Promise<number> {
  const failed = async (): Promise<never> => {
    const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
    throw new Error(`the seller ended by itself, ${code ?? signal}: ${said.join('')}`);
  };
  const ready = async (): Promise<number> => ((await once(child, 'message')) as [SellerReady])[0].port;
  return Promise.race([ready(), failed()]);
}

export async function startSeller(options: SellerProcessOptions): Promise<SellerProcess> {
  const { folder, seed, agents, cache, signal } = options;
  mkdirSync(folder, { recursive: true });
  let child: ChildProcess;
  const launch = async (port: number): Promise<number> => {
    const told = JSON.stringify({ port, folder, seed, agents } satisfies SellerOptions);
    child = fork(PROCESS, [told], {
      env: { ...process.env, NODE_COMPILE_CACHE: cache },
      execArgv: [],
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    const said: string[] = [];
    child.stderr?.on('data', (text: Buffer) => said.push(text.toString()));
    return serving(child, said);
  };
  const port = await launch(0);
  const origin = `http://127.0.0.1:${port}`;
  const destroy = (): void => void child.kill('SIGKILL');
  process.once('exit', destroy);
  return {
    urlOf: ({ name, transport }) => `${origin}/${name}/${transport === 'tool' ? 'mcp' : 'a2a'}`,
    kill: async () => {
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
      await launch(port);
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
    stop: async () => {
      const gone = once(child, 'exit');
      child.send('stop');
      await gone;
    },
    destroy: () => {
      destroy();
      process.off('exit', destroy);
    },
  };
}
