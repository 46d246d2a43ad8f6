import { hmac } from '@noble/hashes/hmac.js';
import { sha256 } from '@noble/hashes/sha2.js';
import type { Hashes } from './engine.ts';
import { type NodeCrypto, nodeCrypto } from './node-crypto.ts';

const HEX: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

/** Lower-case hexadecimal. */
export function hex(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += HEX[byte];
  return text;
}

/** Node gives a Buffer; callers get the same plain view on every runtime. */
function plain(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function nodeHashes(crypto: NodeCrypto): Hashes {
  const digest = (data: Uint8Array): Uint8Array =>
    plain(crypto.hash?.('sha256', data, 'buffer') ?? crypto.createHash('sha256').update(data).digest());
  return {
    sha256: digest,
    sha256Hex: (data) => hex(digest(data)),
    hmacSha256: (key, ...data) => {
      const mac = crypto.createHmac('sha256', key);
      for (const part of data) mac.update(part);
      return plain(mac.digest());
    },
  };
}

function nobleHashes(): Hashes {
  return {
    sha256,
    sha256Hex: (data) => hex(sha256(data)),
    hmacSha256: (key, ...data) => {
      const mac = hmac.create(sha256, key);
      for (const part of data) mac.update(part);
      return mac.digest();
    },
  };
}

/**
 * SHA-256 and HMAC-SHA256, synchronous: node:crypto's where the runtime has it, else JavaScript (WebCrypto has only
 * asynchronous ones).
 * @param source `noble` passes node:crypto over.
 */
export function createHashes(source?: 'noble'): Hashes {
  const crypto = source === 'noble' ? undefined : nodeCrypto();
  return crypto ? nodeHashes(crypto) : nobleHashes();
}
