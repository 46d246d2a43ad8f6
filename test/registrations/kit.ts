import { createHmac, hkdfSync } from 'node:crypto';
import { createHashes } from '../../src/crypto/for-tests.ts';
import type { RandomBytes } from '../../src/registrations/for-tests.ts';

export const NEWEST = 'newest-secret-of-forty-two-characters-0001';
export const OLDER = 'older-secret-of-forty-two-characters-00002';
export const FOREIGN = 'a-secret-of-somebody-else-of-40-characters';

/** What `rewrap` says where no row is damaged. */
export const WHOLE = { damaged: 0, firstDamaged: [] } as const;

export const hashes = createHashes();

/** 0, 1, 2 … and on with each call, so that no two calls give the same. */
export function counted(): RandomBytes {
  let next = 0;
  return (count) => Uint8Array.from({ length: count }, () => next++);
}

/* The same, made by node:crypto alone. */

export function hkdf(secret: string, purpose: string): Buffer {
  const info = `proto-webhooks/registrations/${purpose}`;
  return Buffer.from(hkdfSync('sha256', secret, Buffer.alloc(0), info, 32));
}

export function idOf(secret: string): Buffer {
  return hkdf(secret, 'id').subarray(0, 4);
}

export function hmac(key: Uint8Array, data: Uint8Array | string): Buffer {
  return createHmac('sha256', key).update(data).digest();
}
