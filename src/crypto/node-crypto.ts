// `node:crypto` as far as it is used, without an import, so that the core bundles for any runtime.
// Called by the native engine, hashes and the thread pool.

import type { PublicJwk } from './public-key.ts';

interface Digest {
  /** Hashes a string as UTF-8. */
  update(data: Uint8Array | string): Digest;
  digest(): Uint8Array;
  digest(encoding: 'hex'): string;
}

/**
 * The part of `node:crypto` that is used, written out so that the core needs neither the module nor its
 * types.
 */
export interface NodeCrypto {
  createPublicKey(input: { readonly key: PublicJwk; readonly format: 'jwk' }): object;
  verify(algorithm: string | null, data: Uint8Array, key: object, signature: Uint8Array): boolean;
  /** Verifies on a thread of the pool, if the runtime has one. */
  verify(
    algorithm: string | null,
    data: Uint8Array,
    key: object,
    signature: Uint8Array,
    done: (error: unknown, verdict: boolean) => void,
  ): unknown;
  createHash(algorithm: 'sha256'): Digest;
  createHmac(algorithm: 'sha256', key: Uint8Array): Digest;
  /** Twice as fast on short input. Node has it, but not every runtime that resembles Node. */
  hash?(algorithm: 'sha256', data: Uint8Array, encoding: 'buffer'): Uint8Array;
  hash?(algorithm: 'sha256', data: Uint8Array | string, encoding: 'hex'): string;
}

/** `node:crypto` if the runtime has it (Node, Bun, Deno, workerd with nodejs_compat), without an import. */
export function nodeCrypto(): NodeCrypto | undefined {
  return globalThis.process?.getBuiltinModule?.('node:crypto') as NodeCrypto | undefined;
}
