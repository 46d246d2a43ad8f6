// Synchronous hashes for callers that cannot wait for `loadHashes`, for example a sender. These callers have the
// JavaScript implementation in their bundle; `loadHashes` loads it on demand.

import type { Hashes } from './engine.ts';
import { nativeHashes } from './native-hashes.ts';
import { nobleHashes } from './noble-hashes.ts';

/**
 * Returns SHA-256 and HMAC-SHA256, synchronous, for callers that cannot wait for `loadHashes`. The hashes are
 * node:crypto's if the runtime has it, otherwise JavaScript.
 * @param source `noble`: always JavaScript.
 */
export function createHashes(source?: 'noble'): Hashes {
  return (source === 'noble' ? undefined : nativeHashes()) ?? nobleHashes();
}
