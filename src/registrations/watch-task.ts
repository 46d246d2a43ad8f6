// Defines the rows for polling: one for each task, made when its operation is settled, and one for each seller.
// Settling writes them, and the poller works on them. A task's row also names its operation. The operation ends with
// the first event of its end. The row is kept longer, until no other channel needs to report that end.
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
  /** The time at which polling began, on the store's clock, Unix ms. */
  readonly since: number;
  /** The time at which polling of the operation's first task began, if that task was replaced. */
  readonly begunAt?: number;
  /** True if another task has replaced it: it is no longer polled, and its own end is unknown. */
  readonly isReplaced?: true;
  /** True if the time of the first poll is set. */
  readonly isScheduled?: true;
  /** The latest status that an answer or a poll reported, and a hash of the data that came with it. */
  readonly status?: TaskStatus;
  readonly dataHash?: string;
  /** The number of changes that polls have reported. */
  readonly changes: number;
  /** The time of the last answer to a poll, on the store's clock, Unix ms. */
  readonly answeredAt?: number;
  /** The number of polls that failed since the last answer. */
  readonly failures: number;
  /** Other operations whose answers named this task; they end with it. */
  readonly others?: readonly string[];
  /** Its number in the seller's queue, and the id of the next row in the queue. */
  readonly ticket?: number;
  readonly follower?: string;
  /** True if the seller does not know the task, and the alarm was raised. */
  readonly isUnknown?: true;
}

export const watchIn = ({ value }: RegistrationRow): Watch => storedObject(value) as unknown as Watch;

/** Makes the row of a task. @param dueAt the time of the next poll; null: it is not polled. */
export function watchRow(
  { sender, id }: Pick<RegistrationRow, 'sender' | 'id'>,
  watch: Watch,
  list: WatchState | null,
  { dueAt = null, expiresAt = null }: Partial<Pick<RegistrationRow, 'dueAt' | 'expiresAt'>> = {},
): RegistrationRow {
  return { kind: 'watch', sender, id, value: JSON.stringify(watch), dueAt, list, expiresAt };
}

/** Makes the row of a task that is no longer polled. It names the task's operation until it expires. */
export const endedWatch = (row: RegistrationRow, expiresAt: number): RegistrationRow => ({
  ...row,
  dueAt: null,
  list: null,
  expiresAt,
});

/** The queue of a seller's tasks that wait for a call slot, first come first served. */
export interface Line {
  /** The ids of the first and the last task in the queue; absent if it is empty. Each task names its follower. */
  readonly first?: string;
  readonly last?: string;
  /**
   * The latest number that was given out, and the latest number that had its turn. A task whose number had its turn is
   * in no queue.
   */
  readonly given: number;
  readonly called: number;
}

/** The state of a seller for polling. */
export interface SellerRow {
  /** The time of the seller's last handled webhook, to the minute. On the store's clock, Unix ms. */
  readonly heardAt?: number;
  /** The end of the pause that the seller asked for. On the store's clock, Unix ms. */
  readonly pausedUntil?: number;
  /** The recent duration of polls of the seller, ms. */
  readonly tookMs?: number;
  /** The queue of tasks that wait for a call slot. */
  readonly line?: Line;
  /** The polls that are running: the id of each task's row, and the end of its lease. */
  readonly polls?: readonly (readonly [id: string, until: number])[];
}

/** The assumed duration of a request, until the seller has answered one. Ms. */
export const FIRST_TOOK_MS = 1000;

/** Returns the requests that occupy a call slot of the seller: polls, and requests of a reconciler. */
export const livePolls = ({ polls = [] }: SellerRow, now: number): NonNullable<SellerRow['polls']> =>
  polls.filter(([, until]) => until > now && until <= now + LONGEST_LEASE_MS);

/**
 * Returns the end of the seller's pause. It is cut to `LONGEST_PAUSE_MS`, in case the clock that wrote it was ahead.
 * Unix ms.
 */
export const pauseOf = ({ pausedUntil = 0 }: SellerRow, now: number): number =>
  Math.min(pausedUntil, now + LONGEST_PAUSE_MS);

/**
 * The id of the seller's row. It is stored among the seller's routes, whose ids are fixed names. So no seller can
 * choose an id that collides.
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
 * The interval at which one process stores that a seller has delivered. The time is only compared with hours, so a
 * minute is precise enough. Ms.
 */
const HEARD_EVERY_MS = 60_000;
/** The most sellers that are cached. For any other seller the time is stored with each delivery. */
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
