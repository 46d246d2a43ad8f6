import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import type { ReceiverOptions, Sender } from '../../src/index.ts';

/** What `fixtures/serve.js` says, a line each. */
export interface Said {
  readonly port?: number;
  readonly started?: string;
  readonly handled?: string;
  readonly stopping?: true;
  readonly stopped?: true;
  readonly peakBytes?: number;
  readonly error?: string;
  readonly unhandled?: string;
}

/** A receiver in a process of its own, ended at the end of the scope. */
export interface Serving extends AsyncDisposable {
  readonly port: number;
  readonly said: readonly Said[];
  readonly tell: (line: 'go' | 'memory') => void;
  /** What it says next under that name, or has said. */
  readonly hears: <K extends keyof Said>(name: K) => Promise<NonNullable<Said[K]>>;
  readonly terminate: () => void;
  /** Its exit code, once it is over. */
  readonly exited: Promise<number | null>;
}

/** The built package can be tried under another Node than the one that runs the tests. */
export const NODE: string = process.env['NODE_UNDER_TEST'] ?? process.execPath;

export const fixture = (name: string): string => fileURLToPath(new URL(`fixtures/${name}`, import.meta.url));

export async function serving(
  framework: string,
  setting: {
    readonly sender: Sender;
    readonly options?: Partial<ReceiverOptions>;
    readonly holdHandlers?: true;
  },
): Promise<Serving> {
  const child = spawn(NODE, [fixture('serve.js'), framework], {
    env: { ...process.env, SERVE: JSON.stringify(setting) },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit').then(([code]) => code as number | null);
  const said: Said[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => said.push(JSON.parse(line) as Said));
  const hears = async <K extends keyof Said>(name: K): Promise<NonNullable<Said[K]>> => {
    const heard = (): Said[K] | undefined => said.find((line) => line[name] !== undefined)?.[name];
    await expect.poll(heard).toBeDefined();
    return heard() as NonNullable<Said[K]>;
  };
  return {
    port: await hears('port'),
    said,
    hears,
    exited,
    tell: (line) => void child.stdin.write(`${line}\n`),
    terminate: () => void child.kill('SIGTERM'),
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL');
      await exited;
    },
  };
}
