import { createHashes } from '../crypto/hashes.ts';
import { storedId } from '../stages/stored-id.ts';
import type { AcceptRequest, Store } from '../stores/contract.ts';
import type { Setup } from './subject.ts';

/** Longer than any vector lasts, in ms: what is burned stays burned. */
const LIFE_MS = 600_000;

function burning(sender: string, keyid: string, nonce: string, nowMs: number): AcceptRequest {
  return {
    acceptId: `burned ${keyid} ${nonce}`,
    sender,
    mode: 'inline',
    nonce: { keyid, nonce, nowMs, expiresAtMs: nowMs + LIFE_MS },
    leaseMs: 8_000,
    limits: {
      maxRecordsPerSender: 1_000,
      maxPendingBytesPerSender: 1_000,
      maxNoncesPerKey: 1_000,
      maxNonces: 1_000,
    },
    retry: { attempts: 1, crashes: 1 },
    retentionMs: 86_400_000,
  };
}

/** Brings the store into the vector's state as deliveries would have: nonces without an event (`Store.accept`). */
export async function burnNonces(
  store: Store,
  { senders, usedNonces, fullKids, nowMs }: Setup,
): Promise<void> {
  const hashes = createHashes();
  const id = (text: string): string => storedId(text, hashes);
  const filling = fullKids.map((keyid) => ({ keyid, nonce: 'the nonce that fills the cap' }));
  for (const { agentUrl } of senders) {
    for (const { keyid, nonce } of [...usedNonces, ...filling]) {
      await store.accept(burning(agentUrl, id(keyid), id(nonce), nowMs));
    }
  }
}
