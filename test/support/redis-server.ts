import type { ChildProcess } from 'node:child_process';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { aptInstall } from './apt.ts';
import { DATA_FOLDER } from './data-folder.ts';
import { freePort } from './free-port.ts';

/** A `redis-server` of the tests' own on 127.0.0.1. */
export interface RedisServer {
  readonly port: number;
  readonly folder: string;
  /** Ends it at once, as a power cut of the process would. */
  readonly kill: () => Promise<void>;
  /** It hangs, or goes on: its connections stay open, and nothing is answered meanwhile. */
  readonly hang: (isHanging: boolean) => void;
  /** Starts it again on its port and data; resolves when it serves. */
  readonly start: () => Promise<void>;
  /** Ends it and removes its data. */
  readonly remove: () => Promise<void>;
}

const isInstalled = (): boolean => spawnSync('redis-server', ['--version']).status === 0;

/** @throws Error that says what to install. */
async function needRedisServer(): Promise<void> {
  await aptInstall({ name: 'redis-server', service: 'redis-server', isInstalled });
  if (isInstalled()) return;
  throw new Error(
    'These tests need redis-server >= 7 in PATH (Debian: apt-get install redis-server; macOS: brew install redis).',
  );
}

const READY = /Ready to accept connections|\+monitor master|Sentinel ID is/;

/**
 * Starts one on a free port, in a folder of its own, without snapshots.
 * @param settings of redis.conf, name and value.
 * @param sentinel it is a Sentinel, and this is what its file says beside the port.
 */
export async function startServer(
  settings: Readonly<Record<string, string>>,
  sentinel?: string,
): Promise<RedisServer> {
  await needRedisServer();
  const folder = mkdtempSync(join(DATA_FOLDER, 'proto-webhooks-redis-'));
  const file = join(folder, 'redis.conf');
  const args = sentinel === undefined ? [file] : [file, '--sentinel'];
  let running: ChildProcess | undefined;
  const start = async (): Promise<void> => {
    running = await launched(args);
  };
  const kill = async (): Promise<void> => {
    const child = running;
    running = undefined;
    if (!child || child.exitCode !== null) return;
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  };
  const port = await firstStart(start, (free) => {
    const own = { port: String(free), bind: '127.0.0.1', dir: folder, ...settings };
    // Written, not passed as arguments: Sentinels rewrite their file.
    const lines = Object.entries(own).map(([name, value]) => `${name} ${value}`);
    writeFileSync(file, [...lines, sentinel ?? 'save ""', ''].join('\n'));
  });
  return {
    port,
    folder,
    kill,
    hang: (isHanging) => void running?.kill(isHanging ? 'SIGSTOP' : 'SIGCONT'),
    start,
    remove: async () => {
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A port that was free may be taken a moment later: then another one. */
async function firstStart(start: () => Promise<void>, write: (port: number) => void): Promise<number> {
  for (let tries = 1; ; tries += 1) {
    const port = await freePort();
    write(port);
    try {
      await start();
      return port;
    } catch (error) {
      if (tries === 3) throw error;
    }
  }
}

async function launched(args: readonly string[]): Promise<ChildProcess> {
  const child = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'ignore'] });
  // A test that ends before its server does must not leave it behind.
  const end = (): void => void child.kill('SIGKILL');
  process.once('exit', end);
  child.once('exit', () => process.off('exit', end));
  const said: string[] = [];
  const lines = createInterface({ input: child.stdout });
  for await (const line of lines) {
    said.push(line);
    if (READY.test(line)) {
      child.stdout.resume();
      return child;
    }
  }
  throw new Error(`redis-server ${args.join(' ')} ended:\n${said.join('\n')}`);
}
