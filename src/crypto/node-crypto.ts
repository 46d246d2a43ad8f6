// The part of `node:crypto` that is used, obtained without an import, so that the core can be bundled for any runtime.
// Called by the native engine, hashes and the thread pool.

import type { PublicJwk } from './public-key.ts';

interface Digest {
  /** Adds data to the hash; a string is taken as UTF-8. */
  update(data: Uint8Array | string): Digest;
  digest(): Uint8Array;
  digest(encoding: 'hex'): string;
}

/**
 * The types of the part of `node:crypto` that is used. They are written out so that the core does not depend on Node's
 * types.
 */
export interface NodeCrypto {
  createPublicKey(input: { readonly key: PublicJwk; readonly format: 'jwk' }): object;
  verify(algorithm: string | null, data: Uint8Array, key: object, signature: Uint8Array): boolean;
  /** Verifies on a thread of the runtime's pool, if there is one, and calls `done`. */
  verify(
    algorithm: string | null,
    data: Uint8Array,
    key: object,
    signature: Uint8Array,
    done: (error: unknown, verdict: boolean) => void,
  ): unknown;
  createHash(algorithm: 'sha256'): Digest;
  createHmac(algorithm: 'sha256', key: Uint8Array): Digest;
  /**
   * Hashes in one call, twice as fast as `createHash` on short input. Node has this function, but not every runtime
   * that resembles Node.
   */
  hash?(algorithm: 'sha256', data: Uint8Array, encoding: 'buffer'): Uint8Array;
  hash?(algorithm: 'sha256', data: Uint8Array | string, encoding: 'hex'): string;
}

/** Returns `node:crypto` without an import, if the runtime has it (Node, Bun, Deno, workerd with nodejs_compat). */
export function nodeCrypto(): NodeCrypto | undefined {
  return globalThis.process?.getBuiltinModule?.('node:crypto') as NodeCrypto | undefined;
}
