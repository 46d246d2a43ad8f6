import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { freePort } from '../support/free-port.ts';
import type { WorkerOrder } from './worker.ts';

/** A workerd that serves the worker. */
export interface RunningWorker extends AsyncDisposable {
  readonly origin: string;
}

const config = (port: number, flags: readonly string[]): string => `
using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = (
      modules = [(name = "worker", esModule = embed "worker.js")],
      compatibilityDate = "2026-01-01",
      compatibilityFlags = [${flags.map((flag) => JSON.stringify(flag)).join(', ')}],
    )),
    (name = "internet", network = (allow = ["public", "private", "local"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
);
`;

/** Bundles the worker, the built package with it. */
async function bundle(folder: string, order: WorkerOrder): Promise<void> {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  await build({
    entryPoints: [join(root, 'test/runtimes/worker.ts')],
    outfile: join(folder, 'worker.js'),
    bundle: true,
    format: 'esm',
    platform: 'neutral',
    mainFields: ['module', 'main'],
    conditions: ['workerd', 'import', 'module', 'default'],
    target: 'es2022',
    external: ['node:*'],
    define: { ORDER: JSON.stringify(order) },
    logLevel: 'error',
    logOverride: { 'ignored-bare-import': 'silent' },
  });
}

/** @param folder empty, and this worker's own. */
export async function startWorker(
  binary: string,
  folder: string,
  flags: readonly string[],
  orderAt: (origin: string) => WorkerOrder,
): Promise<RunningWorker> {
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  await bundle(folder, orderAt(origin));
  const file = join(folder, 'config.capnp');
  await writeFile(file, config(port, flags));
  const child = spawn(binary, ['serve', file], { stdio: ['ignore', 'inherit', 'inherit'] });
  const exited = once(child, 'exit');
  return {
    origin,
    [Symbol.asyncDispose]: async () => {
      child.kill();
      await exited;
    },
  };
}
