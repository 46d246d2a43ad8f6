// Exports names of `src/states` that tests, benchmarks and scripts need, and no public entry has.
// Nothing in `src` imports this file, and no bundle contains it (CONTRIBUTING.md).

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
