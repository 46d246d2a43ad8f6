// Defines an operation as it is stored, and as callers get it. operations.ts and settling.ts change operations. All
// other code that uses operations imports the types from here.
import { PrintableError } from '../codec/printable-value.ts';
import { isJsonObject, textMember } from '../codec/members.ts';
import { MAX_TEXT } from '../codec/printable.ts';
import { errorsIn } from '../events/error-object.ts';
import type { TaskStatus } from '../events/event.ts';
import { isTerminal } from '../events/status.ts';
import type { RegistrationRow } from '../stores/store.ts';
import { isTerminalBuy } from '../windows/ends.ts';
import type { CallTold } from '../windows/told.ts';
import type { JsonObject } from './answer-json.ts';
import type { AskedReports } from './asked-reports.ts';
import type { RouteScheme, Seller } from './seller.ts';
import { reportedText } from './seller-error.ts';
import { storedObject } from './operation-rows.ts';

/**
 * The state of an operation, i.e. of a registered call to a seller.
 *
 * - `calling`: the seller has not answered the call yet.
 * - `open`: it has answered, and the task runs.
 * - `ended`: the task has ended.
 * - `orphaned`: a call may have been done, but it was not answered and is no longer repeated.
 * - `refused`: the seller refused the call.
 */
export type OperationState = 'calling' | 'open' | 'ended' | 'orphaned' | 'refused';

/**
 * The name of an operation (a registered call to a seller), which `registrations.get` takes: the seller's agent URL
 * and the operation id.
 */
export interface OperationName {
  readonly agentUrl: string;
  readonly operationId: string;
}

/**
 * An operation (a registered call to a seller) as `registrations.get` and `list` return it: its state, its task, and
 * your own reference.
 */
export interface OperationSeen {
  readonly agentUrl: string;
  readonly operationId: string;
  readonly taskType: string;
  readonly state: OperationState;
  readonly ref?: string;
  readonly context?: JsonObject;
  readonly taskId?: string;
  /** The id of the media buy that the operation created. */
  readonly mediaBuyId?: string;
  readonly status?: TaskStatus;
  /**
   * The seller's error, if the operation was refused or has failed. If it is orphaned, the reason why it is no longer
   * called.
   */
  readonly reason?: string;
  /** True if the operation is a step of a move (`registrations.apply`). */
  readonly isStep?: true;
  /** The time of registration, Unix ms on the store's clock. */
  readonly createdAt: number;
}

/** A seller's answer to a call, or the same facts from an event or a poll. */
export interface SellerAnswer {
  readonly status: TaskStatus;
  readonly taskId?: string;
  readonly mediaBuyId?: string;
  /** The status of the media buy itself, if that status is terminal. */
  readonly ending?: string;
  /** The result, or the data beside the status; a webhook would carry it in `result`. */
  readonly data?: unknown;
  /** True if the task goes on although its status is a final one: nothing tells the result yet (calls.md §1.6). */
  readonly isOpen?: true;
  /** The id of the task that `taskId` replaces (calls.md §1.5). */
  readonly replaces?: string;
  /** The seller's error, if the task ended with another status than `completed`. */
  readonly reason?: string;
}

/**
 * Returns the first error in the data of a task that ended with another status than `completed`, in one line. Undefined
 * if there is none.
 */
export function reasonIn(status: TaskStatus, data: unknown): string | undefined {
  const [first] = status !== 'completed' && isJsonObject(data) ? errorsIn(data) : [];
  const text = first && reportedText(first);
  return text === '' ? undefined : text;
}

/**
 * The result of `registration.settle`, which records the seller's answer to a call.
 *
 * - `settled`: the answer was recorded.
 * - `known`: the answer contains nothing new.
 * - `other-task`: recorded, but an earlier answer named another task. The earlier task is polled too, but its events
 *   no longer belong to this call.
 * - `task-taken`: recorded, but the task already belongs to another call. Its events without an operation id belong
 *   to that one.
 * - `absent`: the operation is unknown.
 */
export type Settled = 'settled' | 'known' | 'other-task' | 'task-taken' | 'absent';

/** Returns the id of the media buy in a result. Undefined if there is none, or if it is too long to be stored. */
export function mediaBuyIn(data: unknown): string | undefined {
  const id = isJsonObject(data) ? textMember(data, 'media_buy_id') : undefined;
  return id !== undefined && id.length <= MAX_TEXT ? id : undefined;
}

/**
 * Returns the terminal status of a media buy in a result. Only `media_buy_status` is read, because a `status` beside
 * the media buy's id may be the task's.
 * @returns undefined if the media buy goes on, or the result does not say.
 */
export function endingIn(data: unknown): string | undefined {
  const status = isJsonObject(data) ? textMember(data, 'media_buy_status') : undefined;
  return isTerminalBuy(status) ? status : undefined;
}

/** The facts that an event reports about an operation. */
export interface OperationTold {
  readonly agentUrl: string;
  readonly operationId?: string;
  readonly taskId?: string;
  /** The id of the agent transport's Task that reported the task, if the two ids differ. */
  readonly callTaskId?: string;
  /** The one media buy that the event names: in its result, or as the subject of its report. */
  readonly mediaBuyId?: string;
  /** The status of the media buy itself, if that status is terminal. */
  readonly ending?: string;
  /** The status of the task, if the event reports one. */
  readonly status?: TaskStatus;
  /** The seller's error, if the task ended with another status than `completed`. */
  readonly reason?: string;
  /** True if the seller delivered the event itself. */
  readonly isWebhook?: boolean;
}

