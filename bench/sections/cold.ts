import { execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { ColdJob, ColdTimes } from '../lib/cold-start.ts';
import { makeKey, PUBLIC_URL, sign, type Signing } from '../lib/deliveries.ts';
import { installed, manifestOf, peerFolder } from '../lib/installed.ts';
import { figure, QUICK, type Figure, type Figures } from '../lib/measure.ts';

const REPETITIONS = QUICK ? 2 : 15;

const OURS = 'proto-webhooks';

/** What each of them takes as a signature. */
const SIGNING: Readonly<Record<ColdJob['contestant'], Signing>> = {
  [OURS]: {},
  'http-message-signatures': { alphabet: 'base64' },
  'web-bot-auth': { alphabet: 'base64', params: { tag: 'web-bot-auth' } },
};

const NAMES = Object.keys(SIGNING) as ColdJob['contestant'][];

/** Of a process that does nothing, from its start to its end. Ms. */
function nothing(): number {
  const started = performance.now();
  execFileSync(process.execPath, ['-e', '0']);
  return performance.now() - started;
}

async function coldStart(job: ColdJob): Promise<ColdTimes> {
  const file = fileURLToPath(new URL('../lib/cold-start.ts', import.meta.url));
  const child = fork(file, { serialization: 'advanced' });
  const gone = once(child, 'exit');
  child.send(job);
  const answer = await Promise.race([once(child, 'message'), gone.then(() => undefined)]);
  await gone;
  if (!answer) throw new Error(`${job.contestant} did not start`);
  return answer[0] as ColdTimes;
}

function sizes(): Record<string, Figure> {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const { files = [] } = manifestOf(root);
  const results: Record<string, Figure> = {};
  for (const name of NAMES) {
    const { packages, bytes } =
      name === OURS ? installed(root, ['package.json', ...files]) : installed(peerFolder(name));
    results[`${name}: packages installed`] = figure([packages]);
    results[`${name}: installed size, KiB`] = figure([bytes / 1024]);
  }
  return results;
}

/** From nothing to the first verified delivery in a new process, and what is installed for it. */
export async function measure(): Promise<Figures> {
  const key = await makeKey('ed25519');
  const times = new Map<string, ColdTimes[]>(NAMES.map((name) => [name, []]));
  const idle: number[] = [];
  for (let round = 0; round < REPETITIONS; round += 1) {
    idle.push(nothing());
    for (const [at] of NAMES.entries()) {
      const name = NAMES[(at + round) % NAMES.length] as ColdJob['contestant'];
      const { headers, body } = await sign(round, key, 1024, SIGNING[name]);
      const job = { contestant: name, jwk: key.publicJwk, url: PUBLIC_URL, headers, body };
      times.get(name)?.push(await coldStart(job));
    }
  }
  const results: Record<string, Figure> = {};
  for (const name of NAMES) {
    const all = times.get(name) ?? [];
    results[`${name}: import, ms`] = figure(all.map(({ importMs }) => importMs));
    results[`${name}: import and first verified delivery, ms`] = figure(all.map(({ firstMs }) => firstMs));
  }
  const ours = times.get(OURS) ?? [];
  const perIdle = ours.map(({ firstMs }, at) => firstMs / (idle[at] ?? Number.NaN));
  results[`${OURS}: import and first verified delivery ÷ a process that does nothing`] = figure(perIdle);
  return { ...results, ...sizes() };
}
