import { createHmac, hkdfSync } from 'node:crypto';
import { createHashes } from '../../src/crypto/for-tests.ts';
import type { Store } from '../../src/index.ts';
import type { RandomBytes } from '../../src/registrations/for-tests.ts';
import type { StoreRegistrations } from '../../src/stores/index.ts';

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

/** How long the looks at subscriptions and moves of `withoutSets` wait, which a `sleep` knows them by. Ms. */
export const SETS_LOOK_MS = 9_999;

/** The store, without sets of subscriptions and moves: where a `sleep` moves the clock, their looks must not move it too. */
export function withoutSets<S extends Store>(store: S): S {
  const { registrations } = store;
  if (!registrations) throw new TypeError('the store keeps no registrations');
  const due: StoreRegistrations['due'] = async (request) =>
    request.kind === 'operation' ? registrations.due(request) : { rows: [], nextDueMs: SETS_LOOK_MS };
  return { ...store, registrations: { ...registrations, due } };
}

/** Resolves when the signal fires. */
export const aborted = (signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve) => {
    if (signal?.aborted) resolve();
    else signal?.addEventListener('abort', () => resolve());
  });
