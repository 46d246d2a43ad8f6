import { putBounded } from '../bounded.ts';
import type { TaskStatus } from '../events/event.ts';
import type { EditionName } from '../protocol.ts';
import type { RegistrationRow, RegistrationRows, StoreRegistrations } from '../stores/contract.ts';
import { storedObject } from './rows.ts';

/*
 * What is kept for polling: a row for each task, made when its operation is settled, which also says whose the task is; and a
 * row for each seller. Whether a task is watched any more is no affair of its operation: an operation has ended when an event
 * says so, a watch only when no channel has to tell it again.
 */

/** What a watch is listed as. `unresolved`: nobody polls it any more, and it has not ended. */
export type WatchState = 'watched' | 'unresolved';

/** A task, as it is kept by its id. */
export interface Watch {
  readonly operationId: string;
  /** As its seller gave it: the row's id may be a hash of it. */
  readonly taskId: string;
  readonly taskType: string;
  /** The seller was told where to send webhooks. */
  readonly hasWebhooks: boolean;
  /** The seller's, where it has one of its own. */
  readonly edition?: EditionName;
  /** `account` of the call's arguments, as JSON text. */
  readonly account?: string;
  /** When watching began, on the store's clock, Unix ms. */
  readonly since: number;
  /** The time of the first poll is set. */
  readonly isScheduled?: true;
  /** What was told of it last, by the answer or by polls: the status, and a hash of its data. */
  readonly status?: TaskStatus;
  readonly dataHash?: string;
  /** How many changes polls have told. */
  readonly changes: number;
  /** Polls that failed since the last answer. */
  readonly failures: number;
  /** The seller does not know the task, and the alarm was raised. */
  readonly isUnknown?: true;
}

export const watchIn = ({ value }: RegistrationRow): Watch => storedObject(value) as unknown as Watch;

/** @param dueAt null: nobody polls it. */
export function watchRow(
  { sender, id }: Pick<RegistrationRow, 'sender' | 'id'>,
  watch: Watch,
  list: WatchState | null,
  { dueAt = null, expiresAt = null }: Partial<Pick<RegistrationRow, 'dueAt' | 'expiresAt'>> = {},
): RegistrationRow {
  return { kind: 'watch', sender, id, value: JSON.stringify(watch), dueAt, list, expiresAt };
}

/** One that has ended: whose the task is stays known for its time. */
export const endedWatch = (row: RegistrationRow, expiresAt: number): RegistrationRow => ({
  ...row,
  dueAt: null,
  list: null,
  expiresAt,
});

/** What is kept of a seller. */
export interface SellerRow {
  /** When a webhook of it was handled last, give or take a minute. On the store's clock, Unix ms. */
  readonly heardAt?: number;
  /** It asked to be left alone until then. On the store's clock, Unix ms. */
  readonly pausedUntil?: number;
  /** Polls under way, by the ids of their watches: until when each has its lease. */
  readonly polls?: readonly (readonly [id: string, until: number])[];
}

/** Among the seller's routes, whose ids are schemes: no seller can name it. */
export const SELLER_ROW_ID = 'seller';

export function sellerRowIn(rows: RegistrationRows): SellerRow {
  const row = rows.get('route', SELLER_ROW_ID);
  return row ? storedObject(row.value) : {};
}

export function saveSellerRow(rows: RegistrationRows, sender: string, seller: SellerRow): void {
  const value = JSON.stringify(seller);
  rows.save({ kind: 'route', sender, id: SELLER_ROW_ID, value, dueAt: null, list: null, expiresAt: null });
}

/** That a seller has delivered is kept once a minute, by each process: what it is asked for are hours. Ms. */
const HEARD_EVERY_MS = 60_000;
/** Sellers that are remembered; of one that is forgotten it is kept again. */
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
  /** How long whose a task was is known after its end. Ms. */
  readonly retentionMs: number;
}

/** Where registrations have what a poller works on. */
export const WATCHED_TASKS: unique symbol = Symbol.for('proto-webhooks.watched-tasks') as never;

export interface WithWatchedTasks {
  readonly [WATCHED_TASKS]: WatchedTasks;
}
