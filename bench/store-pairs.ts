// node bench/store-pairs.ts <folder> [store …]: as pairs.ts, on durable stores: this build, that of another commit and a bare
// server with one write, by deliveries a second over 32 connections.
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { BACKENDS } from './lib/backends.ts';
import { makeKey, prepare } from './lib/deliveries.ts';
import { alternate, IN_SERVICE, plan, rate, ratio, type Figure } from './lib/measure.ts';
import type { BackendName } from './lib/places.ts';
import { requestContestants } from './lib/request-contestants.ts';
import { startServerProcess } from './lib/servers.ts';

const [folder = '', ...names] = parseArgs({ allowPositionals: true }).positionals;
if (folder === '') throw new Error('Give the folder of the other build: node bench/store-pairs.ts ../before');
const load = (file: string): Promise<unknown> =>
  import(pathToFileURL(resolve(folder, `bench/lib/${file}.ts`)).href);
const before = {
  ...((await load('backends')) as typeof import('./lib/backends.ts')),
  ...((await load('servers')) as typeof import('./lib/servers.ts')),
};

const PAIRS = 15;
const key = await makeKey('ed25519');
const samples = (await prepare(512, key, 'ed25519', 1024)).map(({ base, bareSignature }) => ({
  base,
  bareSignature,
}));

const said = ({ median, min, max }: Figure): string =>
  `${median.toFixed(2)} (${min.toFixed(2)} to ${max.toFixed(2)})`;

/** Each build has a database of its own; the bare server writes into this build's. */
async function compared(name: BackendName): Promise<void> {
  const backends = [await BACKENDS[name](), await before.BACKENDS[name]()] as const;
  const [place, placeBefore] = [(await backends[0].open()).place, (await backends[1].open()).place];
  const job = { framework: 'node', key, samples };
  const servers = [
    { name: 'bare', process: await startServerProcess({ ...job, kind: 'bare', place }) },
    { name: 'now', process: await startServerProcess({ ...job, kind: 'door', place }) },
    {
      name: 'before',
      process: await before.startServerProcess({ ...job, kind: 'door', place: placeBefore }),
    },
  ];
  try {
    const times = await alternate(requestContestants(servers, key, 32), plan(1500, PAIRS, IN_SERVICE));
    const share = (of: string): string => said(ratio(times, 'bare', of));
    const { median } = rate(times, 'bare');
    console.log(
      `${name}: ${share('before')} → ${share('now')} of bare (${Math.round(median)}/s); ${said(ratio(times, 'before', 'now'))} ×`,
    );
  } finally {
    for (const { process } of servers) await process.stop();
    for (const backend of backends) await backend.stop();
  }
}

// Servers that stop keep nothing alive that waits for them.
setInterval(() => undefined, 1000);
const started = performance.now();
for (const name of Object.keys(BACKENDS) as BackendName[]) {
  if (names.length === 0 || names.includes(name)) await compared(name);
}
console.log(`${Math.round((performance.now() - started) / 1000)} s`);
process.exit();
