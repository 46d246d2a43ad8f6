import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { parseInstant } from '../../events/instant.ts';
import type {
  AcceptDecision,
  AcceptRequest,
  AcceptResult,
  CompleteResult,
  EventClaim,
  FailRequest,
  FailResult,
  PeekResult,
  RetryLimits,
  Store,
  StoreLimits,
} from '../../stores/contract.ts';
import type { StoreEffects, StoreFactory } from './harness.ts';

/** A delivery in the words of a test; what it leaves out is ordinary. */
export interface Draft {
  /** The accept's id; fresh by default, the same for a resend. */
  readonly id?: string;
  readonly sender?: string;
  readonly mode?: 'inline' | 'inbox';
  readonly key?: string;
  /** Fresh by default; null: legacy authentication, which has none. */
  readonly nonce?: string | null;
  readonly keyid?: string;
  readonly nonceMs?: number;
  /** false: the body gave no event. */
  readonly event?: false;
  readonly body?: string;
  /** Canonical JSON, where the edition compares that. */
  readonly canonical?: string;
  readonly onChanged?: EventClaim['onChanged'];
  readonly task?: string;
  /** RFC 3339, or ms from now: the event's timestamp. */
  readonly at?: string | number;
  readonly terminal?: boolean;
  readonly notification?: string;
  readonly leaseMs?: number;
  readonly retentionMs?: number;
  readonly limits?: Partial<StoreLimits>;
  readonly retry?: Partial<RetryLimits>;
}

export const SENDER = 'https://seller.example/mcp';
export const KEY = 'event-0001-of-the-seller';
export const KEYID = 'seller-2026';
export const LEASE_MS = 8000;
export const HOUR_MS = 3_600_000;
export const DAY_MS = 86_400_000;

const LIMITS: StoreLimits = {
  maxRecordsPerSender: 1_000_000,
  maxPendingBytesPerSender: 268_435_456,
  maxNoncesPerKey: 100_000,
  maxNonces: 10_000_000,
};
const RETRY: RetryLimits = { attempts: 12, crashes: 5 };

export type Won = Extract<AcceptDecision, { kind: 'won' }>;

/** One test's store and its shorthand. */
export interface Kit {
  readonly a: Store;
  readonly b: Store;
  readonly effects: StoreEffects | undefined;
  readonly reopen: (() => Promise<Store>) | undefined;
  request(draft?: Draft): AcceptRequest;
  /** On handle `a` unless another is given. */
  accept(draft?: Draft, store?: Store): Promise<AcceptResult>;
  /** Accepts and expects `won`. */
  win(draft?: Draft, store?: Store): Promise<Won>;
  complete(owner: string, of?: Draft, store?: Store): Promise<CompleteResult>;
  fail(owner: string, of?: Draft & { permanent?: boolean }, store?: Store): Promise<FailResult>;
  renew(owner: string, of?: Draft, store?: Store): Promise<'renewed' | 'lost'>;
  peek(of?: Draft, store?: Store): Promise<PeekResult>;
  /** Accepts, expects `won`, completes. */
  apply(draft?: Draft): Promise<Won>;
  /** Moves the store's clock forward. */
  advance(ms: number): void;
  /** An instant that many ms from the store's now, RFC 3339. */
  fromNow(ms: number): string;
  unique(): string;
}

/** A test by its name, which states the rule. */
export type Cases = Readonly<Record<string, (kit: Kit) => Promise<void>>>;

export async function withKit(factory: StoreFactory, run: (kit: Kit) => Promise<void>): Promise<void> {
  const harness = await factory();
  try {
    await harness.a.open();
    await harness.b.open();
    let offsetMs = 0;
    let last = 0;
    const clock: Clock = {
      now: () => Date.now() + offsetMs,
      advance: (ms) => {
        offsetMs += ms;
        harness.setClockOffsetMs(offsetMs);
      },
      unique: () => `unique-${(last += 1)}-${'0'.repeat(16)}`,
    };
    await run({ ...actions(harness.a, clock), ...handles(harness, clock) });
  } finally {
    await harness.cleanup();
  }
}

interface Clock {
  readonly now: () => number;
  readonly advance: (ms: number) => void;
  readonly unique: () => string;
}

type Handles = Pick<Kit, 'a' | 'b' | 'effects' | 'reopen' | 'advance' | 'fromNow' | 'unique'>;

