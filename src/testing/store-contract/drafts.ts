// Makes the requests of the store contract from drafts, in which a case names only the members that matter.
// Called by kit.ts, which passes the requests to the store.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { parseInstant } from '../../events/instant.ts';
import type {
  AcceptRequest,
  EventClaim,
  FailRequest,
  RetryLimits,
  StateClaim,
  StoreLimits,
  ToldClaim,
} from '../../stores/store.ts';

/** A delivery as a case describes it. Each member that is left out has a default. */
export interface Draft {
  /** The id of the call of `accept`. Default: a new one. A case that passes the same id again repeats the call. */
  readonly id?: string;
  readonly sender?: string;
  readonly mode?: 'inline' | 'inbox';
  readonly key?: string;
  /** The nonce. Default: a new one. Null: no nonce, as with HMAC or a bearer token. */
  readonly nonce?: string | null;
  readonly keyid?: string;
  readonly nonceMs?: number;
  /** False if the body has no valid event. */
  readonly event?: false;
  readonly body?: string;
  /** The body as canonical JSON. Present if the protocol version compares bodies in this form. */
  readonly canonical?: string;
  readonly onChanged?: EventClaim['onChanged'];
  readonly task?: string;
  /** The event's timestamp: RFC 3339, or ms from the store's current time. */
  readonly at?: string | number;
  readonly terminal?: boolean;
  /**
   * The content of a terminal status. Its hash is stored as `terminalHash`, so that a second terminal status with other
   * content is refused.
   */
  readonly says?: string | undefined;
  /** Set for a status that is not terminal, and must not be applied once its task has ended. */
  readonly keepsEnd?: true;
  /**
   * The task's status as a channel (webhook, poll …) reports it. `askedMs` is the time at which the buyer asked, in ms
   * after the store's current time.
   */
  readonly told?: Omit<ToldClaim, 'askedAt'> & { readonly askedMs?: number };
  readonly notification?: string;
  readonly traceparent?: string;
  readonly url?: string;
  /** The ids of the media buys in a delivery report, comma-separated. */
  readonly report?: string;
  /** True if the report is the last one of its media buys. */
  readonly final?: boolean;
  /** The terminal status that the report gives its media buys. */
  readonly ending?: string;
  /** The days for which the media buys in `report` have data, counted from 1 January 1970. */
  readonly days?: readonly number[];
  readonly stage?: string;
  readonly isRevision?: boolean;
  readonly isPulled?: true;
  /** The receiver's URL to which the event was sent, and the media buys whose rows record this. */
  readonly via?: EventClaim['via'];
  /** The state that a notification reports. `atMs` is the time of that state, in ms after the store's current time. */
  readonly state?: StateClaim & { readonly atMs?: number };
  /** The media buy of an event that is no report. Has no effect without `at`. */
  readonly mediaBuy?: string;
  readonly leaseMs?: number;
  readonly process?: string;
  readonly isRunning?: boolean;
  readonly runningKey?: string;
  /**
   * True if the calling process has a free slot for a suspect (an event whose process died while it ran). Default:
   * true.
   */
  readonly alone?: boolean;
  readonly retentionMs?: number;
  readonly limits?: Partial<StoreLimits>;
  readonly retry?: Partial<RetryLimits>;
}

/** A run that ends without success, as a case describes it. */
export interface FailDraft extends Draft {
  readonly permanent?: boolean;
  readonly unstarted?: boolean;
  readonly overrun?: boolean;
  readonly error?: string;
  /** The wait before the next run, ms. Default: 60 000. */
  readonly backoffMs?: number;
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
  maxNoncesPerSender: 200_000,
  maxNonces: 10_000_000,
};
export const RETRY: RetryLimits = { attempts: 12, crashes: 5 };

/** The clock of the store, which the suite moves, and a source of unique names. */
export interface Clock {
  readonly now: () => number;
  readonly advance: (ms: number) => void;
  readonly unique: () => string;
}

