// Entry `proto-webhooks/testing`: a seller on loopback for tests of your own handlers, and a test suite for your own
// store.

export {
  createFakeSeller,
  type DeliverOptions,
  type FakeSeller,
  type FakeSellerOptions,
} from './fake-seller.ts';
export { devHooks, type DevHookOptions, type DevHooks } from './dev-hooks.ts';
export type { SampleFamily } from './payloads.ts';
export { MISTAKES, type Mistake } from './mistakes.ts';
export { samplePayloads, type Members, type SamplePayloadOptions, type SamplePayloads } from './payloads.ts';
export type { ChallengeResult } from './seller-types.ts';
export type { PostOutcome, PostResult } from './seller-post.ts';
export type { NamedFault, SellerFault } from './seller-documents.ts';
export type { RotateOptions, SellerKeyName } from './seller-keys.ts';
export type { RevokeOptions } from './seller-keys.ts';
export type { Attempt, DeliveryResult, RetryPolicy } from './seller-post.ts';
export type { KeyPair, PayloadInput, SignedDelivery, SignDeliveryOptions } from '../sender/sign.ts';
export type { ReportsAuth, Sender, SenderAuth } from '../config/sender-entry.ts';
export {
  describeStoreContract,
  type StoreContractOptions,
  type StoreEffects,
  type StoreFactory,
  type StoreHarness,
} from './store-contract.ts';
