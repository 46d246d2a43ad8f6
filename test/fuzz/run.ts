import { parseArgs } from 'node:util';
import { fuzz } from './fuzz.ts';

const { values } = parseArgs({
  options: { seed: { type: 'string' }, inputs: { type: 'string', default: '3000' } },
});
const seed = Number(values.seed ?? Date.now() % 2 ** 31);
const inputs = Number(values.inputs);
console.log(`seed ${seed}, ${inputs} inputs`);
const { counts, findings } = await fuzz({ seed, inputs });
for (const [code, count] of [...counts].toSorted(([, a], [, b]) => b - a))
  console.log(String(count).padStart(9), code);
for (const finding of findings) console.error(finding);
process.exitCode = findings.length === 0 ? 0 : 1;