export function failOf(owner: string, draft: FailDraft, of: { sender: string; key: string }): FailRequest {
  return {
    ...of,
    owner,
    permanent: draft.permanent ?? false,
    retry: { ...RETRY, ...draft.retry },
    backoffMs: draft.backoffMs ?? 60_000,
    ...(draft.unstarted !== undefined && { unstarted: draft.unstarted }),
    ...(draft.overrun !== undefined && { overrun: draft.overrun }),
    ...(draft.error !== undefined && { error: draft.error }),
    retentionMs: draft.retentionMs ?? DAY_MS,
  };
}

export function requestOf(draft: Draft, clock: Clock): AcceptRequest {
  const { nonce = clock.unique(), nonceMs = 360_000 } = draft;
  return {
    acceptId: draft.id ?? clock.unique(),
    sender: draft.sender ?? SENDER,
    mode: draft.mode ?? 'inline',
    ...(nonce !== null && {
      // The store may use only the difference of the two times. To test this, they are from a clock that is far off.
      nonce: { keyid: draft.keyid ?? KEYID, nonce, nowMs: 1_000_000, expiresAtMs: 1_000_000 + nonceMs },
    }),
    ...(draft.event !== false && { event: eventOf(draft, clock) }),
    leaseMs: draft.leaseMs ?? LEASE_MS,
    ...defined({ process: draft.process, isRunning: draft.isRunning, runningKey: draft.runningKey }),
    alone: draft.alone ?? true,
    limits: { ...LIMITS, ...draft.limits },
    retry: { ...RETRY, ...draft.retry },
    retentionMs: draft.retentionMs ?? DAY_MS,
  };
}

function eventOf(draft: Draft, clock: Clock): EventClaim {
  const body = draft.body ?? '{"status":"completed"}';
  const { instant } = instantOf(draft, clock);
  return {
    key: draft.key ?? KEY,
    body: bytes(body),
    rawHash: sha256(body),
    ...defined({ canonicalHash: hashOf(draft.canonical), terminalHash: hashOf(draft.says) }),
    onChanged: draft.onChanged ?? 'first-wins',
    ...defined({ notificationId: draft.notification, traceparent: draft.traceparent, url: draft.url }),
    ...(draft.task !== undefined && {
      task: {
        id: draft.task,
        ...instantOf(draft, clock),
        ...defined({ keepsEnd: draft.keepsEnd }),
        ...toldOf(draft, clock),
      },
    }),
    ...(draft.report !== undefined && { report: reportOf(draft.report, draft, instant) }),
    ...(draft.via && { via: draft.via }),
    ...stateOf(draft, clock),
    ...(draft.mediaBuy !== undefined && instant && { mediaBuy: { id: draft.mediaBuy, instant } }),
  };
}

function stateOf({ state }: Draft, clock: Clock): { state?: StateClaim } {
  if (!state) return {};
  const { atMs, ...claim } = state;
  return { state: { ...claim, ...(atMs !== undefined && { at: clock.now() + atMs }) } };
}

const hashOf = (text: string | undefined): string | undefined =>
  text === undefined ? undefined : sha256(text);

function toldOf({ told }: Draft, clock: Clock): { told?: ToldClaim } {
  if (!told) return {};
  const { askedMs, ...rest } = told;
  return { told: { ...rest, ...(askedMs !== undefined && { askedAt: clock.now() + askedMs }) } };
}

function reportOf(report: string, draft: Draft, instant?: string): NonNullable<EventClaim['report']> {
  const mediaBuyIds = report.split(',');
  const { final = false, days, stage = '', isRevision = false, isPulled, ending } = draft;
  const windows = days?.flatMap((day) =>
    mediaBuyIds.map((id) => ({
      id,
      mediaBuyId: id,
      start: day * DAY_MS,
      // Sellers write the last second of a period as its end.
      end: (day + 1) * DAY_MS - 1000,
      stage,
      isRevision,
      ...defined({ ending }),
    })),
  );
  return { mediaBuyIds, final, ...defined({ instant, windows, isPulled }) };
}

type Given<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** Returns an object without the members that are undefined. */
function defined<T extends object>(members: T): Given<T> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Given<T>;
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
