import { type ChildProcess, fork, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { KeyPair } from '../../dist/sender.js';
import { AGENT_URL, PUBLIC_URL, type Prepared } from './deliveries.ts';
import type { ServerProcess } from './servers.ts';

/** What a process of `forwarder.ts` is told to be. */
export type ForwarderJob =
  | { readonly kind: 'sink' }
  | {
      readonly kind: 'bare';
      /** To which it appends. */
      readonly file: string;
      readonly sinkPort: number;
      /** Posts under way at most. */
      readonly width: number;
      /** It verifies one of these a request, in its turn; absent: nothing. */
      readonly verifies?: {
        readonly key: KeyPair;
        readonly samples: readonly Pick<Prepared, 'base' | 'bareSignature'>[];
      };
    };

/** How many different events the sink is to wait for, from now on. */
export interface SinkOrder {
  readonly expect: number;
}

type Forwarder = Pick<ServerProcess, 'port' | 'stop'>;

/** Ends with this process, however that ends. */
function stoppable(child: ChildProcess): () => Promise<void> {
  const end = (): void => void child.kill('SIGKILL');
  process.once('exit', end);
  return async () => {
    process.off('exit', end);
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  };
}

async function started(job: ForwarderJob): Promise<Forwarder & { readonly child: ChildProcess }> {
  const child = fork(fileURLToPath(new URL('forwarder.ts', import.meta.url)), { serialization: 'advanced' });
  const stop = stoppable(child);
  child.send(job);
  const [port] = (await Promise.race([once(child, 'message'), once(child, 'exit')])) as [unknown];
  if (child.exitCode !== null || typeof port !== 'number') throw new Error(`the ${job.kind} process ended`);
  return { child, port, stop };
}

/** Accepts each event, has it on disk by a sync that it shares with what came meanwhile, and posts it. */
export const startBare = (job: Omit<Extract<ForwarderJob, { kind: 'bare' }>, 'kind'>): Promise<Forwarder> =>
  started({ kind: 'bare', ...job });

/** A sink that answers 204 and has nothing else to do. */
export interface SinkProcess extends Forwarder {
  /** Counts from now on. */
  readonly expect: (events: number) => Promise<void>;
  /** Resolves when they have come. */
  readonly arrived: () => Promise<void>;
}

export async function startSink(): Promise<SinkProcess> {
  const { child, port, stop } = await started({ kind: 'sink' });
  let arrival: Promise<unknown> = Promise.resolve();
  return {
    port,
    stop,
    async expect(events) {
      const waiting = once(child, 'message');
      child.send({ expect: events } satisfies SinkOrder);
      await waiting;
      arrival = once(child, 'message');
    },
    arrived: async () => void (await arrival),
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

const isReady = (port: number): Promise<boolean> =>
  fetch(`http://127.0.0.1:${port}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  );

/** `proto-webhooks serve` as its page shows it, on SQLite, with the key pinned so that nothing is fetched. */
export async function startServe(
  folder: string,
  { key, sinkPort, width }: { readonly key: KeyPair; readonly sinkPort: number; readonly width: number },
): Promise<Forwarder> {
  mkdirSync(folder, { recursive: true });
  const [port, health] = [await freePort(), await freePort()];
  const file = join(folder, 'webhooks.yaml');
  const sink = {
    url: `http://127.0.0.1:${sinkPort}/events`,
    secrets: [{ env: 'SINK_SECRET' }],
    concurrency: width,
  };
  const config = {
    publicUrl: PUBLIC_URL,
    sellers: [{ agentUrl: AGENT_URL, pins: [key.publicJwk] }],
    listen: { port },
    health: { port: health },
    sink,
  };
  // JSON is YAML, too.
  writeFileSync(file, JSON.stringify(config));
  const cli = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));
  const env = { ...process.env, SINK_SECRET: `whsec_${randomBytes(32).toString('base64')}` };
  const child = spawn(process.execPath, [cli, 'serve', '--config', file], {
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const stop = stoppable(child);
  while (!(await isReady(health))) {
    if (child.exitCode !== null) throw new Error(`serve ended with ${child.exitCode}`);
    await sleep(20);
  }
  return { port, stop };
}
