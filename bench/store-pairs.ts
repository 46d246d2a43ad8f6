// node bench/store-pairs.ts <folder> [store …] [--pairs 15] [--deliveries 1500] [--minutes 15]: as pairs.ts, on durable stores: this
// build, that of another commit and a bare server with one write, by deliveries a second over 32 connections; and the two builds by
// the time in which 99 % of the deliveries are answered that come at half of this build's rate. Each store has a process of its own
// and so many minutes at most; one that fails does not keep the others from being measured.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { BACKENDS } from './lib/backends.ts';
import { makeKey, prepare } from './lib/deliveries.ts';
import { closeAll, openConnections, percentile, sendAtRate } from './lib/load.ts';
import { alternate, figure, IN_SERVICE, plan, rate, ratio, type Figure } from './lib/measure.ts';
import type { BackendName } from './lib/places.ts';
import { freshRequests, requestContestants, type Server } from './lib/request-contestants.ts';
import { startServerProcess } from './lib/servers.ts';
import type { KeyPair } from '../dist/sender.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    pairs: { type: 'string', default: '15' },
    deliveries: { type: 'string', default: '1500' },
    minutes: { type: 'string', default: '15' },
    // This process measures the one store that is named.
    alone: { type: 'boolean', default: false },
  },
});
const [folder = '', ...given] = positionals;
if (folder === '') throw new Error('Give the folder of the other build: node bench/store-pairs.ts ../before');
const all = Object.keys(BACKENDS) as BackendName[];
const unknown = given.filter((name) => !all.includes(name as BackendName));
if (unknown.length > 0) throw new Error(`no store ${unknown.join(', ')}; there are ${all.join(', ')}`);
const wholeNumber = (option: 'pairs' | 'deliveries' | 'minutes'): number => {
  const number = Number(values[option]);
  if (!Number.isSafeInteger(number) || number < 1) throw new Error(`--${option}: not a whole number over 0`);
  return number;
};
const pairs = wholeNumber('pairs');
const deliveries = wholeNumber('deliveries');
const minutes = wholeNumber('minutes');

const said = ({ median, min, max }: Figure): string =>
  `${median.toFixed(2)} (${min.toFixed(2)} to ${max.toFixed(2)})`;

const CONNECTIONS = 32;

/** 99 % of the deliveries are answered within so many ms, of a round each of the servers, in turns. */
async function answeredWithin(
  servers: readonly Server[],
  key: KeyPair,
  perSecond: number,
): Promise<readonly number[]> {
  const found: number[] = [];
  for (const { process } of servers) {
    const requests = await freshRequests(deliveries, key);
    const connections = await openConnections(process.port, CONNECTIONS);
    found.push(percentile(await sendAtRate({ connections, requests, perSecond, expected: 200 }), 0.99));
    closeAll(connections);
  }
  return found;
}

/** Each build has a database of its own; the bare server writes into this build's. */
async function compared(name: BackendName): Promise<void> {
  const load = (file: string): Promise<unknown> =>
    import(pathToFileURL(resolve(folder, `bench/lib/${file}.ts`)).href);
  const before = {
    ...((await load('backends')) as typeof import('./lib/backends.ts')),
    ...((await load('servers')) as typeof import('./lib/servers.ts')),
  };
  const key = await makeKey('ed25519');
  const samples = (await prepare(512, key, 'ed25519', 1024)).map(({ base, bareSignature }) => ({
    base,
    bareSignature,
  }));
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
    const times = await alternate(
      requestContestants(servers, key, CONNECTIONS),
      plan(deliveries, pairs, IN_SERVICE),
    );
    const share = (of: string): string => said(ratio(times, 'bare', of));
    const { median } = rate(times, 'bare');
    console.log(
      `${name}: ${share('before')} → ${share('now')} of bare (${Math.round(median)}/s); ${said(ratio(times, 'before', 'now'))} ×`,
    );
    const rounds: (readonly number[])[] = [];
    const perSecond = rate(times, 'now').median / 2;
    for (let round = 0; round < pairs; round += 1) {
      rounds.push(await answeredWithin(servers.slice(1), key, perSecond));
    }
    const column = (at: number): string => said(figure(rounds.map((row) => row[at] ?? Number.NaN)));
    const ratios = figure(rounds.map(([now = Number.NaN, was = Number.NaN]) => now / was));
    console.log(
      `${name}: p99 at ${Math.round(perSecond)}/s, ms: ${column(1)} → ${column(0)}; ${said(ratios)} ×`,
    );
  } finally {
    for (const { process } of servers) await process.stop();
    for (const backend of backends) await backend.stop();
  }
}

/** Whether a process of its own has measured it in time. */
async function measured(name: BackendName): Promise<boolean> {
  const sizes = ['--pairs', String(pairs), '--deliveries', String(deliveries)];
  const child = fork(import.meta.filename, [folder, name, '--alone', ...sizes], {
    execArgv: ['--disable-warning=ExperimentalWarning'],
  });
  const end = (): void => void child.kill('SIGTERM');
  process.once('exit', end);
  const timer = setTimeout(end, minutes * 60_000);
  const [code] = (await once(child, 'exit')) as [number | null];
  clearTimeout(timer);
  process.off('exit', end);
  if (code !== 0) console.error(`${name}: not measured, for it failed or took over ${minutes} minutes`);
  return code === 0;
}

// An orderly end for each signal: servers that were started end with the process that did.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
if (values.alone) {
  process.once('disconnect', () => process.exit(1));
  // Servers that stop keep nothing alive that waits for them.
  setInterval(() => undefined, 1000);
  await compared(given[0] as BackendName);
  process.exit();
}
const started = performance.now();
const names = given.length > 0 ? (given as BackendName[]) : all;
let failed = 0;
for (const name of names) if (!(await measured(name))) failed += 1;
console.log(`${Math.round((performance.now() - started) / 1000)} s`);
process.exit(failed === 0 ? 0 : 1);
