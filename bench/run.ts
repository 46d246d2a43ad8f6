// npm run bench -- [section …] [--quick] [--cpu]
import { execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { writePages } from './docs/write.ts';
import { machine } from './lib/machine.ts';
import type { Figures, Targeted } from './lib/measure.ts';
import { readResults, writeResults } from './lib/results.ts';
import { SECTIONS } from './sections.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { quick: { type: 'boolean', default: false }, cpu: { type: 'boolean', default: false } },
});

const names = positionals.length > 0 ? positionals : Object.keys(SECTIONS);
const commit = execFileSync('git', ['rev-parse', '--short=8', 'HEAD'], { encoding: 'utf8' }).trim();
const unknown = names.filter((name) => !SECTIONS[name]);
if (unknown.length > 0) {
  throw new Error(`no section ${unknown.join(', ')}; there are ${Object.keys(SECTIONS).join(', ')}`);
}

/** A part that hangs is ended. */
const MOST_MS = 20 * 60_000;

async function measured(section: string, part: string): Promise<Figures> {
  const child = fork(fileURLToPath(new URL('one.ts', import.meta.url)), [section, part], {
    execArgv: ['--disable-warning=ExperimentalWarning'],
    // Structured clone: what is not measured is NaN and stays so.
    serialization: 'advanced',
    timeout: MOST_MS,
    env: {
      ...process.env,
      PROTO_WEBHOOKS_SODIUM: '0',
      ...(values.quick && { BENCH_QUICK: '1' }),
      ...(values.cpu && { BENCH_CPU: '1' }),
    },
  });
  const end = (): void => void child.kill('SIGTERM');
  process.once('exit', end);
  const gone = once(child, 'exit');
  const answer = await Promise.race([once(child, 'message'), gone.then(() => undefined)]);
  await gone;
  process.off('exit', end);
  if (!answer) throw new Error(`the section ${section} ${part} failed`);
  return answer[0] as Figures;
}

function tell(figures: Figures): void {
  for (const [name, value] of Object.entries(figures)) {
    const { target, met } = value as Partial<Targeted>;
    const verdict = target === undefined ? '' : ` (${target}: ${met ? 'met' : 'NOT MET'})`;
    console.log(`  ${name}: ${Number(value.median.toPrecision(4))}${verdict}`);
  }
}

for (const name of names) {
  const started = performance.now();
  const figures: Record<string, Figures[string]> = {};
  console.log(SECTIONS[name]?.title);
  for (const part of SECTIONS[name]?.parts ?? []) {
    const some = await measured(name, part);
    tell(some);
    Object.assign(figures, some);
  }
  const measuredOn = new Date().toISOString().slice(0, 10);
  // Written after each section: a run that is broken off leaves what it has.
  const { quick, cpu } = values;
  const section = { measured: measuredOn, commit, machine: machine(), quick, cpu, figures };
  const results = { ...readResults(), [name]: section };
  await writeResults(results);
  await writePages(results);
  console.log(`  ${Math.round((performance.now() - started) / 1000)} s`);
}
