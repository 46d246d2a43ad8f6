// Test face of `src/config`: what tests, bench and scripts import from it that no public entry exports.
// Nothing in `src` imports it, and no bundle contains it (CONTRIBUTING.md).

export { contentTypes } from './content-types.ts';
export { pressureThresholds } from './handed-in.ts';
export { publicUrlOf } from './public-url.ts';
export { resolveOptions } from './resolve-options.ts';
export { checkRevocation, publisherDomains } from './sender-source.ts';
export { numbersIn, OPTIONS, RETRY, WORKER } from './defaults.ts';
