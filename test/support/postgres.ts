import { spawnSync } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { aptInstall } from './apt.ts';
import { DATA_FOLDER } from './data-folder.ts';
import { freePort } from './free-port.ts';

/** A PostgreSQL server of the tests' own on 127.0.0.1. */
export interface PostgresServer {
  /** Of its database `postgres`, as superuser. */
  readonly url: string;
  readonly port: number;
  /** Folder of its data. */
  readonly data: string;
  /** Ends it at once, without a checkpoint, as a power cut of the process would: the next start recovers. */
  readonly crash: () => void;
  /** Starts it again on its port and data. */
  readonly start: () => void;
  /** Ends it and removes its data. */
  readonly remove: () => void;
}

/** What is made beside the server: its data, its log. */
interface ServerFiles {
  readonly folder: string;
  readonly bin: string;
  readonly user: { readonly uid?: number; readonly gid?: number };
}

/** `initdb` and PgBouncer refuse root. */
export function userOf(): ServerFiles['user'] {
  if (process.getuid?.() !== 0) return {};
  for (const name of ['postgres', 'nobody']) {
    const [uid, gid] = ['-u', '-g'].map((what) => spawnSync('id', [what, name], { encoding: 'utf8' }));
    if (uid?.status === 0 && gid?.status === 0) return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
  }
  throw new Error('These tests run as root and find no user to run PostgreSQL as (postgres, nobody).');
}

function folders(parent: string): readonly string[] {
  if (!existsSync(parent)) return [];
  const names = readdirSync(parent).toSorted((a, b) => Number(b) - Number(a));
  return names.map((name) => join(parent, name, 'bin'));
}

function binFolder(): string | undefined {
  const asked = spawnSync('pg_config', ['--bindir'], { encoding: 'utf8' });
  const said = asked.status === 0 ? [asked.stdout.trim()] : [];
  const path = (process.env['PATH'] ?? '').split(delimiter);
  const places = [...said, ...folders('/usr/lib/postgresql'), ...path];
  return places.find((folder) => existsSync(join(folder, 'initdb')) && existsSync(join(folder, 'pg_ctl')));
}

/** @throws Error that says what to install. */
async function needBinaries(): Promise<string> {
  await aptInstall({
    name: 'postgresql',
    service: 'postgresql',
    isInstalled: () => binFolder() !== undefined,
  });
  return binaries();
}

function binaries(): string {
  const bin = binFolder();
  if (bin !== undefined) return bin;
  throw new Error(
    'These tests need PostgreSQL >= 12: set DATABASE_URL, or install it (Debian: apt-get install postgresql; macOS: brew install postgresql).',
  );
}

function run({ bin, user, folder }: ServerFiles, name: string, args: readonly string[]): void {
  const done = spawnSync(join(bin, name), args, {
    ...user,
    cwd: folder,
    encoding: 'utf8',
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  if (done.status === 0) return;
  const log = join(folder, 'log');
  const lines = existsSync(log) ? readFileSync(log, 'utf8').slice(-2000) : '';
  throw new Error(`${name} ${args.join(' ')}: ${done.stderr}\n${lines}`);
}

async function newFiles(): Promise<ServerFiles & { readonly data: string }> {
  const bin = await needBinaries();
  const user = userOf();
  const folder = mkdtempSync(join(DATA_FOLDER, 'proto-webhooks-postgres-'));
  const data = join(folder, 'data');
  mkdirSync(data, { mode: 0o700 });
  for (const each of [folder, data]) {
    if (user.uid !== undefined && user.gid !== undefined) chownSync(each, user.uid, user.gid);
  }
  return { folder, bin, user, data };
}

async function launched(
  files: ServerFiles & { readonly data: string },
  settings: Readonly<Record<string, string>>,
): Promise<PostgresServer> {
  const { data, folder } = files;
  const port = await freePort();
  const own = { port: String(port), listen_addresses: '127.0.0.1', unix_socket_directories: '' };
  // Of as many files as a machine with many cores runs at once.
  const options = Object.entries({ max_connections: '500', ...own, ...settings });
  const line = options.map(([name, value]) => `-c ${name}='${value}'`).join(' ');
  const control = (what: string, ...args: readonly string[]): void =>
    run(files, 'pg_ctl', ['-D', data, '-w', '-t', '170', '-l', join(folder, 'log'), ...args, what]);
  const start = (): void => control('start', '-o', line);
  start();
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    port,
    data,
    crash: () => control('stop', '-m', 'immediate'),
    start,
    remove: () => removeServer(data),
  };
}

/**
 * Starts a server on a free port, in a folder of its own; `fsync` and all else as PostgreSQL has it.
 * @param settings of postgresql.conf, name and value.
 */
export async function startServer(settings: Readonly<Record<string, string>> = {}): Promise<PostgresServer> {
  const files = await newFiles();
  run(files, 'initdb', ['-D', files.data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '-N']);
  return launched(files, settings);
}

/** A standby of a server, streaming from it, which is read-only. */
export async function startStandby(primary: PostgresServer): Promise<PostgresServer> {
  const files = await newFiles();
  run(files, 'pg_basebackup', ['-d', primary.url, '-D', files.data, '-R', '-c', 'fast', '-N']);
  return launched(files, {});
}

/** Ends a server by the folder of its data, and removes that; another process may have started it. */
export function removeServer(data: string): void {
  const folder = dirname(data);
  const files: ServerFiles = { folder, bin: binaries(), user: userOf() };
  if (existsSync(join(data, 'postmaster.pid')))
    run(files, 'pg_ctl', ['-D', data, '-w', '-m', 'immediate', 'stop']);
  rmSync(folder, { recursive: true, force: true });
}
