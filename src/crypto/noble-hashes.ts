// Hashes in JavaScript, for runtimes without node:crypto.
// Loaded on demand by `loadHashes`; `createHashes` has them in its bundle.

import { hmac } from '@noble/hashes/hmac.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { hex, utf8 } from '../codec/encoding.ts';
import type { Hashes, Sha256Stream } from './engine.ts';

/** Returns hashes in JavaScript, because WebCrypto has only asynchronous ones. */
export function nobleHashes(): Hashes {
  return {
    sha256,
    sha256Hex: (data) => hex(sha256(typeof data === 'string' ? utf8(data) : data)),
    sha256Stream: () => {
      const hash = sha256.create();
      const stream: Sha256Stream = {
        update: (data) => {
          hash.update(data);
          return stream;
        },
        hex: () => hex(hash.digest()),
      };
      return stream;
    },
    hmacSha256: (key, ...data) => {
      const mac = hmac.create(sha256, key);
      for (const part of data) mac.update(part);
      return mac.digest();
    },
  };
}
