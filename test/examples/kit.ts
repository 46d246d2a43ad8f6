import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { LONG } from '../reliability/form.ts';
import { packed } from '../support/packed.ts';
import { INSTALL, manifestIn, outside, SHARED, sharedInstallation } from '../support/shared-installation.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const call = promisify(execFile);

type Env = Readonly<Record<string, string>>;

/** A copy of one of `examples/`, with the packed package and what its `package.json` asks for installed. */
export interface Example {
  readonly folder: string;
  /** Runs a script of its `package.json` to its end, and gives what it printed. @throws Error with that. */
  readonly script: (name: string, env?: Env, args?: readonly string[]) => Promise<string>;
  /** Starts one, and leaves it running. */
  readonly start: (name: string, env: Env) => Running;
  /** Starts a command in its folder, and leaves it running. */
  readonly startLine: (line: string, env: Env) => Running;
  readonly remove: () => Promise<void>;
}

/** A server that an example started. */
export interface Running {
  /** What it printed so far. */
  readonly printed: () => string;
  /** Resolves once this URL answers, whatever it answers. @throws Error with what was printed, where it ends before. */
  readonly answers: (url: string) => Promise<void>;
  /** SIGTERM. @returns its exit code, null where the signal ended it. */
  readonly stop: () => Promise<number | null>;
}

/** Copies an example, and installs it. @returns the copy, and where its programs are. */
async function placed(name: string, shared: string): Promise<{ folder: string; bin: string }> {
  if (!LONG && SHARED.some((one) => one === name)) {
    const above = await sharedInstallation(shared);
    const folder = await mkdtemp(join(above, `${name}-`));
    await cp(join(root, 'examples', name), folder, { recursive: true });
    return { folder, bin: join(above, 'node_modules/.bin') };
  }
  const folder = await mkdtemp(join(tmpdir(), `proto-webhooks-example-${name}-`));
  await cp(join(root, 'examples', name), folder, { recursive: true });
  await call('npm', [...INSTALL, await packed(shared)], { cwd: folder, env: outside() });
  return { folder, bin: join(folder, 'node_modules/.bin') };
}

/** @param shared `inject('shared')`. */
export async function installed(name: string, shared: string): Promise<Example> {
  const { folder, bin } = await placed(name, shared);
  const { scripts } = await manifestIn(folder);
  const options = (env: Env) => {
    const path = `${bin}${delimiter}${process.env['PATH'] ?? ''}`;
    return { cwd: folder, env: { ...outside(), ...env, PATH: path } };
  };
  // What `npm run` does, without a process of npm's in between, which signals would have to pass.
  const startLine = (line: string, env: Env): Running => started(`exec ${line}`, options(env));
  return {
    folder,
    script: async (script, env = {}, args = []) => {
      const parts = [scripts[script] ?? 'false', ...args].join(' ').split(' && ');
      let printed = '';
      for (const part of parts) printed += await ended(part, options(env));
      return printed;
    },
    start: (script, env) => startLine(scripts[script] ?? 'false', env),
    startLine,
    remove: () => rm(folder, { recursive: true, force: true, maxRetries: 5 }),
  };
}

interface Options {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
}

async function ended(line: string, options: Options): Promise<string> {
  const failed = (error: { stdout: string; stderr: string }): never => {
    throw new Error(`${line}:\n${error.stdout}\n${error.stderr}`);
  };
  return (await call('sh', ['-c', line], options).catch(failed)).stdout;
}

function started(line: string, options: Options): Running {
  const child = spawn('sh', ['-c', line], { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
    });
  }
  const exited = once(child, 'exit') as Promise<[number | null]>;
  return {
    printed: () => printed,
    answers: async (url) => {
      while (child.exitCode === null && child.signalCode === null) {
        const answer = await fetch(url).catch(() => undefined);
        if (answer) return;
        await sleep(50);
      }
      throw new Error(`${line} ended:\n${printed}`);
    },
    stop: async () => {
      child.kill('SIGTERM');
      return (await exited)[0];
    },
  };
}
