// Defines the rows for polling: one for each task, made when its operation is settled, and one for each seller.
// Settling writes them, the poller works on them. A task's row also names its operation. It outlives the operation,
// which ends with the first event of the end, until no channel has to report that end again.
import { putBounded } from '../shared/bounded.ts';
import type { Hashes } from '../crypto/engine.ts';
import type { TaskStatus } from '../events/event.ts';
import type { EditionName } from '../shared/editions.ts';
import type { CallSeller } from './call-seller.ts';
import type { RegistrationRow, RegistrationRows, StoreRegistrations } from '../stores/store.ts';
import { LONGEST_LEASE_MS } from '../stores/constants.ts';
import { storedObject } from './operation-rows.ts';
import { LONGEST_PAUSE_MS } from './seller-error.ts';

/**
 * The state of a task that a poller asks about, by which `registrations.list` selects operations. `watched`: it is
 * polled. `unresolved`: polling was given up, and the task has not ended.
 */
export type WatchState = 'watched' | 'unresolved';

/** The row of a task. */
export interface Watch {
  readonly operationId: string;
  /** The id as the seller sent it; the id of the row may be a hash of it. */
  readonly taskId: string;
  readonly taskType: string;
  /** True if the call registered webhooks. */
  readonly hasWebhooks: boolean;
  /** The seller's own edition; absent: the receiver's. */
  readonly edition?: EditionName;
  /** The `ref` of the operation. */
  readonly ref?: string;
  /** `account` of the call's arguments, as JSON text. */
  readonly account?: string;
  /** The beginning of polling, on the store's clock, Unix ms. */
  readonly since: number;
  /** The beginning of polling of the first task, if tasks have taken each other's place. */
  readonly begunAt?: number;
  /** True if another task has taken its place: it is not polled, and has not ended. */
  readonly isReplaced?: true;
  /** True if the time of the first poll is set. */
  readonly isScheduled?: true;
  /** The latest status that an answer or a poll reported, and a hash of its data. */
  readonly status?: TaskStatus;
  readonly dataHash?: string;
  /** The number of changes that polls have reported. */
  readonly changes: number;
  /** The time of the last answer to a poll, on the store's clock, Unix ms. */
  readonly answeredAt?: number;
  /** The number of polls that failed since the last answer. */
  readonly failures: number;
  /** Other operations that were answered with the task, and end with it. */
  readonly others?: readonly string[];
  /** The ticket in the line of its seller, and the row behind it. */
  readonly ticket?: number;
  readonly follower?: string;
  /** True if the seller does not know the task, and the alarm was raised. */
  readonly isUnknown?: true;
}

export const watchIn = ({ value }: RegistrationRow): Watch => storedObject(value) as unknown as Watch;

/** The row of a task. @param dueAt null: it is not polled. */
export function watchRow(
  { sender, id }: Pick<RegistrationRow, 'sender' | 'id'>,
  watch: Watch,
  list: WatchState | null,
  { dueAt = null, expiresAt = null }: Partial<Pick<RegistrationRow, 'dueAt' | 'expiresAt'>> = {},
): RegistrationRow {
  return { kind: 'watch', sender, id, value: JSON.stringify(watch), dueAt, list, expiresAt };
}

/** The row of a task that is no longer polled: it names the operation of the task until it expires. */
export const endedWatch = (row: RegistrationRow, expiresAt: number): RegistrationRow => ({
  ...row,
  dueAt: null,
  list: null,
  expiresAt,
});

/** The line of a seller's tasks that wait for a place, first come first served. */
export interface Line {
  /** The ids of the first and the last watch; absent if nobody waits. Each watch names the one behind it. */
  readonly first?: string;
  readonly last?: string;
  /**
   * The latest ticket that was given, and the latest that was called. A watch with a lower ticket stands in no line.
   */
  readonly given: number;
  readonly called: number;
}

/** The state of a seller for polling. */
export interface SellerRow {
  /** The time of its last handled webhook, to the minute. On the store's clock, Unix ms. */
  readonly heardAt?: number;
  /** The end of the pause that the seller asked for. On the store's clock, Unix ms. */
  readonly pausedUntil?: number;
  /** The recent duration of its polls, ms. */
  readonly tookMs?: number;
  /** The tasks that wait for a place. */
  readonly line?: Line;
  /** The polls under way: the id of each watch, and the end of its lease. */
  readonly polls?: readonly (readonly [id: string, until: number])[];
}

/** The assumed duration of a question, until the seller has answered one. Ms. */
export const FIRST_TOOK_MS = 1000;

/** The questions that hold a place of the seller: polls, and those of a reconciler. */
export const livePolls = ({ polls = [] }: SellerRow, now: number): NonNullable<SellerRow['polls']> =>
  polls.filter(([, until]) => until > now && until <= now + LONGEST_LEASE_MS);

/** The end of the seller's pause. It is cut to `LONGEST_PAUSE_MS`, in case a clock was ahead. Unix ms. */
export const pauseOf = ({ pausedUntil = 0 }: SellerRow, now: number): number =>
  Math.min(pausedUntil, now + LONGEST_PAUSE_MS);

/**
 * The id of the seller's row. It is stored among the seller's routes, whose ids are schemes, so no seller can choose
 * it.
 */
export const SELLER_ROW_ID = 'seller';

export function sellerRowIn(rows: RegistrationRows): SellerRow {
  const row = rows.get('route', SELLER_ROW_ID);
  return row ? storedObject(row.value) : {};
}

export function saveSellerRow(rows: RegistrationRows, sender: string, seller: SellerRow): void {
  const value = JSON.stringify(seller);
  rows.save({ kind: 'route', sender, id: SELLER_ROW_ID, value, dueAt: null, list: null, expiresAt: null });
}

/**
 * The interval at which one process stores that a seller has delivered. It is compared with hours, so a minute is
 * enough. Ms.
 */
const HEARD_EVERY_MS = 60_000;
/** The largest number of sellers that are cached; for any other it is stored each time. */
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

/** The parts that a poller works on. */
export interface WatchedTasks {
  readonly rows: StoreRegistrations;
  readonly hashes: Hashes;
  /** The time for which the row of a task is kept after its end. Ms. */
  readonly retentionMs: number;
}

/** The member of registrations that has the parts for a poller. */
export const WATCHED_TASKS: unique symbol = Symbol.for('proto-webhooks.watched-tasks') as never;

export interface WithWatchedTasks {
  readonly [WATCHED_TASKS]: WatchedTasks & { readonly call: CallSeller | undefined };
}
