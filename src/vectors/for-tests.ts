// Test face of `src/vectors`: what tests, bench and scripts import from it that no public entry exports.
// Nothing in `src` imports it, and no bundle contains it (CONTRIBUTING.md).

export { compareBases, mismatches } from './judge.ts';
export { formatEnd } from './run.ts';
