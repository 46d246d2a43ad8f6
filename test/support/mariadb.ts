import type { ChildProcess } from 'node:child_process';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createConnection } from 'mysql2/promise';
import { aptInstall } from './apt.ts';
import { DATA_FOLDER } from './data-folder.ts';
import { freePort } from './free-port.ts';

/** A MariaDB server of the tests' own on 127.0.0.1. */
export interface MariadbServer {
  /** As root, without a database. */
  readonly url: string;
  readonly port: number;
  /** Folder of its data. */
  readonly data: string;
  readonly pid: () => number;
  /** Ends it at once, as a power cut of the process would: the next start recovers. */
  readonly kill: () => Promise<void>;
  /** It hangs, or goes on: its connections stay open, and nothing is answered meanwhile. */
  readonly hang: (isHanging: boolean) => void;
  /** Starts it again on its port and data; resolves when it serves. */
  readonly start: () => Promise<void>;
  /** Ends it and removes its data. */
  readonly remove: () => Promise<void>;
}

/** Debian has the server in a folder that only root has in its PATH. */
const ENV = { ...process.env, PATH: `${process.env['PATH'] ?? ''}:/usr/sbin:/usr/local/sbin` };

const isInstalled = (): boolean => spawnSync('mariadbd', ['--version'], { env: ENV }).status === 0;

/** @throws Error that says what to install. */
async function needMariadb(): Promise<void> {
  await aptInstall({ name: 'mariadb-server', service: 'mariadb', isInstalled });
  if (isInstalled()) return;
  throw new Error(
    'These tests need MariaDB >= 10.6: set MYSQL_URL, or install it (Debian: apt-get install mariadb-server; macOS: brew install mariadb).',
  );
}

/** It refuses root. */
function userOf(): { readonly uid?: number; readonly gid?: number } {
  if (process.getuid?.() !== 0) return {};
  for (const name of ['mysql', 'nobody']) {
    const [uid, gid] = ['-u', '-g'].map((what) => spawnSync('id', [what, name], { encoding: 'utf8' }));
    if (uid?.status === 0 && gid?.status === 0) return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
  }
  throw new Error('These tests run as root and find no user to run MariaDB as (mysql, nobody).');
}

/**
 * Starts a server on a free port, in a folder of its own; durability and all else as MariaDB has it.
 * @param settings of my.cnf, name and value.
 * @param outlives whether others use it after this process has ended.
 */
export async function startServer(
  settings: Readonly<Record<string, string>> = {},
  outlives = false,
): Promise<MariadbServer> {
  await needMariadb();
  const user = userOf();
  const folder = mkdtempSync(join(DATA_FOLDER, 'proto-webhooks-mariadb-'));
  if (user.uid !== undefined && user.gid !== undefined) chownSync(folder, user.uid, user.gid);
  const data = join(folder, 'data');
  const log = join(folder, 'log');
  const made = spawnSync(
    'mariadb-install-db',
    [
      '--no-defaults',
      `--datadir=${data}`,
      // It runs a server too, which deletes the temporary tables of another one that has the same folder for them.
      `--tmpdir=${folder}`,
      '--auth-root-authentication-method=normal',
      '--skip-test-db',
      '--skip-name-resolve',
    ],
    { ...user, env: ENV, cwd: folder, encoding: 'utf8' },
  );
  if (made.status !== 0) throw new Error(`mariadb-install-db: ${made.stdout}\n${made.stderr}`);
  const port = await freePort();
  const own = {
    port: String(port),
    'bind-address': '127.0.0.1',
    datadir: data,
    socket: join(folder, 'socket'),
    'pid-file': join(folder, 'pid'),
    // A server that starts deletes all temporary tables in there, and another one that was at work on one ends with signal 11.
    tmpdir: folder,
    'log-error': log,
    // Of as many files as a machine with many cores runs at once.
    'max-connections': '500',
    ...settings,
  };
  const args = ['--no-defaults', '--skip-name-resolve'];
  for (const [name, value] of Object.entries(own)) args.push(`--${name}=${value}`);
  const url = `mysql://root@127.0.0.1:${port}`;
  let running: ChildProcess | undefined;
  const start = async (): Promise<void> => {
    const child = spawn('mariadbd', args, {
      ...user,
      env: ENV,
      cwd: folder,
      stdio: 'ignore',
      detached: outlives,
    });
    child.unref();
    running = child;
    const deadline = performance.now() + 180_000;
    while (!(await answers(url))) {
      if (child.exitCode !== null || performance.now() > deadline) {
        throw new Error(`mariadbd: ${existsSync(log) ? readFileSync(log, 'utf8').slice(-3000) : ''}`);
      }
      await sleep(50);
    }
  };
  const kill = async (): Promise<void> => {
    const child = running;
    running = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  };
  // A test that ends before its server does must not leave it behind.
  if (!outlives) process.once('exit', () => void running?.kill('SIGKILL'));
  await start();
  return {
    url,
    port,
    data,
    pid: () => running?.pid ?? 0,
    kill,
    hang: (isHanging) => void running?.kill(isHanging ? 'SIGSTOP' : 'SIGCONT'),
    start,
    remove: async () => {
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function answers(url: string): Promise<boolean> {
  try {
    const connection = await createConnection(url);
    await connection.end();
    return true;
  } catch {
    return false;
  }
}
