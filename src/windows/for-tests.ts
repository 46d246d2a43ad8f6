// Exports names of `src/windows` that tests, benchmarks and scripts need, and no public entry has.
// Nothing in `src` imports this file, and no bundle contains it (CONTRIBUTING.md).

export { type Clock, type Frequency, UTC, clockOf, windowAt, windowPeriod } from './calendar.ts';
export { type Runs, common, count, has, packRuns, union, unpackRuns, without } from './runs.ts';
export {
  type Claimed,
  type Reported,
  type Stream,
  claimedIn,
  completedIn,
  emptyStream,
  hadIn,
  placedAnew,
  standsIn,
  streamIn,
  streamText,
} from './stream.ts';
export { type Terms, joined, owedRuns, withTerms } from './terms.ts';
export { type Told, withHeard, withTold } from './told.ts';
