// Shorthand of the store contract for what workers and operators do: leases, pages, records.
// Called by the cases that need an inbox.
import assert from 'node:assert/strict';
import type {
  InboxPage,
  InboxRecord,
  LeaseDueRequest,
  LeaseDueResult,
  LeasedEvent,
  RetryLimits,
  Store,
  StoreInbox,
} from '../../stores/store.ts';
import type { Kit } from './kit.ts';
import { DAY_MS, KEY, LEASE_MS, RETRY, SENDER } from './kit.ts';

export const INBOX = { mode: 'inbox' } as const;

export const key = (n: number): string => `event-${String(n).padStart(4, '0')}-of-the-seller`;

/** A worker's call of `StoreInbox.lease`, as a case describes it. */
export interface LeaseDraft {
  /** The id of the owner of the leases. Default: a new one. */
  readonly owner?: string;
  /** The most events to lease. Default: 10. */
  readonly max?: number;
  readonly leaseMs?: number;
  readonly process?: string;
  readonly alone?: boolean;
  /** Keys of events of `SENDER` that must not be leased. */
  readonly except?: readonly string[];
  readonly retry?: Partial<RetryLimits>;
  readonly senders?: readonly string[];
}

export function inboxOf(store: Store): StoreInbox {
  assert.ok(store.inbox, 'the store has an inbox');
  return store.inbox;
}

/** Leases events on handle `a`, unless another handle is given. */
export function lease(kit: Kit, draft: LeaseDraft = {}, store: Store = kit.a): Promise<LeaseDueResult> {
  const request: LeaseDueRequest = {
    owner: draft.owner ?? kit.unique(),
    max: draft.max ?? 10,
    leaseMs: draft.leaseMs ?? LEASE_MS,
    ...(draft.process !== undefined && { process: draft.process }),
    ...(draft.alone !== undefined && { alone: draft.alone }),
    ...(draft.except && { except: draft.except.map((key) => ({ sender: SENDER, key })) }),
    retry: { ...RETRY, ...draft.retry },
    retentionMs: DAY_MS,
    senders: draft.senders ?? [SENDER],
  };
  return inboxOf(store).lease(request);
}

/** Leases events, and asserts that there is exactly one. */
export async function leaseOne(kit: Kit, draft: LeaseDraft = {}, store?: Store): Promise<LeasedEvent> {
  const { events } = await lease(kit, draft, store);
  assert.equal(events.length, 1, 'one event is due');
  return events[0] ?? assert.fail();
}

/** Leases events, and returns their keys in the order of the answer. */
export async function leasedKeys(kit: Kit, draft: LeaseDraft = {}): Promise<readonly string[]> {
  return (await lease(kit, draft)).events.map(({ key }) => key);
}

/** Leases events, and asserts that none is leased and none becomes DEAD. */
export async function leaseNone(kit: Kit, draft: LeaseDraft = {}, store?: Store): Promise<LeaseDueResult> {
  const result = await lease(kit, draft, store);
  assert.deepEqual(result.events, []);
  assert.deepEqual(result.died, []);
  return result;
}

export async function seen(kit: Kit, key: string, sender: string = SENDER): Promise<InboxRecord> {
  const record = await inboxOf(kit.b).inspect(sender, key);
  assert.ok(record, `${key} is known`);
  return record;
}

/** Returns all pages of a list, and asserts that none is longer than `limit`. */
export async function pagesOf(
  kit: Kit,
  state: 'queued' | 'leased' | 'dead',
  limit: number,
  sender?: string,
): Promise<readonly InboxPage[]> {
  const pages: InboxPage[] = [];
  const of = { state, limit, ...(sender !== undefined && { sender }) };
  let next: string | undefined;
  do {
    const page = await inboxOf(kit.b).list({ ...of, ...(next !== undefined && { after: next }) });
    assert.ok(page.records.length <= limit, 'a page is no longer than its limit');
    pages.push(page);
    next = page.next;
  } while (next !== undefined && pages.length < 100);
  return pages;
}

/** Accepts an event, leases it, and lets it fail for good, so that it becomes DEAD. */
export async function kill(kit: Kit, of: string = KEY): Promise<void> {
  await kit.accept({ mode: 'inbox', key: of, body: 'the first copy' });
  const { events } = await lease(kit, { owner: 'worker' });
  assert.ok(events.some((event) => event.key === of));
  assert.equal(await kit.fail('worker', { key: of, permanent: true, error: 'no such media buy' }), 'dead');
}
