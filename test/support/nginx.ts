import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { aptInstall } from './apt.ts';
import { freePort } from './free-port.ts';

/** An nginx of the tests' own on 127.0.0.1, ended and removed at the end of the scope. */
export interface Nginx extends AsyncDisposable {
  readonly port: number;
}

/** Debian has it where an ordinary user's PATH does not look. */
const BINARIES = ['nginx', '/usr/sbin/nginx'];

const installed = (): string | undefined => BINARIES.find((binary) => spawnSync(binary, ['-v']).status === 0);

/** @throws Error that says what to install. */
async function needNginx(): Promise<string> {
  await aptInstall({ name: 'nginx-light', service: 'nginx', isInstalled: () => installed() !== undefined });
  const binary = installed();
  if (binary !== undefined) return binary;
  throw new Error('These tests need nginx (Debian: apt-get install nginx-light; macOS: brew install nginx).');
}

/** Under any user, everything that it writes goes to its own folder; what is not said here is nginx's default. */
const configuration = (folder: string, port: number, server: string): string => `
daemon off;
master_process off;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log;
events {}
http {
  access_log off;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  server {
    listen 127.0.0.1:${port};
    ${server}
  }
}
`;

async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

async function untilServing(child: ChildProcess, port: number): Promise<boolean> {
  while (child.exitCode === null && child.signalCode === null) {
    if (await accepts(port)) return true;
    await sleep(20);
  }
  return false;
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}

/**
 * Starts one on a free port, in a folder of its own.
 * @param server what stands in its `server { … }`, e.g. `location / { proxy_pass http://127.0.0.1:3000; }`.
 * @throws Error with what nginx said, where it does not start.
 */
export async function startNginx(server: string): Promise<Nginx> {
  const binary = await needNginx();
  const folder = mkdtempSync(join(tmpdir(), 'proto-webhooks-nginx-'));
  const file = join(folder, 'nginx.conf');
  for (let tries = 1; ; tries += 1) {
    // A port that was free may be taken a moment later: then another one.
    const port = await freePort();
    writeFileSync(file, configuration(folder, port, server));
    const child = spawn(binary, ['-p', folder, '-c', file, '-e', join(folder, 'error.log')], {
      stdio: 'ignore',
    });
    const end = (): void => void child.kill('SIGKILL');
    process.once('exit', end);
    child.once('exit', () => process.off('exit', end));
    if (await untilServing(child, port)) {
      return {
        port,
        [Symbol.asyncDispose]: async () => {
          await ended(child);
          rmSync(folder, { recursive: true, force: true });
        },
      };
    }
    if (tries === 3) {
      const said = readFileSync(join(folder, 'error.log'), 'utf8');
      rmSync(folder, { recursive: true, force: true });
      throw new Error(`nginx did not start:\n${said}`);
    }
  }
}
