// Test face of `src/poll`: what tests, bench and scripts import from it that no public entry exports.
// Nothing in `src` imports it, and no bundle contains it (CONTRIBUTING.md).

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
