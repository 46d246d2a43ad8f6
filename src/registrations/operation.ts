// Defines an operation (a registered call to a seller) as it is stored, and as callers get it. operations.ts and
// settling.ts change operations. All other code that uses operations imports the types from here.
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
 * - `open`: the seller has answered, and the task runs.
 * - `ended`: the task has ended.
 * - `orphaned`: it is unknown if the call was done, because an attempt was not answered. The call is no longer
 *   repeated.
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
   * The seller's error, if the operation was refused or has failed. For an orphaned operation: the reason why the call
   * is no longer repeated.
   */
  readonly reason?: string;
  /** True if the operation only gives the seller another URL: a step of a move by `registrations.apply`. */
  readonly isStep?: true;
  /** The time of registration, Unix ms on the store's clock. */
  readonly createdAt: number;
}

/** A seller's answer to a call, or the same facts from an event or a poll. */
export interface SellerAnswer {
  readonly status: TaskStatus;
  readonly taskId?: string;
  readonly mediaBuyId?: string;
  /** The status of the media buy itself, not of the task. Absent unless that status is terminal. */
  readonly ending?: string;
  /**
   * The result of the task, or else the data that came with its status. A webhook would carry it in its member
   * `result`.
   */
  readonly data?: unknown;
  /**
   * True if the task is polled on although its status is a final one, because the answer has no result (calls.md §1.6).
   */
  readonly isOpen?: true;
  /** The id of an earlier task, whose place the task `taskId` has taken (calls.md §1.5). */
  readonly replaces?: string;
  /** The seller's error as text, if the task ended with another status than `completed`. */
  readonly reason?: string;
}

/**
 * Returns the first error in a task's data, in one line. Undefined if the task is `completed`, or the data has no
 * error.
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
 * - `other-task`: recorded, but an earlier answer named another task. The earlier task is polled too, but its events no
 *   longer belong to this call.
 * - `task-taken`: recorded, but the task already belongs to another call. Events of the task without an operation id
 *   belong to that other call.
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
 * @returns undefined if the media buy goes on, or the result does not name its status.
 */
export function endingIn(data: unknown): string | undefined {
  const status = isJsonObject(data) ? textMember(data, 'media_buy_status') : undefined;
  return isTerminalBuy(status) ? status : undefined;
}

/** The facts in an event by which its operation is found and settled. */
export interface OperationTold {
  readonly agentUrl: string;
  readonly operationId?: string;
  readonly taskId?: string;
  /** The id of the A2A Task that carried the event, if it is another id than `taskId`. */
  readonly callTaskId?: string;
  /** The id of the only media buy that the event names: in its result, or as the subject of its report. */
  readonly mediaBuyId?: string;
  /** The status of the media buy itself, not of the task. Absent unless that status is terminal. */
  readonly ending?: string;
  /** The status of the task, if the event reports one. */
  readonly status?: TaskStatus;
  /** The seller's error as text, if the task ended with another status than `completed`. */
  readonly reason?: string;
  /** True if the seller delivered the event as a webhook; false if it comes from an answer or a poll. */
  readonly isWebhook?: boolean;
}

/** The operation to which an event belongs, as found by the ids in the event. */
export interface OperationFound {
  readonly operation: OperationSeen;
  /**
   * True if the ids in the event contradict each other: the event's task belongs to another operation, or the named
   * operation has another task.
   */
  readonly isMismatch: boolean;
  /** The id of the secret from which the operation's token was derived; absent: the call asked for no token. */
  readonly token?: string;
}

/** The JSON value of an operation's row. */
export interface Stored {
  readonly seller: Seller;
  readonly taskType: string;
  readonly state: OperationState;
  readonly ref?: string;
  /** The `context` of the call as JSON text, because its members have no fixed names. */
  readonly context?: string;
  readonly taskId?: string;
  /** The number of times that the operation's task was replaced by another one. */
  readonly moves?: number;
  readonly status?: TaskStatus;
  readonly createdAt: number;
  readonly requestKey: string;
  /** The time until which the seller recognises a repeated call by `requestKey`, its `idempotency_key`. Unix ms. */
  readonly keyUntil: number;
  readonly keyMs: number;
  readonly scheme: RouteScheme;
  /** The id of the secret from which the operation's token was derived; absent: the call asked for no token. */
  readonly token?: string;
  /** The encrypted arguments of the call, which are removed once the operation is settled or no longer called. */
  readonly sealed?: string;
  /**
   * The URLs of this library to which the call asked the seller to send. Absent: the operation was adopted without such
   * a URL.
   */
  readonly told?: CallTold;
  readonly withoutConfig?: true;
  /** The number of answers to the call so far that this package refused, e.g. because they were too large. */
  readonly refusals?: number;
  /**
   * The seller's error if the task failed or the call was refused, or else the reason why the call is no longer
   * repeated.
   */
  readonly reason?: string;
  /** The code of the seller's error because of which the call is no longer made. */
  readonly refusal?: string;
  /** True for a step of a move, i.e. for a call that only gives the seller another URL (told.md §3.2). */
  readonly isStep?: true;
  /** The number of times that a transient error has postponed the next attempt. */
  readonly busy?: number;
  /**
   * True if all attempts so far were answered with errors which mean that nothing was done. The flag is removed before
   * the next attempt, which may stay unanswered.
   */
  readonly isAnswered?: true;
  /** The argument `account` of the call as JSON text. Requests about the task send it again. */
  readonly account?: string;
  /**
   * The id of the media buy that the operation made. Delivery reports name no operation, so they are assigned by this
   * id.
   */
  readonly mediaBuyId?: string;
  /**
   * The id of the stream row, which records the media buy's reports, if it differs from `mediaBuyId` (e.g. a long id is
   * hashed). The rules inside stores read both members.
   */
  readonly streamId?: string;
  /** The delivery reports that the call requested. */
  readonly reports?: AskedReports;
  /**
   * True if the call was made elsewhere and then adopted. It is then unknown which `operation_id` the seller was given.
   */
  readonly isAdopted?: true;
  /**
   * The time at which the operation ended, was refused or orphaned, on the store's clock, Unix ms. Absent before that,
   * and in rows that an earlier version of this package wrote.
   */
  readonly closedAt?: number;
}

export const storedIn = ({ value }: RegistrationRow): Stored => storedObject(value) as unknown as Stored;

/** Makes the row of an operation. @param dueAt the time of the next attempt; null: the call is not made again. */
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

/**
 * Returns `reason` if the task ended with another status than `completed` and the answer gives a reason; otherwise an
 * empty object.
 */
export const reasonOfEnd = (status: TaskStatus, { reason }: SellerAnswer): Pick<Stored, 'reason'> =>
  isTerminal(status) && status !== 'completed' && reason !== undefined ? { reason } : {};

/**
 * Returns an operation without its encrypted arguments, and without members that describe only a call that still runs.
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

/**
 * Returns the row of an operation whose call is given up as refused or orphaned. The row expires after `retentionMs`.
 */
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

/** Thrown if a call cannot be repeated with the same bytes, because the credentials of its URL were retired. */
export class NotRepeatable extends PrintableError {
  override readonly name = 'NotRepeatable';
  override readonly code = 'not_repeatable';
  constructor() {
    super('the credentials of the URL that it named were retired');
  }
}