/** The operation of an event. */
export interface OperationFound {
  readonly operation: OperationSeen;
  /**
   * True if the ids in the event do not fit. Its operation may not be the one of its task, or its task may not be the
   * operation's.
   */
  readonly isMismatch: boolean;
  /** The id of the secret that made the operation's token; absent: no token was requested. */
  readonly token?: string;
}

/** The content of an operation's row. */
export interface Stored {
  readonly seller: Seller;
  readonly taskType: string;
  readonly state: OperationState;
  readonly ref?: string;
  /** The caller's context as JSON text: its members have no fixed names. */
  readonly context?: string;
  readonly taskId?: string;
  /** The number of times that the operation's task was replaced by another one. */
  readonly moves?: number;
  readonly status?: TaskStatus;
  readonly createdAt: number;
  readonly requestKey: string;
  /** The time until which the seller recognises a repeat by the request key. Unix ms. */
  readonly keyUntil: number;
  readonly keyMs: number;
  readonly scheme: RouteScheme;
  /** The id of the secret that made the token; absent: no token was requested. */
  readonly token?: string;
  /** The encrypted arguments. They are kept until the operation is settled. */
  readonly sealed?: string;
  /** Our URLs at which the call requested webhooks. Absent: the operation was adopted. */
  readonly told?: CallTold;
  readonly withoutConfig?: true;
  /** The number of answers to the call that were refused so far. */
  readonly refusals?: number;
  /** The reason why it is no longer called, if there is one. */
  readonly reason?: string;
  /** The code of the seller's error, if the operation is no longer called because of that error. */
  readonly refusal?: string;
  /** True for a step of a move (told.md §3.2). */
  readonly isStep?: true;
  /** The number of transient errors since the call was made, each of them the answer to its latest attempt. */
  readonly busy?: number;
  /** True if all attempts so far were answered with errors that mean nothing was done. The next attempt removes it. */
  readonly isAnswered?: true;
  /** The `account` of the arguments as JSON text, for requests about the task. */
  readonly account?: string;
  /** The media buy that the operation made. Delivery reports name no operation, so they are assigned by this id. */
  readonly mediaBuyId?: string;
  /**
   * The id of the row of the media buy's reports, if it differs from the media buy's id. The rules of stores read both.
   */
  readonly streamId?: string;
  /** The reports that the call requested. */
  readonly reports?: AskedReports;
  /** True if the operation was begun elsewhere: then it is unknown which operation_id the seller was given. */
  readonly isAdopted?: true;
  /**
   * The time at which the operation ended, was refused or orphaned, on the store's clock, Unix ms. Absent if none of
   * these has happened. An earlier version of this package did not store it either.
   */
  readonly closedAt?: number;
}

export const storedIn = ({ value }: RegistrationRow): Stored => storedObject(value) as unknown as Stored;

/** Makes the row of an operation. @param dueAt the time of the next attempt; null: no process has to call it. */
export function rowOf(
  { agentUrl, operationId }: OperationName,
  stored: Stored,
  dueAt: number | null,
  expiresAt: number | null,
): RegistrationRow {
  const value = JSON.stringify(stored);
  return {
    kind: 'operation',
    sender: agentUrl,
    id: operationId,
    value,
    dueAt,
    list: stored.state,
    expiresAt,
  };
}

export function seenOf({ sender, id }: RegistrationRow, stored: Stored): OperationSeen {
  const { taskType, state, ref, context, taskId, mediaBuyId, status, reason, isStep, createdAt } = stored;
  return {
    agentUrl: sender,
    operationId: id,
    taskType,
    state,
    createdAt,
    ...(ref !== undefined && { ref }),
    ...(context !== undefined && { context: storedObject(context) as JsonObject }),
    ...(taskId !== undefined && { taskId }),
    ...(mediaBuyId !== undefined && { mediaBuyId }),
    ...(status !== undefined && { status }),
    ...(reason !== undefined && { reason }),
    ...(isStep && { isStep }),
  };
}

/** Returns the reason of an end other than `completed`, if the answer gives one; otherwise an empty object. */
export const reasonOfEnd = (status: TaskStatus, { reason }: SellerAnswer): Pick<Stored, 'reason'> =>
  isTerminal(status) && status !== 'completed' && reason !== undefined ? { reason } : {};

/**
 * Returns an operation that is no longer called: without its encrypted arguments, and without members that describe
 * only the running call.
 */
export function withoutArguments({
  sealed: _gone,
  refusals: _counted,
  reason: _was,
  refusal: _with,
  closedAt: _then,
  ...stored
}: Stored): Stored {
  return stored;
}

/** True until the operation ends, is refused or is orphaned. */
export const isOpen = (state: OperationState): boolean => state === 'calling' || state === 'open';

/** Returns the row of an operation that had no usable answer and is no longer called. */
export const closedRow = (
  of: OperationName,
  stored: Stored,
  state: 'refused' | 'orphaned',
  { now, retentionMs }: { readonly now: number; readonly retentionMs: number },
): RegistrationRow =>
  rowOf(
    of,
    {
      ...withoutArguments(stored),
      state,
      closedAt: now,
      ...whyOf(stored),
    },
    null,
    now + retentionMs,
  );

const whyOf = ({ reason, refusal }: Stored): Partial<Stored> => ({
  ...(reason !== undefined && { reason }),
  ...(refusal !== undefined && { refusal }),
});

/** Thrown if a call cannot be made again with the same bytes. */
export class NotRepeatable extends PrintableError {
  override readonly name = 'NotRepeatable';
  override readonly code = 'not_repeatable';
  constructor() {
    super('the credentials of the URL that it named were retired');
  }
}
