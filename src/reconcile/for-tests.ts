// Exports names of `src/reconcile` that tests, benchmarks and scripts need, and no public entry has.
// Nothing in `src` imports this file, and no bundle contains it (CONTRIBUTING.md).

export { accountOf } from './account.ts';
export { openFor } from './closing.ts';
export { finalDueAt, owing } from './evaluate.ts';
export { factsIn, isOlder, type MediaBuyFacts, mediaBuyRows, withFacts } from './media-buys.ts';
export { askable, missedAgain, nextTry, stillMissed } from './missed.ts';
export { pullCall, pulledWindows, unpullable } from './pull.ts';
export { reconcilerOf } from './reconciler-options.ts';
export { withSchedule } from './schedule-option.ts';
export { differences, theirTotals, totalsArguments, triedAgain } from './totals.ts';
