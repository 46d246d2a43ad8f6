import { createHash, randomUUID } from 'node:crypto';
import type { AcceptRequest, CompleteRequest } from '../../src/stores/index.ts';

/** How long an accept's record is kept. A day. */
export const RETENTION_MS = 86_400_000;

/** For how long an accept has its event. Ms. Longer than a test may take, so that it runs out only where a clock is moved. */
export const LEASE_MS = 300_000;

export const key = (n: number): string => `event-${String(n).padStart(4, '0')}-of-the-seller`;

export interface RequestDraft {
  readonly key?: string;
  readonly task?: string;
  readonly body?: string;
  readonly sender?: string;
}

/** An ordinary inline accept with a fresh nonce. */
export function acceptRequest(draft: RequestDraft = {}): AcceptRequest {
  const { key = 'event-0001-of-the-seller', body = '{"status":"completed"}' } = draft;
  return {
    acceptId: randomUUID(),
    sender: draft.sender ?? 'https://seller.example/mcp',
    mode: 'inline',
    nonce: { keyid: 'seller-2026', nonce: randomUUID(), nowMs: 0, expiresAtMs: 360_000 },
    event: {
      key,
      body: new TextEncoder().encode(body),
      rawHash: createHash('sha256').update(body).digest('hex'),
      onChanged: 'first-wins',
      ...(draft.task !== undefined && { task: { id: draft.task, terminal: false } }),
    },
    leaseMs: LEASE_MS,
    alone: true,
    limits: {
      maxRecordsPerSender: 1_000_000,
      maxPendingBytesPerSender: 268_435_456,
      maxNoncesPerKey: 100_000,
      maxNonces: 10_000_000,
    },
    retry: { attempts: 12, crashes: 5 },
    retentionMs: RETENTION_MS,
  };
}

/** What an inline accept holds when it has won. */
export function leaseOf({ sender, event, acceptId }: AcceptRequest): Omit<CompleteRequest, 'retentionMs'> {
  return { sender, key: event?.key ?? '', owner: acceptId };
}
