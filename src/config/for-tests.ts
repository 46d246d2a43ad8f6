// Test face of `src/config`: what tests, bench and scripts import from it that no public entry exports.
// Nothing in `src` imports it, and no bundle contains it (CONTRIBUTING.md).

export { contentTypes } from './content-types.ts';
export { pressureThresholds } from './parts.ts';
export { publicUrlOf } from './public-url.ts';
export { resolveOptions } from './resolve.ts';
export { checkRevocation, publisherDomains } from './senders.ts';
export { numbersIn, OPTIONS, RETRY, WORKER } from './table.ts';
