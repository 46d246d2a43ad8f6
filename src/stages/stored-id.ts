import type { Hashes } from '../crypto/engine.ts';

/**
 * Ids come from senders and may be of any length and hold any code unit, which not every backend takes. Those that
 * a plain key cannot hold are stored by their hash; JSON keeps lone surrogates apart, which UTF-8 would not.
 */
export function storedId(id: string, hashes: Hashes): string {
  if (/^[\x20-\x7e]{1,255}$/.test(id)) return id;
  return `sha-256:${hashes.sha256Hex(JSON.stringify(id))}`;
}
