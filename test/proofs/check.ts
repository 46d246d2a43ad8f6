// npm run check:figures: lists rows that are older than the code they are about, and proofs that were never run.
import { oldRows, rowsOf } from './results.ts';
import { PROOF_NAMES } from './table.ts';

const old = oldRows();
const missing = PROOF_NAMES.filter((name) => rowsOf(name).length === 0);
for (const { name, row } of old)
  console.log(`${name}: of an earlier commit, ${row.commit} ${row.date}: ${row.test}`);
for (const name of missing) console.log(`${name}: not run`);
console.log(`${old.length} rows of an earlier commit, ${missing.length} proofs that were not run`);
process.exitCode = old.length + missing.length === 0 ? 0 : 1;
