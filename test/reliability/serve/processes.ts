import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Jwk } from '../../../src/sender/sign.ts';
import { freePort } from '../../support/free-port.ts';
import { launch } from '../processes/child.ts';
import { AGENT_URL, PUBLIC_URL } from '../processes/seller.ts';
import type { Kind, StoreLocation } from '../processes/stores.ts';
import { keep, type Kept } from './kept.ts';
import type { SinkBreak, SinkOptions, SinkReady } from './wire.ts';

const CLI = fileURLToPath(new URL('../../../dist/cli.js', import.meta.url));
const SINK = fileURLToPath(new URL('fixtures/sink.ts', import.meta.url));

/** How long serve waits for the sink. Leases are as long as that asks for, so what a killed one held is soon due again. */
const TIMEOUT_MS = 2_000;

type At<K extends Kind> = Extract<StoreLocation, { kind: K }>;

/** `store` of the file, and the URL that its variable has. */
interface StoreConfig {
  readonly store: object;
  readonly url?: string;
}

const URL_OF_STORE = { url: { env: 'STORE_URL' } } as const;

const STORES: { readonly [K in Kind]: (place: At<K>) => StoreConfig } = {
  SQLite: ({ file }) => ({ store: { sqlite: file } }),
  Postgres: ({ url, schema }) => ({ store: { postgres: { ...URL_OF_STORE, schema } }, url }),
  MySQL: ({ url }) => ({ store: { mysql: URL_OF_STORE }, url }),
  Redis: ({ port }) => ({ store: { redis: URL_OF_STORE }, url: `redis://127.0.0.1:${port}` }),
};

export interface PairOptions {
  readonly place: StoreLocation;
  /** Of configuration, journal and log. */
  readonly folder: string;
  /** What processes have compiled, for those that come after them. */
  readonly cache: string;
  /** The seller's. */
  readonly publicJwk: Jwk;
  readonly concurrency: number;
  readonly breaks?: SinkBreak;
}

/** `proto-webhooks serve` and the sink that it forwards to. */
export interface Pair {
  readonly serve: Kept;
  readonly sink: Kept;
  /** Of serve, for sellers. */
  readonly port: number;
  readonly journal: string;
  /** Of alarms that serve has raised, how often each. */
  readonly alarms: () => Readonly<Record<string, number>>;
}

const textOf = (file: string): string => (existsSync(file) ? readFileSync(file, 'utf8') : '');
const SAID_CHARS = 2_000;

async function answers(url: string): Promise<boolean> {
  const response = await fetch(url, { signal: AbortSignal.timeout(2_000) });
  await response.arrayBuffer();
  return response.ok;
}

function sinkOf({ folder, cache, breaks }: PairOptions, port: number, journal: string, secret: string): Kept {
  const told: SinkOptions = { port, journal, secret, ...(breaks && { breaks }) };
  let problem: (() => Error) | undefined;
  return keep({
    name: `the sink in ${folder}`,
    start: () => {
      const child = launch<SinkReady>('the sink', SINK, told, cache);
      ({ problem } = child);
      return child.process;
    },
    answers: () => answers(`http://127.0.0.1:${port}/`),
    said: () => problem?.().message ?? '',
  });
}

interface ServePorts {
  readonly port: number;
  readonly health: number;
  readonly sink: number;
}

function serveOf(options: PairOptions, ports: ServePorts, log: string, secret: string): Kept {
  const { place, folder, cache, publicJwk, concurrency } = options;
  const { store, url } = (STORES[place.kind] as (at: StoreLocation) => StoreConfig)(place);
  const file = join(folder, 'webhooks.yaml');
  const config = {
    publicUrl: PUBLIC_URL,
    sellers: [{ agentUrl: AGENT_URL, pins: [publicJwk] }],
    listen: { host: '127.0.0.1', port: ports.port },
    health: { host: '127.0.0.1', port: ports.health },
    store,
    sink: {
      url: `http://127.0.0.1:${ports.sink}/events`,
      secrets: [{ env: 'SINK_SECRET' }],
      timeoutMs: TIMEOUT_MS,
      concurrency,
    },
  };
  // JSON is YAML, too.
  writeFileSync(file, JSON.stringify(config, null, 2));
  const env = {
    ...process.env,
    NODE_COMPILE_CACHE: cache,
    SINK_SECRET: secret,
    ...(url !== undefined && { STORE_URL: url }),
  };
  return keep({
    name: 'serve',
    start: () => {
      const out = openSync(log, 'a');
      const child = spawn(process.execPath, [CLI, 'serve', '--config', file], {
        env,
        stdio: ['ignore', out, out],
      });
      closeSync(out);
      return child;
    },
    answers: () => answers(`http://127.0.0.1:${ports.health}/livez`),
    said: () => textOf(log).slice(-SAID_CHARS),
  });
}

/** By code. Lines that are not JSON, of a process that could not start, are none. */
function alarmsIn(log: string): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const [, code = ''] of textOf(log).matchAll(/"alarm":"([^"]*)"/g))
    counts[code] = (counts[code] ?? 0) + 1;
  return counts;
}

/** Starts both, on ports that stay theirs. */
export async function startPair(options: PairOptions): Promise<Pair> {
  const ports = { port: await freePort(), health: await freePort(), sink: await freePort() };
  const journal = join(options.folder, 'journal');
  const log = join(options.folder, 'log');
  const secret = `whsec_${randomBytes(32).toString('base64')}`;
  const sink = sinkOf(options, ports.sink, journal, secret);
  const serve = serveOf(options, ports, log, secret);
  return { serve, sink, port: ports.port, journal, alarms: () => alarmsIn(log) };
}
