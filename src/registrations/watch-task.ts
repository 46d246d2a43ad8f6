// Defines the rows for polling: one for each task, and one for each seller. Settling an operation writes the row of its
// task, and the poller works on it. The row also names the task's operation. The operation ends with the first event
// that reports the task's end. Polling goes on until that event can no longer get lost.
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
 * The state of the polling of a task, by which `registrations.list` can select operations. `watched`: the task is
 * polled. `unresolved`: polling was given up before the task ended.
 */
export type WatchState = 'watched' | 'unresolved';

/** The JSON value of the row of a task. */
export interface Watch {
  readonly operationId: string;
  /** The task's id as the seller sent it; the id of the row may be a hash of it. */
  readonly taskId: string;
  readonly taskType: string;
  /** True if the call registered webhooks. */
  readonly hasWebhooks: boolean;
  /** The protocol version (edition) of this seller; absent: the receiver's. */
  readonly edition?: EditionName;
  /** The `ref` of the operation. */
  readonly ref?: string;
  /** The argument `account` of the call, as JSON text. */
  readonly account?: string;
  /** The time at which polling began, on the store's clock, Unix ms. */
  readonly since: number;
  /** The time at which polling of the operation's first task began, if that task was replaced. */
  readonly begunAt?: number;
  /** True if another task has replaced this task, which is then no longer polled. How this task ended is unknown. */
  readonly isReplaced?: true;
  /** True once the time of the first poll has been chosen. */
  readonly isScheduled?: true;
  /**
   * `status`: the latest status that an answer or a poll reported. `dataHash`: a hash of the data that came with it.
   */
  readonly status?: TaskStatus;
  readonly dataHash?: string;
  /** The number of changes of the task that polls have reported. */
  readonly changes: number;
  /** The time of the last answer to a poll, on the store's clock, Unix ms. */
  readonly answeredAt?: number;
  /** The number of polls that failed since the last answer. */
  readonly failures: number;
  /** Other operations whose answers named this task; they end together with the task. */
  readonly others?: readonly string[];
  /** `ticket`: the task's number in the seller's queue. `follower`: the id of the next row in the queue. */
  readonly ticket?: number;
  readonly follower?: string;
  /** True if the seller has answered that it does not know the task, and the alarm was raised. */
  readonly isUnknown?: true;
}

export const watchIn = ({ value }: RegistrationRow): Watch => storedObject(value) as unknown as Watch;

/** Makes the row of a task. @param dueAt the time of the next poll; null: the task is not polled. */
export function watchRow(
  { sender, id }: Pick<RegistrationRow, 'sender' | 'id'>,
  watch: Watch,
  list: WatchState | null,
  { dueAt = null, expiresAt = null }: Partial<Pick<RegistrationRow, 'dueAt' | 'expiresAt'>> = {},
): RegistrationRow {
  return { kind: 'watch', sender, id, value: JSON.stringify(watch), dueAt, list, expiresAt };
}

/** Makes the row of a task that is no longer polled. The row names the task's operation until it expires. */
export const endedWatch = (row: RegistrationRow, expiresAt: number): RegistrationRow => ({
  ...row,
  dueAt: null,
  list: null,
  expiresAt,
});

/** The queue of a seller's tasks that wait for a call slot, first come first served. */
export interface Line {
  /**
   * The ids of the first and the last task in the queue; absent if the queue is empty. The row of each task names its
   * follower.
   */
  readonly first?: string;
  readonly last?: string;
  /**
   * `given`: the latest number that a task got when it joined the queue. `called`: the latest number that had its turn.
   * A task whose number is not above `called` has left the queue.
   */
  readonly given: number;
  readonly called: number;
}

/** The row of a seller: the state that decides when its tasks are polled. */
export interface SellerRow {
  /** The time of the seller's last handled webhook, to the minute. On the store's clock, Unix ms. */
  readonly heardAt?: number;
  /** The end of the pause that the seller asked for. On the store's clock, Unix ms. */
  readonly pausedUntil?: number;
  /** The recent duration of a poll of the seller, as a moving average, ms. */
  readonly tookMs?: number;
  /** The queue of tasks that wait for a call slot. */
  readonly line?: Line;
  /**
   * The requests that are running, with the ends of their leases. The id is that of the task's row, or of another
   * request's call slot.
   */
  readonly polls?: readonly (readonly [id: string, until: number])[];
}

/** The assumed duration of a request to a seller that has answered none yet. Ms. */
export const FIRST_TOOK_MS = 1000;

/**
 * Returns the running requests that occupy a call slot of the seller: polls, and requests of a reconciler. Expired
 * leases are left out.
 */
export const livePolls = ({ polls = [] }: SellerRow, now: number): NonNullable<SellerRow['polls']> =>
  polls.filter(([, until]) => until > now && until <= now + LONGEST_LEASE_MS);

/**
 * Returns the end of the pause that the seller asked for. It is cut to `LONGEST_PAUSE_MS` from now, in case the clock
 * that wrote it was ahead. Unix ms.
 */
export const pauseOf = ({ pausedUntil = 0 }: SellerRow, now: number): number =>
  Math.min(pausedUntil, now + LONGEST_PAUSE_MS);

/**
 * The id of the seller's row. The row has the kind `route`, whose other ids are fixed names, so no id that a seller
 * chooses can collide with it.
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
 * The shortest interval between two writes of a seller's `heardAt` (the time of its last webhook) by one process. The
 * time is only compared with hours, so a minute is precise enough. Ms.
 */
const HEARD_EVERY_MS = 60_000;
/**
 * The largest number of sellers for which this process remembers the last write of `heardAt`. For a forgotten seller
 * the next delivery writes it again.
 */
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

/** The parts of registrations that a poller works with. */
export interface WatchedTasks {
  readonly rows: StoreRegistrations;
  readonly hashes: Hashes;
  /** The time for which the row of a task is kept after its end. Ms. */
  readonly retentionMs: number;
}

/** The property of registrations by which a poller gets `WatchedTasks`. */
export const WATCHED_TASKS: unique symbol = Symbol.for('proto-webhooks.watched-tasks') as never;

export interface WithWatchedTasks {
  readonly [WATCHED_TASKS]: WatchedTasks & { readonly call: CallSeller | undefined };
}
