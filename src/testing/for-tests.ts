// Test face of `src/testing`: what tests, bench and scripts import from it that no public entry exports.
// Nothing in `src` imports it, and no bundle contains it (CONTRIBUTING.md).

export { SAMPLE_FAMILIES } from './payloads.ts';
export { sampleChallenge } from './seller-delivery.ts';
export { FAULTS } from './seller-documents.ts';
export { DEFAULT_RETRY, isFinal, post, untilFinal } from './seller-post.ts';
export { listedIds, registrationsOf } from './store-contract/registrations.ts';