function handles(harness: Awaited<ReturnType<StoreFactory>>, clock: Clock): Handles {
  return {
    a: harness.a,
    b: harness.b,
    effects: harness.effects,
    reopen: harness.reopen && (() => harness.reopen?.() ?? Promise.reject(new Error('no reopen'))),
    advance: clock.advance,
    fromNow: (ms) => new Date(clock.now() + ms).toISOString(),
    unique: clock.unique,
  };
}

function actions(a: Store, clock: Clock): Omit<Kit, keyof Handles> {
  const request = (draft: Draft = {}): AcceptRequest => requestOf(draft, clock);
  const accept: Kit['accept'] = (draft, store = a) => store.accept(request(draft));
  const of = (draft: Draft = {}): { sender: string; key: string } => ({
    sender: draft.sender ?? SENDER,
    key: draft.key ?? KEY,
  });
  const win: Kit['win'] = async (draft, store) => expectWon(await accept(draft, store));
  const complete: Kit['complete'] = (owner, draft, store = a) =>
    store.complete({ ...of(draft), owner, retentionMs: draft?.retentionMs ?? DAY_MS });
  return {
    request,
    accept,
    win,
    complete,
    fail: (owner, draft = {}, store = a) => store.fail(failOf(owner, draft, of(draft))),
    renew: (owner, draft = {}, store = a) =>
      store.renew({ ...of(draft), owner, leaseMs: draft.leaseMs ?? LEASE_MS }),
    peek: (draft, store = a) => store.peek(of(draft).sender, of(draft).key),
    apply: async (draft) => {
      const won = await win(draft);
      assert.equal(await complete(won.lease.owner, draft), 'done');
      return won;
    },
  };
}

function failOf(
  owner: string,
  draft: Draft & { permanent?: boolean },
  of: { sender: string; key: string },
): FailRequest {
  return {
    ...of,
    owner,
    permanent: draft.permanent ?? false,
    retry: { ...RETRY, ...draft.retry },
    backoffMs: 60_000,
    retentionMs: draft.retentionMs ?? DAY_MS,
  };
}

function requestOf(draft: Draft, clock: Clock): AcceptRequest {
  const { nonce = clock.unique(), nonceMs = 360_000 } = draft;
  return {
    acceptId: draft.id ?? clock.unique(),
    sender: draft.sender ?? SENDER,
    mode: draft.mode ?? 'inline',
    ...(nonce !== null && {
      // The receiver's clock is none of the store's business: far off, only the difference counts.
      nonce: { keyid: draft.keyid ?? KEYID, nonce, nowMs: 1_000_000, expiresAtMs: 1_000_000 + nonceMs },
    }),
    ...(draft.event !== false && { event: eventOf(draft, clock) }),
    leaseMs: draft.leaseMs ?? LEASE_MS,
    limits: { ...LIMITS, ...draft.limits },
    retry: { ...RETRY, ...draft.retry },
    retentionMs: draft.retentionMs ?? DAY_MS,
  };
}

function eventOf(draft: Draft, clock: Clock): EventClaim {
  const body = draft.body ?? '{"status":"completed"}';
  return {
    key: draft.key ?? KEY,
    body: bytes(body),
    rawHash: sha256(body),
    ...(draft.canonical !== undefined && { canonicalHash: sha256(draft.canonical) }),
    onChanged: draft.onChanged ?? 'first-wins',
    ...(draft.task !== undefined && { task: { id: draft.task, ...instantOf(draft, clock) } }),
    ...(draft.notification !== undefined && { notificationId: draft.notification }),
  };
}

function instantOf(draft: Draft, clock: Clock): { instant?: string; instantMs?: number; terminal: boolean } {
  const terminal = draft.terminal ?? false;
  if (draft.at === undefined) return { terminal };
  const text = typeof draft.at === 'number' ? new Date(clock.now() + draft.at).toISOString() : draft.at;
  const instant = parseInstant(text);
  assert.ok(instant, `${text} is an instant`);
  return { instant: instant.key, instantMs: instant.ms, terminal };
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

export function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

export function text(body: Uint8Array | undefined): string | undefined {
  return body && new TextDecoder().decode(body);
}

/** @throws AssertionError where the accept did not win. */
export function expectWon(result: AcceptResult): Won {
  assert.equal(result.kind, 'won');
  return result as Won;
}

/** Without `pressure`, which most rules do not speak of. */
export function decision(result: AcceptResult): AcceptDecision {
  const { pressure: _pressure, ...rest } = result;
  return rest as AcceptDecision;
}
