import { spawn, spawnSync } from 'node:child_process';
import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { aptInstall } from './apt.ts';
import { freePort } from './free-port.ts';
import type { PostgresServer } from './postgres.ts';
import { userOf } from './postgres.ts';

/** A PgBouncer of the tests' own. */
export interface Pooler {
  readonly url: string;
  readonly stop: () => Promise<void>;
}

/** Debian has it where an ordinary user's PATH does not look. */
const BINARIES = ['pgbouncer', '/usr/sbin/pgbouncer'];

const installed = (): string | undefined =>
  BINARIES.find((binary) => spawnSync(binary, ['--version']).status === 0);

/** For how long a client keeps a connection of the server. */
type PoolMode = 'transaction' | 'statement';

/** Session settings that a client sends are left out, as is usual. */
const settingsOf = (folder: string, port: number, server: PostgresServer, mode: PoolMode): string => `
[databases]
postgres = host=127.0.0.1 port=${server.port} dbname=postgres user=postgres
nowhere = host=127.0.0.1 port=${server.port} dbname=nobody_made_this_one user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
ignore_startup_parameters = extra_float_digits,options
logfile = ${folder}/log
`;

async function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

/** @throws Error that says what to install. */
export async function startPooler(server: PostgresServer, mode: PoolMode = 'transaction'): Promise<Pooler> {
  await aptInstall({ name: 'pgbouncer', service: 'pgbouncer', isInstalled: () => installed() !== undefined });
  const binary = installed();
  if (binary === undefined)
    throw new Error('These tests need PgBouncer (Debian: apt-get install pgbouncer).');
  const folder = mkdtempSync(join(tmpdir(), 'proto-webhooks-pgbouncer-'));
  const port = await freePort();
  const file = join(folder, 'pgbouncer.ini');
  writeFileSync(file, settingsOf(folder, port, server, mode));
  const user = userOf();
  if (user.uid !== undefined && user.gid !== undefined) {
    for (const each of [folder, file]) chownSync(each, user.uid, user.gid);
  }
  const child = spawn(binary, [file], { ...user, stdio: 'ignore' });
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
  });
  while (!(await accepts(port))) {
    if (child.exitCode !== null) throw new Error(`PgBouncer did not start; see ${folder}/log`);
    await sleep(25);
  }
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    stop: async () => {
      child.kill('SIGKILL');
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
