// Exports names of `src/crypto` that tests, benchmarks and scripts need, and no public entry has.
// Nothing in `src` imports this file, and no bundle contains it (CONTRIBUTING.md).

export { engineWorks, type Sodium } from './engine.ts';
export { equalBytes } from './equal.ts';
export { createHashes } from './hashes.ts';
export { loadHashes } from './native-hashes.ts';
export { derSignature } from './native.ts';
export { nobleHashes } from './noble-hashes.ts';
export { type NodeCrypto, nodeCrypto } from './node-crypto.ts';
export { hasThreadPool, type NodeVerify, pooledVerify, threadRule } from './pool.ts';
export { sodiumEngine } from './sodium.ts';
export {
  ed25519InvalidReason,
  ed25519SignatureFits,
  p256InvalidReason,
  p256SignatureFits,
  readPublicKey,
  type Verifier,
  withPrechecks,
} from './public-key.ts';
