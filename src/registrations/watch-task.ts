import { putBounded } from '../shared/bounded.ts';
import type { Hashes } from '../crypto/engine.ts';
import type { TaskStatus } from '../events/event.ts';
import type { EditionName } from '../shared/editions.ts';
import type { CallSeller } from './call-seller.ts';
import type { RegistrationRow, RegistrationRows, StoreRegistrations } from '../stores/store.ts';
import { LONGEST_LEASE_MS } from '../stores/constants.ts';
import { storedObject } from './operation-rows.ts';
import { LONGEST_PAUSE_MS } from './seller-error.ts';

/*
 * The rows for polling: one for each task, made when its operation is settled, which also has the operation of the task; and one
 * for each seller. A watch does not end with its operation: an operation ends with the first event of the end, a watch once
 * no channel has to report that end again.
 */

/**
 * The state of a task that a poller asks about, by which `registrations.list` selects operations. `watched`: it is
 * polled. `unresolved`: polling was given up, and the task has not ended.
 */
export type WatchState = 'watched' | 'unresolved';

/** The row of a task. */
export interface Watch {
  readonly operationId: string;
  /** As its seller sent it: the row's id may be a hash of it. */
  readonly taskId: string;
  readonly taskType: string;
  /** The call registered webhooks. */
  readonly hasWebhooks: boolean;
  /** The seller's own; absent: the receiver's. */
  readonly edition?: EditionName;
  /** Of the operation. */
  readonly ref?: string;
  /** `account` of the call's arguments, as JSON text. */
  readonly account?: string;
  /** When watching began, on the store's clock, Unix ms. */
  readonly since: number;
  /** The same of the first of the tasks whose place it has taken, one after the other. */
  readonly begunAt?: number;
  /** Another task has taken its place: it is not polled, and has not ended. */
  readonly isReplaced?: true;
  /** The time of the first poll is set. */
  readonly isScheduled?: true;
  /** What the answer or a poll reported last: the status, and a hash of its data. */
  readonly status?: TaskStatus;
  readonly dataHash?: string;
  /** How many changes polls have reported. */
  readonly changes: number;
  /** When the last poll was answered, on the store's clock, Unix ms. */
  readonly answeredAt?: number;
  /** Polls that failed since the last answer. */
  readonly failures: number;
  /** Operations that were answered with the task too: they end with it. */
  readonly others?: readonly string[];
  /** It waits in the line of its seller: its number in it, and the row behind it. */
  readonly ticket?: number;
  readonly follower?: string;
  /** The seller does not know the task, and the alarm was raised. */
  readonly isUnknown?: true;
}

export const watchIn = ({ value }: RegistrationRow): Watch => storedObject(value) as unknown as Watch;

/** @param dueAt null: it is not polled. */
export function watchRow(
  { sender, id }: Pick<RegistrationRow, 'sender' | 'id'>,
  watch: Watch,
  list: WatchState | null,
  { dueAt = null, expiresAt = null }: Partial<Pick<RegistrationRow, 'dueAt' | 'expiresAt'>> = {},
): RegistrationRow {
  return { kind: 'watch', sender, id, value: JSON.stringify(watch), dueAt, list, expiresAt };
}

/** The row of an ended watch: it keeps the operation of the task until it expires. */
export const endedWatch = (row: RegistrationRow, expiresAt: number): RegistrationRow => ({
  ...row,
  dueAt: null,
  list: null,
  expiresAt,
});

/** Tasks of a seller that wait for a place, first come first served. */
export interface Line {
  /** The ids of the first and of the last watch; absent if nobody waits. Each watch has the one behind it. */
  readonly first?: string;
  readonly last?: string;
  /** The last number that was given, and the last one that was called. A watch with a lower one stands in no line. */
  readonly given: number;
  readonly called: number;
}

/** The state of a seller for polling. */
export interface SellerRow {
  /** When a webhook of it was handled last, give or take a minute. On the store's clock, Unix ms. */
  readonly heardAt?: number;
  /** The seller asked not to be polled until then. On the store's clock, Unix ms. */
  readonly pausedUntil?: number;
  /** How long its polls take of late, ms. */
  readonly tookMs?: number;
  /** Tasks that wait for a place. */
  readonly line?: Line;
  /** Polls under way, by the ids of their watches: until when each has its lease. */
  readonly polls?: readonly (readonly [id: string, until: number])[];
}

/** The time that a question is taken to need at a seller that has answered none. Ms. */
export const FIRST_TOOK_MS = 1000;

/** Questions that hold a place of the seller: polls, and those of a reconciler. */
export const livePolls = ({ polls = [] }: SellerRow, now: number): NonNullable<SellerRow['polls']> =>
  polls.filter(([, until]) => until > now && until <= now + LONGEST_LEASE_MS);

/** Until when the seller is not to be asked; no longer, though a clock was ahead. Unix ms. */
export const pauseOf = ({ pausedUntil = 0 }: SellerRow, now: number): number =>
  Math.min(pausedUntil, now + LONGEST_PAUSE_MS);

/** Stored among the seller's routes, whose ids are schemes: no seller can choose it. */
export const SELLER_ROW_ID = 'seller';

export function sellerRowIn(rows: RegistrationRows): SellerRow {
  const row = rows.get('route', SELLER_ROW_ID);
  return row ? storedObject(row.value) : {};
}

export function saveSellerRow(rows: RegistrationRows, sender: string, seller: SellerRow): void {
  const value = JSON.stringify(seller);
  rows.save({ kind: 'route', sender, id: SELLER_ROW_ID, value, dueAt: null, list: null, expiresAt: null });
}

/** Each process stores at most once a minute that a seller has delivered: it is compared with hours. Ms. */
const HEARD_EVERY_MS = 60_000;
/** Sellers that are cached; for any other it is stored again. */
const MAX_SELLERS = 10_000;

export function sellersHeard(now: () => number): { readonly isDue: (agentUrl: string) => boolean } {
  const keptAt = new Map<string, number>();
  return {
    isDue: (agentUrl) => {
      const at = now();
      if (at - (keptAt.get(agentUrl) ?? -Infinity) < HEARD_EVERY_MS) return false;
      putBounded(keptAt, agentUrl, at, MAX_SELLERS);
      return true;
    },
  };
}

/** What a poller works on. */
export interface WatchedTasks {
  readonly rows: StoreRegistrations;
  readonly hashes: Hashes;
  /** How long the row of a task is kept after its end. Ms. */
  readonly retentionMs: number;
}

/** The member of registrations with what a poller works on. */
export const WATCHED_TASKS: unique symbol = Symbol.for('proto-webhooks.watched-tasks') as never;

export interface WithWatchedTasks {
  readonly [WATCHED_TASKS]: WatchedTasks & { readonly call: CallSeller | undefined };
}
