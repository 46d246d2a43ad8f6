import { randomUUID } from 'node:crypto';
import type { Store } from '../../dist/index.js';
import type { AcceptRequest } from '../../dist/store.js';
import { envelope } from './deliveries.ts';
import { concurrently } from './measure.ts';

export const SENDER = 'https://seller.example/mcp';

const BODY = envelope(1, 1024);
const HASH = '3b7c0f4a9d2e51860c4f7a8b9d6e3f2013c5a7e9b1d3f50724681ace0bdf9753';

const UNLIMITED = Number.MAX_SAFE_INTEGER;

export interface AcceptDraft {
  /** Names the event; also its place in its task's order. */
  readonly at: number;
  readonly task: string;
  /** As under a legacy scheme: for records that are there before anything is measured. */
  readonly withoutNonce?: boolean;
}

const keyOf = (at: number): string => `0a9c3e52-0000-4000-8000-${String(at).padStart(12, '0')}`;

/** An inline accept of a task's status, 1 KB, as the receiver makes it. */
export function acceptRequest({ at, task, withoutNonce }: AcceptDraft): AcceptRequest {
  const nonce = { keyid: 'seller-2026', nonce: randomUUID(), nowMs: 0, expiresAtMs: 360_000 };
  return {
    acceptId: randomUUID(),
    sender: SENDER,
    mode: 'inline',
    ...(!withoutNonce && { nonce }),
    event: {
      key: keyOf(at),
      body: BODY,
      rawHash: HASH,
      onChanged: 'first-wins',
      task: {
        id: task,
        instant: `${String(at).padStart(12, '0')}.`,
        instantMs: at * 1000,
        terminal: false,
      },
    },
    // Nothing runs out, and nobody renews.
    leaseMs: 600_000,
    limits: {
      maxRecordsPerSender: UNLIMITED,
      maxPendingBytesPerSender: UNLIMITED,
      maxNoncesPerKey: UNLIMITED,
      maxNonces: UNLIMITED,
    },
    retry: { attempts: 12, crashes: 5 },
    retentionMs: 86_400_000,
  };
}

/** @throws Error unless the accept is the first of its event. */
export async function acceptOne(store: Store, request: AcceptRequest): Promise<void> {
  const { kind } = await store.accept(request);
  if (kind !== 'won') throw new Error(`${store.name}: the accept is ${kind}`);
}

export async function completeOne(
  store: Store,
  { acceptId, event, retentionMs }: AcceptRequest,
): Promise<void> {
  const key = event?.key ?? '';
  const done = await store.complete({ sender: SENDER, key, owner: acceptId, retentionMs });
  if (done !== 'done') throw new Error(`${store.name}: the completion is ${done}`);
}

/** Events of one task: what a store holds for a while. */
const EVENTS_PER_TASK = 4;
const WIDTH = 128;
const CHUNK = 20_000;

/** Fills a store with events that are done. Ends of `from` to `to` are the events' numbers. */
export async function fill(store: Store, from: number, to: number): Promise<void> {
  // Neighbours are of different tasks, so that no accept waits for another.
  const tasks = Math.max(2 * WIDTH, Math.ceil((to - from) / EVENTS_PER_TASK));
  for (let start = from; start < to; start += CHUNK) {
    const count = Math.min(CHUNK, to - start);
    await concurrently(count, WIDTH, async (index) => {
      const at = start + index;
      const request = acceptRequest({ at, task: `held-${at % tasks}`, withoutNonce: true });
      await acceptOne(store, request);
      await completeOne(store, request);
    });
  }
}

/** @throws Error unless the store was filled up to `to`: another process may have been told the wrong place. */
export async function requireFilled(store: Store, to: number): Promise<void> {
  const found = await store.peek(SENDER, keyOf(to - 1));
  if (found !== 'applied') throw new Error(`${store.name}: the last one of ${to} records is ${found}`);
}
