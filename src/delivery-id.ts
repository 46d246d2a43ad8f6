import type { Hashes } from './crypto/engine.ts';

/**
 * UUID version 8 (RFC 9562 §5.8) of SHA-256(sender, NUL, idempotency key): the same on every retry, so that it
 * serves as a job id or an upsert key anywhere.
 */
export function deliveryId(hashes: Hashes, sender: string, idempotencyKey: string): string {
  const digest = hashes.sha256Hex(`${sender}\0${idempotencyKey}`);
  const variant = '89ab'.charAt(Number.parseInt(digest.charAt(16), 16) & 3);
  return `${digest.slice(0, 8)}-${digest.slice(8, 12)}-8${digest.slice(13, 16)}-${variant}${digest.slice(17, 20)}-${digest.slice(20, 32)}`;
}
