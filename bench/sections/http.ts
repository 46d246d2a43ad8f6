import { makeKey, prepare, requestBytes, sign } from '../lib/deliveries.ts';
import { closeAll, openConnections, sendAll, type Connection } from '../lib/load.ts';
import {
  alternate,
  atLeast,
  IN_SERVICE,
  plan,
  rate,
  ratio,
  type Contestant,
  type Figure,
  type Figures,
} from '../lib/measure.ts';
import { startServerProcess, type ServerJob, type ServerProcess } from '../lib/servers.ts';

const CONNECTIONS = 32;

const FRAMEWORKS = ['node', 'express', 'fastify', 'hono'] as const;

interface Server {
  readonly name: string;
  readonly process: ServerProcess;
}

const KEY = await makeKey('ed25519');

/** Every server gets the same requests in one round; fresh ones in the next, for those would be replays. */
function contestants(servers: readonly Server[]): Contestant[] {
  let requests: readonly Uint8Array[] = [];
  let served = 0;
  let events = 0;
  return servers.map(({ name, process: { port } }) => {
    let connections: readonly Connection[] = [];
    return {
      name,
      setUp: async (count: number) => {
        if (served % servers.length === 0) {
          const fresh: Uint8Array[] = [];
          for (let at = 0; at < count; at += 1) fresh.push(requestBytes(await sign(events++, KEY, 1024)));
          requests = fresh;
        }
        served += 1;
        // Servers close connections that are idle while others are measured.
        connections = await openConnections(port, CONNECTIONS);
      },
      run: () => sendAll(connections, requests, 200),
      tearDown: () => closeAll(connections),
    };
  });
}

function jobs(samples: ServerJob['samples']): ServerJob[] {
  const base = { key: KEY, samples };
  const both = FRAMEWORKS.flatMap((framework) => [
    { ...base, framework, kind: 'bare' as const },
    { ...base, framework, kind: 'door' as const },
  ]);
  return [...both, { ...base, framework: 'node', kind: 'off-thread' }];
}

/** Deliveries a second over HTTP: 32 connections, 1 KB, Ed25519, the load in this process and each server in its own. */
export async function measure(): Promise<Figures> {
  const prepared = await prepare(512, KEY, 'ed25519', 1024);
  // Another one each time: a verification takes its way by what it verifies.
  const samples = prepared.map(({ base, bareSignature }) => ({ base, bareSignature }));
  const servers: Server[] = [];
  try {
    for (const job of jobs(samples)) {
      servers.push({ name: `${job.framework} ${job.kind}`, process: await startServerProcess(job) });
    }
    const times = await alternate(contestants(servers), plan(3000, 9, IN_SERVICE));
    const results: Record<string, Figure> = {};
    for (const framework of FRAMEWORKS) {
      results[`${framework}: bare server with one crypto.verify, requests/s`] = rate(
        times,
        `${framework} bare`,
      );
      results[`${framework}: whole pipeline, deliveries/s`] = rate(times, `${framework} door`);
      // Times of one over the other: throughputs the other way round.
      const share = ratio(times, `${framework} bare`, `${framework} door`);
      results[`${framework}: whole pipeline ÷ bare server, by deliveries/s`] =
        framework === 'node' ? atLeast(share, 0.85) : share;
    }
    results['node: verification off the main thread ÷ on it, by deliveries/s'] = atLeast(
      ratio(times, 'node door', 'node off-thread'),
      1.4,
    );
    return results;
  } finally {
    for (const { process } of servers) await process.stop();
  }
}
