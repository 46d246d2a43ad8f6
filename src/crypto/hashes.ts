import type { Hashes } from './engine.ts';
import { nativeHashes } from './native-hashes.ts';
import { nobleHashes } from './noble-hashes.ts';

/**
 * SHA-256 and HMAC-SHA256, synchronous, for those who cannot wait for `loadHashes`: node:crypto's where the runtime has
 * it, else JavaScript.
 * @param source `noble` passes node:crypto over.
 */
export function createHashes(source?: 'noble'): Hashes {
  return (source === 'noble' ? undefined : nativeHashes()) ?? nobleHashes();
}
