import { hex } from './codec/hex.ts';
import type { Hashes } from './crypto/engine.ts';

const encoder = new TextEncoder();

/**
 * UUID version 8 (RFC 9562 §5.8) of SHA-256(sender, NUL, idempotency key): the same on every retry, so that it
 * serves as a job id or an upsert key anywhere.
 */
export function deliveryId(hashes: Hashes, sender: string, idempotencyKey: string): string {
  const digest = hashes.sha256(encoder.encode(`${sender}\0${idempotencyKey}`)).slice(0, 16);
  digest[6] = ((digest[6] ?? 0) & 0x0f) | 0x80;
  digest[8] = ((digest[8] ?? 0) & 0x3f) | 0x80;
  return hex(digest).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
