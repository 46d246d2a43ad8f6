// npm run check:figures: lists rows that are older than the code they are about, and tests and proofs that have no row.
import { oldRows, rowsOf, withoutRow } from './results.ts';
import { PROOF_NAMES } from './table.ts';

const old = oldRows();
const tests = PROOF_NAMES.flatMap((name) => withoutRow(name).map((one) => ({ ...one, name })));
const proofs = PROOF_NAMES.filter((name) => rowsOf(name).length === 0);
for (const { name, row } of old)
  console.log(`${name}: of an earlier commit, ${row.commit} ${row.date}: ${row.test}`);
for (const { name, file, test } of tests) console.log(`${name}: no row: ${file}: ${test}`);
for (const name of proofs) console.log(`${name}: not run`);
console.log(
  `${old.length} rows of an earlier commit, ${tests.length} tests without a row, ${proofs.length} proofs that were not run`,
);
process.exitCode = old.length + tests.length + proofs.length === 0 ? 0 : 1;
