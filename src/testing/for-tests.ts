// Exports names of `src/testing` that tests, benchmarks and scripts need, and no public entry has.
// Nothing in `src` imports this file, and no bundle contains it (CONTRIBUTING.md).

export { tellDev } from './dev-post.ts';
export {
  type Altered,
  alteredBy,
  firstOf,
  type Given,
  type Headers,
  type MistakeKey,
  type MistakePart,
  type MistakeUse,
  type Rows,
  type WrongDelivery,
} from './mistake-row.ts';
export { ENVELOPES } from './mistakes-envelope.ts';
export { COMPONENTS, PARAMETER_VALUES, WINDOWS } from './mistakes-profile.ts';
export { BODIES, GUARDED, SCHEMES } from './mistakes-request.ts';
export {
  DIGESTS,
  HOSTS,
  OTHER_URLS,
  OTHER_VALUES,
  SIGNATURES,
  UNFIT_KEYS,
  UNKNOWN_KEYS,
} from './mistakes-signature.ts';
export { BYTE_SEQUENCES, NEWER_ITEMS, PARAMETER_SYNTAX, PRESENCE } from './mistakes-syntax.ts';
export { mistakesFor, PARTS, WRONG_DELIVERIES } from './mistakes.ts';
export { SAMPLE_FAMILIES } from './payloads.ts';
export { sampleChallenge } from './seller-delivery.ts';
export { FAULTS } from './seller-documents.ts';
export { DEFAULT_RETRY, isFinal, post, untilFinal } from './seller-post.ts';
export { listedIds, registrationsOf } from './store-contract/registration-rows.ts';
