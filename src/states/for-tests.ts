// Test face of `src/states`: what tests import from it that no public entry exports.
// Nothing in `src` imports it, and no bundle contains it (CONTRIBUTING.md).

export { judged, SETTLE_MS, type SnapshotAnswer } from './judge.ts';
export {
  isUnchanged,
  keptState,
  type KeptState,
  noted,
  stateDone,
  type StateHolder,
  statesIn,
} from './states.ts';
