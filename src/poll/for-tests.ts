// Exports names of `src/poll` that tests, benchmarks and scripts need, and no public entry has.
// Nothing in `src` imports this file, and no bundle contains it (CONTRIBUTING.md).

export { failureOf } from './failure.ts';
export { pollerOf } from './poller-options.ts';
export { pollerLoop, type PollerLoop } from './poller.ts';
export {
  beginPoll,
  type Begun,
  endPoll,
  type Held,
  type PlaceFreed,
  type Pace,
  type PollEnd,
} from './schedule.ts';
