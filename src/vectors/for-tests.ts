// Exports names of `src/vectors` that tests, benchmarks and scripts need, and no public entry has.
// Nothing in `src` imports this file, and no bundle contains it (CONTRIBUTING.md).

export { compareBases, mismatches } from './judge.ts';
export { formatEnd } from './run.ts';
