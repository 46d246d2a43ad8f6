import { createHash } from 'node:crypto';
import type { AcceptRequest, EventClaim, Store, StoreInbox } from '../../../src/index.ts';

export type InboxStore = Store & { readonly inbox: StoreInbox };

export const SENDER = 'https://seller.example/mcp';
export const RETENTION_MS = 86_400_000;
export const RETRY = { attempts: 12, crashes: 5 };

export const keyOf = (n: number): string => `event-${String(n).padStart(4, '0')}-of-the-seller`;
export const bodyOf = (n: number): Uint8Array => new TextEncoder().encode(`{"event":${n},"note":"é"}`);

interface Draft extends Partial<Pick<EventClaim, 'task' | 'notificationId' | 'report'>> {
  readonly mode?: AcceptRequest['mode'];
  /** Else the event's own. */
  readonly nonce?: string;
}

/** Ids are fixed: what is written can be asked for later. */
export function acceptOf(n: number, { mode = 'inline', nonce, ...event }: Draft = {}): AcceptRequest {
  const body = bodyOf(n);
  return {
    acceptId: `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
    sender: SENDER,
    mode,
    nonce: { keyid: 'seller-2026', nonce: nonce ?? `nonce-${n}`, nowMs: 0, expiresAtMs: 360_000 },
    event: {
      key: keyOf(n),
      body,
      rawHash: createHash('sha256').update(body).digest('hex'),
      onChanged: 'first-wins',
      ...event,
    },
    leaseMs: 600_000,
    limits: {
      maxRecordsPerSender: 1_000_000,
      maxPendingBytesPerSender: 268_435_456,
      maxNoncesPerKey: 100_000,
      maxNonces: 10_000_000,
    },
    retry: RETRY,
    retentionMs: RETENTION_MS,
  };
}

export const task = (id: string, day: number): Required<Pick<Draft, 'task'>> => {
  const instant = `2026-01-0${day}T00:00:00Z`;
  return { task: { id, instant, instantMs: Date.parse(instant), terminal: false } };
};

export const REPORT = { report: { mediaBuyIds: ['buy-1'], final: true } };
export const NOTE = { notificationId: 'note-1' };

/** A seller's retry: another accept of the same key. */
export const again = (request: AcceptRequest): AcceptRequest => ({
  ...request,
  acceptId: `${request.acceptId.slice(0, -2)}f${request.acceptId.at(-1)}`,
  ...(request.nonce && { nonce: { ...request.nonce, nonce: `${request.nonce.nonce}-again` } }),
});

async function applied(store: Store, request: AcceptRequest): Promise<void> {
  await store.accept(request);
  const { sender, event, acceptId: owner, retentionMs } = request;
  await store.complete({ sender, key: event?.key ?? '', owner, retentionMs });
}

/** One event in every state, with whatever has rows of its own. */
export async function writeHistory(store: InboxStore): Promise<void> {
  await store.accept(acceptOf(1, { mode: 'inbox' }));
  await applied(store, acceptOf(2, task('task-2', 2)));
  const third = acceptOf(3);
  await store.accept(third);
  await store.fail({
    sender: SENDER,
    key: keyOf(3),
    owner: third.acceptId,
    permanent: true,
    retry: RETRY,
    backoffMs: 0,
    error: 'the handler failed',
    retentionMs: RETENTION_MS,
  });
  await store.accept(acceptOf(4, task('task-4', 2)));
  await store.accept(acceptOf(5, { mode: 'inbox', ...task('task-4', 3) }));
  await applied(store, acceptOf(6, NOTE));
  await applied(store, acceptOf(7, REPORT));
  const { event: _none, ...burned } = acceptOf(8);
  await store.accept(burned);
}
