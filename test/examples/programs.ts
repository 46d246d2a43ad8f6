import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, symlink } from 'node:fs/promises';
import { connect } from 'node:net';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { openWorkshop } from '../consumers/project.ts';
import { freePort } from '../support/free-port.ts';
import { namedSeller } from '../support/named-seller.ts';
import { outside } from '../support/shared-installation.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

type Env = Readonly<Record<string, string>>;

/** What a program printed, and how it ended. */
export interface Ended {
  /** Null where a signal ended it. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A program that listens until SIGTERM ends it. */
export interface Server extends AsyncDisposable {
  /** Its working directory. */
  readonly folder: string;
  readonly origin: string;
  readonly printed: () => string;
  /** SIGTERM, while two connections have sent no whole request. @returns its exit code, null where the signal ended it. */
  readonly stop: () => Promise<number | null>;
}

/** Commands that run, in a group of processes of their own. */
interface Started extends AsyncDisposable {
  readonly printed: () => string;
}

/** A reader's project, with the packed package installed, in which programs of the documents run. */
export interface Programs extends AsyncDisposable {
  readonly folder: string;
  readonly write: (file: string, text: string) => Promise<void>;
  /** Makes packages that this repository has importable there. */
  readonly link: (...dependencies: readonly string[]) => Promise<void>;
  /** Runs a program to its end. @returns what it printed. @throws Error with that, where it fails. */
  readonly run: (file: string, env?: Env, cwd?: string) => Promise<string>;
  /** Runs lines of a shell to their end, in the project's folder. */
  readonly shell: (lines: string, env?: Env) => Promise<Ended>;
  /** Starts lines of a shell whose last command does not end, in the project's folder. Disposing ends all of them by SIGTERM. */
  readonly start: (lines: string, env?: Env) => Started;
  /** Starts a program that listens at `PORT`, or at the port given. It has a folder of its own for its database. */
  readonly serve: (file: string, env?: Env, port?: number) => Promise<Server>;
}

/** @param shared `inject('shared')`. */
export async function openPrograms(
  shared: string,
  name: string,
  dependencies: readonly string[] = [],
): Promise<Programs> {
  const workshop = await openWorkshop(shared);
  const { folder, write } = await workshop.project(name, {}, dependencies);
  const bin = [join(folder, 'node_modules/.bin'), join(folder, '../../node_modules/.bin')];
  const envOf = (env: Env): NodeJS.ProcessEnv => {
    const path = [...bin, process.env['PATH'] ?? ''].join(delimiter);
    return { ...outside(), NO_COLOR: '1', ...env, PATH: path };
  };
  const ended = (program: string, args: readonly string[], cwd: string, env: Env): Promise<Ended> =>
    new Promise((resolve) => {
      const child = execFile(program, args, { cwd, env: envOf(env) }, (_error, stdout, stderr) =>
        resolve({ code: child.exitCode, stdout, stderr }),
      );
    });
  return {
    folder,
    write,
    link: async (...names) => {
      for (const one of names) {
        const at = join(folder, 'node_modules', one);
        await mkdir(join(at, '..'), { recursive: true });
        await symlink(join(root, 'node_modules', one), at).catch((error: NodeJS.ErrnoException) => {
          if (error.code !== 'EEXIST') throw error;
        });
      }
    },
    run: async (file, env = {}, given) => {
      const cwd = given ?? (await mkdtemp(join(folder, 'run-')));
      const { code, stdout, stderr } = await ended(process.execPath, [join(folder, file)], cwd, env);
      if (code !== 0) throw new Error(`${file} ended with ${code}:\n${stdout}\n${stderr}`);
      return stdout;
    },
    shell: (lines, env = {}) => ended('sh', ['-c', lines], folder, env),
    start: (lines, env = {}) => {
      const child = spawn('sh', ['-c', lines], { cwd: folder, env: envOf(env), detached: true });
      const printed = textOf(child);
      const closed = once(child, 'close');
      return {
        printed,
        [Symbol.asyncDispose]: async () => {
          try {
            if (child.pid !== undefined) process.kill(-child.pid, 'SIGTERM');
          } catch (error) {
            // All have ended by themselves.
            if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
          }
          await closed;
        },
      };
    },
    serve: async (file, env = {}, given) => {
      const port = given ?? (await freePort());
      const cwd = await mkdtemp(join(folder, 'run-'));
      const settings = envOf({ PORT: String(port), ...env });
      const child = spawn(process.execPath, [join(folder, file)], { cwd, env: settings });
      return { folder: cwd, ...(await listening(file, port, child)) };
    },
    [Symbol.asyncDispose]: () => workshop[Symbol.asyncDispose](),
  };
}

/** What a process has printed so far. */
function textOf({ stdout, stderr }: ReturnType<typeof spawn>): () => string {
  let text = '';
  for (const stream of [stdout, stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
  }
  return () => text;
}

async function listening(
  name: string,
  port: number,
  child: ReturnType<typeof spawn>,
): Promise<Omit<Server, 'folder'>> {
  const printed = textOf(child);
  const exited = once(child, 'exit') as Promise<[number | null]>;
  const isOver = (): boolean => child.exitCode !== null || child.signalCode !== null;
  while (!(await isOpen(port))) {
    if (isOver()) throw new Error(`${name} ended:\n${printed()}`);
    await sleep(20);
  }
  return {
    origin: `http://127.0.0.1:${port}`,
    printed,
    stop: async () => {
      await Promise.all([holding(port, ''), holding(port, 'POST /webhooks/seller HTTP/1.1\r\nHost: a\r\n')]);
      if (!isOver()) child.kill('SIGTERM');
      return (await exited)[0];
    },
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

/** True if somebody listens there. */
function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('error', () => resolve(false));
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
  });
}

/** A connection that has sent no whole request, and stays: the program has to end all the same. */
async function holding(port: number, sent: string): Promise<void> {
  const socket = connect(port, '127.0.0.1').on('error', () => {});
  await once(socket, 'connect');
  if (sent !== '') await new Promise<void>((resolve) => socket.write(sent, () => resolve()));
}

/** The URL that the sellers of the documents were given. */
export const URL_GIVEN = 'https://buyer.example/webhooks/seller';

/** A program that listens at 3000 takes what https://seller.example signs, and its handler prints it. */
export async function itListens(
  programs: Programs,
  file: string,
  modules: Readonly<Record<string, string>> = {},
): Promise<void> {
  const port = await freePort();
  await using named = await namedSeller(programs.folder, undefined, { ports: { 3000: port }, modules });
  await using server = await programs.serve(file, named.env, port);
  const to = `${server.origin}/webhooks/seller`;
  const { seller } = named;
  const { last } = await seller.deliver(seller.payloads.tool('completed'), { url: URL_GIVEN, to });
  expect(last.status, server.printed()).toBe(200);
  await expect.poll(server.printed).toContain('task completed');
}
