// Exports names of `src/keys` that tests, benchmarks and scripts need, and no public entry has.
// Nothing in `src` imports this file, and no bundle contains it (CONTRIBUTING.md).

export type { AdAgents } from './adagents.ts';
export { createKeyHistory, createPressureGauge } from './admission-pressure.ts';
export { entriesOf } from './agent-entry.ts';
export { brandJsonUrl, createLocate, type Location, nearMisses, nearMissText } from './agent-location.ts';
export { type BrandJson, brandJsonKind } from './brand-json.ts';
export type { Candidate, KeyRequest, KeyResolver, KeySearch, RevocationState } from './key-resolver.ts';
export { type Declared, declaredRow } from './declarations.ts';
export { createDocumentCache, type DocumentCache } from './document-cache.ts';
export {
  type CacheLimits,
  type CacheOptions,
  type Copy,
  type CopyResult,
  type DocumentKind,
  type Freshness,
  isWithin,
  type Parsed,
} from './document.ts';
export { allKeys, heldKeys, importedKey, JWKS, type KeySet, sameJwk } from './jwks.ts';
export { createKeyRecords } from './key-records.ts';
export { gather } from './key-search.ts';
export { backOffMs, KEY_DOCUMENT_LIFE, lifetimeMs, refreshAfterMs } from './lifetimes.ts';
export {
  addressNotPublicReason,
  type Block,
  IPV4_BEYOND,
  IPV4_SPECIAL,
  IPV6_BEYOND,
  IPV6_SPECIAL,
  parseAddress,
  sameAddress,
  sharesPrefix,
  urlRefusedReason,
} from './net/addresses.ts';
export {
  connectAny,
  type Dial,
  dnsModule,
  exchange,
  netModules,
  type NetModules,
  plainFailure,
  systemDial,
} from './net/connection.ts';
export {
  createSellerQueue,
  directResolve,
  publicAddresses,
  type Resolve,
  systemResolve,
} from './net/name-lookup.ts';
export { defaultFetch, platformFetch, nodeFetch, type NodeFetchOptions } from './net/document-fetch.ts';
export { keysOnDemand } from './on-demand.ts';
export { checkPins } from './pinned-jwks.ts';
export { registrableDomain, sameRegistrableDomain } from './registrable-domain.ts';
export { createPins, type PinnedSender } from './pins.ts';
export { ADAGENTS, createPublisherListings, type Listing, mapConcurrently } from './publisher-pins.ts';
export { createKeyResolver, KEY_LIMITS, type KeyResolverOptions } from './resolver.ts';
export { claimsToBeList, parsePublished, revocationKind } from './revocation-list.ts';
export {
  createRegisters,
  MAX_KID_CHARACTERS,
  MAX_KIDS,
  newRegister,
  registerBytes,
  take,
} from './revocation-registers.ts';
export {
  type FetchBudget,
  fetchDocument,
  type Fetched,
  type FetchRules,
  unlimitedBudget,
} from './safe-fetch.ts';
export type { SenderMatch } from './key-search-contract.ts';
