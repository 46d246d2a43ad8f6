// The hashes of node:crypto, and `loadHashes`, which loads JavaScript hashes if the runtime has no node:crypto.
// Called by the receiver's startup and by all that can wait for hashes.

import type { Hashes, Sha256Stream } from './engine.ts';
import { type NodeCrypto, nodeCrypto } from './node-crypto.ts';

/** Converts Node's Buffer to a plain Uint8Array, so that callers get the same type on every runtime. */
function plain(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Returns the hashes of node:crypto; undefined if the runtime lacks node:crypto. */
export function nativeHashes(crypto: NodeCrypto | undefined = nodeCrypto()): Hashes | undefined {
  if (!crypto) return undefined;
  const digest = (data: Uint8Array): Uint8Array =>
    plain(crypto.hash?.('sha256', data, 'buffer') ?? crypto.createHash('sha256').update(data).digest());
  return {
    sha256: digest,
    sha256Hex: (data) =>
      crypto.hash?.('sha256', data, 'hex') ?? crypto.createHash('sha256').update(data).digest('hex'),
    sha256Stream: () => {
      const hash = crypto.createHash('sha256');
      const stream: Sha256Stream = {
        update: (data) => {
          hash.update(data);
          return stream;
        },
        hex: () => hash.digest('hex'),
      };
      return stream;
    },
    hmacSha256: (key, ...data) => {
      const mac = crypto.createHmac('sha256', key);
      for (const part of data) mac.update(part);
      return plain(mac.digest());
    },
  };
}

/**
 * Returns SHA-256 and HMAC-SHA256, synchronous: node:crypto's or, without it, those in JavaScript, loaded only then.
 */
export async function loadHashes(): Promise<Hashes> {
  return nativeHashes() ?? (await import('./noble-hashes.ts')).nobleHashes();
}
