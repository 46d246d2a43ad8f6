// Test face of `src/states`: what tests import from it that no public entry exports.
// Nothing in `src` imports it, and no bundle contains it (CONTRIBUTING.md).

export { isUnchanged, keptState, noted, stateDone, statesIn } from './states.ts';
