// Exports names of `src/config` that tests, benchmarks and scripts need, and no public entry has.
// Nothing in `src` imports this file, and no bundle contains it (CONTRIBUTING.md).

export { contentTypes } from './content-types.ts';
export { pressureThresholds } from './handed-in.ts';
export { publicUrlOf } from './public-url.ts';
export { type Config, resolveOptions } from './resolve-options.ts';
export { checkRevocation, publisherDomains } from './sender-source.ts';
export { ADVANCED, numbersIn, OPTIONS, RETRY, WORKER } from './defaults.ts';
export { MAX_TIMER_MS } from './validate.ts';
