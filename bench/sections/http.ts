import { makeKey, prepare } from '../lib/deliveries.ts';
import {
  alternate,
  atLeast,
  IN_SERVICE,
  plan,
  rate,
  ratio,
  type Figure,
  type Figures,
  type Times,
} from '../lib/measure.ts';
import { BACKENDS } from '../lib/backends.ts';
import type { BackendName } from '../lib/places.ts';
import { requestContestants, type Server as Contender } from '../lib/request-contestants.ts';
import { startServerProcess, type ServerJob, type ServerProcess } from '../lib/servers.ts';

const FRAMEWORKS = ['node', 'express', 'fastify', 'hono'] as const;

interface Server extends Contender {
  readonly process: ServerProcess;
}

const KEY = await makeKey('ed25519');

type Jobs = readonly Pick<ServerJob, 'framework' | 'kind' | 'place'>[];

const NODE: Jobs = [
  { framework: 'node', kind: 'bare' },
  { framework: 'node', kind: 'door' },
];

const ALL: Jobs = [
  ...FRAMEWORKS.flatMap((framework) => NODE.map(({ kind }) => ({ framework, kind }))),
  { framework: 'node', kind: 'on-thread' },
  { framework: 'node', kind: 'off-thread' },
];

/** Each in a process of its own, alternated; contestants are named by framework and kind. */
async function raced(jobs: Jobs, width: number, count = 3000): Promise<Times> {
  const prepared = await prepare(512, KEY, 'ed25519', 1024);
  // Another one each time: a verification takes its way by what it verifies.
  const samples = prepared.map(({ base, bareSignature }) => ({ base, bareSignature }));
  const servers: Server[] = [];
  try {
    for (const job of jobs) {
      const process = await startServerProcess({ ...job, key: KEY, samples });
      servers.push({ name: `${job.framework} ${job.kind}`, process });
    }
    return await alternate(requestContestants(servers, KEY, width), plan(count, 15, IN_SERVICE));
  } finally {
    for (const { process } of servers) await process.stop();
  }
}

/** Times of one over the other are throughputs the other way round. */
const share = (times: Times, framework: string): Figure =>
  ratio(times, `${framework} bare`, `${framework} door`);

async function frameworks(): Promise<Figures> {
  const times = await raced(ALL, 32);
  const results: Record<string, Figure> = {};
  for (const framework of FRAMEWORKS) {
    results[`${framework}: bare server with one crypto.verify, requests/s`] = rate(
      times,
      `${framework} bare`,
    );
    results[`${framework}: whole pipeline, deliveries/s`] = rate(times, `${framework} door`);
    results[`${framework}: whole pipeline ÷ bare server, by deliveries/s`] =
      framework === 'node' ? atLeast(share(times, framework), 1) : share(times, framework);
  }
  results['node: verification off the main thread ÷ on it, by deliveries/s'] = atLeast(
    ratio(times, 'node on-thread', 'node off-thread'),
    1.4,
  );
  return results;
}

/** By the number of connections: what is to be reached. */
const TARGETS: Readonly<Record<string, number>> = { '1': 0.72, '128': 1, '1000': 0.95 };

/** Durable stores: what is to be reached. */
const STORE_TARGETS: Readonly<Partial<Record<BackendName, number>>> = {
  redis: 0.7,
  postgres: 0.7,
  sqlite: 0.7,
};

/** The default mode, which writes twice a delivery, over a bare server that writes once. */
async function onStore(name: BackendName): Promise<Figures> {
  const backend = await BACKENDS[name]();
  try {
    const opened = await backend.open();
    const { place } = opened;
    const times = await raced(
      NODE.map((job) => ({ ...job, place })),
      32,
      1500,
    );
    await opened.close();
    const target = STORE_TARGETS[name];
    const found = share(times, 'node');
    return {
      [`${name}: bare server with one crypto.verify and one durable write, requests/s`]: rate(
        times,
        'node bare',
      ),
      [`${name}: whole pipeline, deliveries/s`]: rate(times, 'node door'),
      [`${name}: whole pipeline ÷ bare server with one durable write, by deliveries/s`]:
        target === undefined ? found : atLeast(found, target),
    };
  } finally {
    await backend.stop();
  }
}

/**
 * Deliveries a second over HTTP: 1 KB, Ed25519, the load in this process and each server in its own.
 * @param part connections, on the memory store (32: all frameworks; else `node` alone); or a durable store, 32 connections.
 */
export async function measure(part: string): Promise<Figures> {
  if (part in BACKENDS) return onStore(part as BackendName);
  const target = TARGETS[part];
  if (target === undefined) return frameworks();
  const times = await raced(NODE, Number(part));
  return {
    [`node, connections: ${part}: whole pipeline ÷ bare server, by deliveries/s`]: atLeast(
      share(times, 'node'),
      target,
    ),
  };
}
