// node bench/pairs.ts [folder] [--pairs 15] [--quick]: this build, libsodium and a peer, in turns, over a bare server.
// The folder is a checkout of another commit, with its node_modules and `dist`, that is measured beside. Peers are there
// after `npm ci --prefix bench`. A table of deliveries a second ÷ requests a second of the bare server: median (spread).
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { pairs: { type: 'string', default: '15' }, quick: { type: 'boolean', default: false } },
});
process.env['PROTO_WEBHOOKS_SODIUM'] = '0';
if (values.quick) process.env['BENCH_QUICK'] = '1';
// Both are read where these are loaded.
const { makeKey, prepare } = await import('./lib/deliveries.ts');
const { alternate, IN_SERVICE, operations, plan, rate, ratio } = await import('./lib/measure.ts');
const { requestContestants } = await import('./lib/request-contestants.ts');
const { startServerProcess } = await import('./lib/servers.ts');
const { bareContestant, pipelineContestant, receiverFor, withSodium } = await import('./lib/contestants.ts');
const { peerVerifier } = await import('./lib/peer.ts');

type Times = Awaited<ReturnType<typeof alternate>>;
type Contestant = Parameters<typeof alternate>[0][number];

/** A part that hangs is ended. */
const MOST_MS = 40 * 60_000;
const PAIRS = Number(values.pairs);
const WIDTHS = { 1: 1_000, 32: 1_500, 128: 1_500, 500: 1_500, 1_000: 2_000 } as const;
const KINDS = { main: 'on-thread', auto: 'door' } as const;
type Kind = keyof typeof KINDS;
const kinds = Object.keys(KINDS) as Kind[];
/** The peer reads no other alphabet. */
const SIGNING = { alphabet: 'base64' } as const;

const [folder] = positionals;
const other = (file: string): Promise<unknown> =>
  import(pathToFileURL(resolve(folder ?? '', `bench/lib/${file}.ts`)).href);
const before = folder !== undefined && {
  ...((await other('servers')) as typeof import('./lib/servers.ts')),
  ...((await other('contestants')) as typeof import('./lib/contestants.ts')),
};
const key = await makeKey('ed25519');

const COLUMNS = ['main', 'auto', 'libsodium', 'peer', ...(before ? ['main before', 'auto before'] : [])];

const said = ({ median, min, max }: ReturnType<typeof ratio>): string =>
  `${median.toFixed(2)} (${min.toFixed(2)} to ${max.toFixed(2)})`;

const line = (cells: readonly string[]): void => console.log(`| ${cells.join(' | ')} |`);

function tell(where: string, times: Times): void {
  const bare = Math.round(rate(times, 'bare').median).toString();
  const shares = COLUMNS.map((name) => said(ratio(times, 'bare', name)));
  const changes = before ? kinds.map((kind) => said(ratio(times, `${kind} before`, kind))) : [];
  line([where, bare, ...shares, ...changes]);
}

/** One delivery after the other, each awaited. */
async function inProcess(): Promise<Times> {
  const planned = plan(1_000, PAIRS, IN_SERVICE);
  const all = await prepare(operations(planned), key, 'ed25519', 1024, SIGNING);
  const verifies = peerVerifier(key.publicJwk, 'ed25519');
  const decoder = new TextDecoder();
  const contestants: Contestant[] = [
    bareContestant('bare', key, 'ed25519', all),
    {
      name: 'peer',
      async run(count) {
        for (const { headers, body } of all.slice(0, count)) {
          if (!(await verifies(headers))) throw new Error('the peer refused a good signature');
          JSON.parse(decoder.decode(body));
        }
      },
    },
  ];
  for (const verification of kinds) {
    const options = { verification };
    contestants.push(pipelineContestant(verification, () => receiverFor(key, {}, options), all));
    if (!before) continue;
    const make = () => before.receiverFor(key, {}, options);
    contestants.push(before.pipelineContestant(`${verification} before`, make, all));
  }
  // The last: receivers that are made after it would find libsodium too.
  contestants.push(pipelineContestant('libsodium', () => withSodium(key), all));
  const times = await alternate(contestants, planned);
  process.env['PROTO_WEBHOOKS_SODIUM'] = '0';
  return times;
}

/** Each server in a process of its own. New ones for each width: what they remember of nonces has a cap. */
async function overHttp(width: number, count: number): Promise<Times> {
  const prepared = await prepare(512, key, 'ed25519', 1024, SIGNING);
  const samples = prepared.map(({ base, bareSignature }) => ({ base, bareSignature }));
  const job = { framework: 'node', key, samples } as const;
  const servers = [
    { name: 'bare', process: await startServerProcess({ ...job, kind: 'bare' }) },
    { name: 'peer', process: await startServerProcess({ ...job, kind: 'peer' }) },
    { name: 'libsodium', process: await startServerProcess({ ...job, kind: 'sodium' }) },
  ];
  for (const name of kinds) {
    servers.push({ name, process: await startServerProcess({ ...job, kind: KINDS[name] }) });
    if (!before) continue;
    const process = await before.startServerProcess({ ...job, kind: KINDS[name] });
    servers.push({ name: `${name} before`, process });
  }
  try {
    return await alternate(requestContestants(servers, key, width, SIGNING), plan(count, PAIRS, IN_SERVICE));
  } finally {
    for (const { process } of servers) await process.stop();
  }
}

const started = performance.now();
setTimeout(() => {
  console.error(`It took over ${MOST_MS / 60_000} minutes and was ended.`);
  process.exit(1);
}, MOST_MS);
const changes = before ? kinds.map((kind) => `${kind} ÷ before`) : [];
line(['Connections', 'bare, a second', ...COLUMNS, ...changes]);
line(['---', ...Array.from({ length: 1 + COLUMNS.length + changes.length }, () => '---:')]);
tell('in process', await inProcess());
for (const [width, count] of Object.entries(WIDTHS)) tell(width, await overHttp(Number(width), count));
console.log(`\n${plan(1, PAIRS).repetitions} pairs, ${Math.round((performance.now() - started) / 1000)} s`);
process.exit();
