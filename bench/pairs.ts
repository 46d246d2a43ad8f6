// node bench/pairs.ts <folder> [--quick]: this build and that of another commit, in turns, over a bare server.
// The folder is a checkout of that commit, with its node_modules and `dist`. libsodium: PROTO_WEBHOOKS_SODIUM=1.
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { quick: { type: 'boolean', default: false } },
});
process.env['PROTO_WEBHOOKS_SODIUM'] ??= '0';
if (values.quick) process.env['BENCH_QUICK'] = '1';
// Both are read where these are loaded.
const { makeKey, prepare } = await import('./lib/deliveries.ts');
const { alternate, IN_SERVICE, operations, plan, ratio } = await import('./lib/measure.ts');
const { requestContestants } = await import('./lib/request-contestants.ts');

const before = resolve(positionals[0] ?? '');
const here = resolve(import.meta.dirname, '..');

const load = (folder: string, file: string): Promise<unknown> =>
  import(pathToFileURL(`${folder}/bench/lib/${file}.ts`).href);
const serversOf = (folder: string) => load(folder, 'servers') as Promise<typeof import('./lib/servers.ts')>;
const contestantsOf = (folder: string) =>
  load(folder, 'contestants') as Promise<typeof import('./lib/contestants.ts')>;

const KINDS = { main: 'on-thread', auto: 'door' } as const;
const BUILDS = { before, now: here } as const;
const PAIRS = 15;
const key = await makeKey('ed25519');

function tell(where: string, times: Awaited<ReturnType<typeof alternate>>): void {
  for (const kind of Object.keys(KINDS)) {
    const share = (build: string): string => {
      const { median, min, max } = ratio(times, 'bare', `${kind} ${build}`);
      return `${median.toFixed(2)} (${min.toFixed(2)} to ${max.toFixed(2)})`;
    };
    const { median } = ratio(times, `${kind} before`, `${kind} now`);
    console.log(`${where}, ${kind}: ${share('before')} → ${share('now')} of bare; ${median.toFixed(3)} ×`);
  }
}

/** Over HTTP: each server in a process of its own, by deliveries a second. */
async function overHttp(): Promise<void> {
  const prepared = await prepare(512, key, 'ed25519', 1024);
  const samples = prepared.map(({ base, bareSignature }) => ({ base, bareSignature }));
  const job = { framework: 'node', key, samples } as const;
  for (const [width, count] of [
    [1, 1_000],
    [32, 1_500],
    [128, 1_500],
    [1_000, 2_000],
  ] as const) {
    // New ones for each: what they remember of nonces has a cap.
    const servers = await startServers(job);
    const planned = plan(count, PAIRS, IN_SERVICE);
    tell(`${width} connections`, await alternate(requestContestants(servers, key, width), planned));
    for (const { process } of servers) await process.stop();
  }
}

type Job = Omit<Parameters<Awaited<ReturnType<typeof serversOf>>['startServerProcess']>[0], 'kind'>;

async function startServers(job: Job) {
  const { startServerProcess: startBare } = await serversOf(here);
  const servers = [{ name: 'bare', process: await startBare({ ...job, kind: 'bare' }) }];
  for (const [build, folder] of Object.entries(BUILDS)) {
    const { startServerProcess } = await serversOf(folder);
    for (const [kind, of] of Object.entries(KINDS)) {
      servers.push({ name: `${kind} ${build}`, process: await startServerProcess({ ...job, kind: of }) });
    }
  }
  return servers;
}

/** One delivery after the other, each awaited. */
async function inProcess(): Promise<void> {
  const planned = plan(1_000, PAIRS, IN_SERVICE);
  const all = await prepare(operations(planned), key, 'ed25519', 1024);
  const { bareContestant } = await contestantsOf(here);
  const contestants = [bareContestant('bare', key, 'ed25519', all)];
  for (const [build, folder] of Object.entries(BUILDS)) {
    const { pipelineContestant, receiverFor } = await contestantsOf(folder);
    for (const verification of ['main', 'auto'] as const) {
      const make = () => receiverFor(key, {}, { verification });
      contestants.push(pipelineContestant(`${verification} ${build}`, make, all));
    }
  }
  tell('in process', await alternate(contestants, planned));
}

const started = performance.now();
await inProcess();
await overHttp();
console.log(`${Math.round((performance.now() - started) / 1000)} s`);
process.exit();
