// Defines an operation as its row keeps it, and as callers see it. operations.ts and settling.ts change it; everything
// that knows operations reads it here.
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
  /** The seller's error, if it was refused or has failed; of an orphaned one the reason why it is not called again. */
  readonly reason?: string;
  /** True: it is a step of a move (`registrations.apply`). */
  readonly isStep?: true;
  /** The time of registration, Unix ms on the store's clock. */
  readonly createdAt: number;
}

/** The answer of a seller to a call, or what an event or a poll tells of it. */
export interface SellerAnswer {
  readonly status: TaskStatus;
  readonly taskId?: string;
  readonly mediaBuyId?: string;
  /** The media buy's own status, if it is a terminal one. */
  readonly ending?: string;
  /** The result, or the data beside the status: a webhook would have it in `result`. */
  readonly data?: unknown;
  /** True if the task goes on although its status is an end: nothing says what came of it (calls.md §1.6). */
  readonly isOpen?: true;
  /** The task whose place the named one has taken (calls.md §1.5). */
  readonly replaces?: string;
  /** The seller's error, for an end other than `completed`. */
  readonly reason?: string;
}

/** The first error in the data of an end other than `completed`, in one line; undefined if there is none. */
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

/** The media buy that a result names; undefined if its id is too long to be kept. */
export function mediaBuyIn(data: unknown): string | undefined {
  const id = isJsonObject(data) ? textMember(data, 'media_buy_id') : undefined;
  return id !== undefined && id.length <= MAX_TEXT ? id : undefined;
}

/**
 * The terminal status of a media buy in a result. A `status` beside the media buy's id may be the task's, so it does
 * not count.
 * @returns undefined if the media buy goes on, or the result does not say.
 */
export function endingIn(data: unknown): string | undefined {
  const status = isJsonObject(data) ? textMember(data, 'media_buy_status') : undefined;
  return isTerminalBuy(status) ? status : undefined;
}

/** The facts about an operation that an event tells. */
export interface OperationTold {
  readonly agentUrl: string;
  readonly operationId?: string;
  readonly taskId?: string;
  /** The Task of the agent transport that told of the task, if that is another one. */
  readonly callTaskId?: string;
  /** The one media buy that the event names, as its result or as the subject of a report. */
  readonly mediaBuyId?: string;
  /** The media buy's own status, if it is a terminal one. */
  readonly ending?: string;
  /** The status of the task, if the event tells of one. */
  readonly status?: TaskStatus;
  /** The seller's error, for an end other than `completed`. */
  readonly reason?: string;
  /** True if the seller delivered the event itself. */
  readonly isWebhook?: boolean;
}

/** The operation of an event. */
export interface OperationFound {
  readonly operation: OperationSeen;
  /** True if the event names another operation than its task's, or a task that is not the operation's. */
  readonly isMismatch: boolean;
  /** The id of the secret by which its token is made; absent: none was requested. */
  readonly token?: string;
}

/** The value of an operation's row. */
export interface Stored {
  readonly seller: Seller;
  readonly taskType: string;
  readonly state: OperationState;
  readonly ref?: string;
  /** JSON text, because its members are the caller's. */
  readonly context?: string;
  readonly taskId?: string;
  /** The number of tasks that have taken the place of the one before. */
  readonly moves?: number;
  readonly status?: TaskStatus;
  readonly createdAt: number;
  readonly requestKey: string;
  /** The time until which the seller knows the request by its key. Unix ms. */
  readonly keyUntil: number;
  readonly keyMs: number;
  readonly scheme: RouteScheme;
  /** The id of the secret by which the token is made; absent: none was requested. */
  readonly token?: string;
  /** The arguments, encrypted, until it is settled. */
  readonly sealed?: string;
  /** The URLs of ours at which the call asked for webhooks. Absent: it was adopted. */
  readonly told?: CallTold;
  readonly withoutConfig?: true;
  /** The number of its answers that were refused, while it is called. */
  readonly refusals?: number;
  /** The reason, once it is no longer called because of it. */
  readonly reason?: string;
  /** The code of the seller's error, once it is no longer called because of it. */
  readonly refusal?: string;
  /** True for the step of a move (told.md §3.2). */
  readonly isStep?: true;
  /** The number of transient errors since the call was made. Each was the answer to its latest attempt. */
  readonly busy?: number;
  /** True if all attempts up to the latest were answered, so none has done anything. The next attempt removes it. */
  readonly isAnswered?: true;
  /** `account` of the arguments, as JSON text, for questions about the task. */
  readonly account?: string;
  /** The media buy that came of it. Its delivery reports name no operation, so they are found by this. */
  readonly mediaBuyId?: string;
  /** The id of the stream's row, if it differs from the media buy's. The rules of stores read both. */
  readonly streamId?: string;
  /** The reports that the call asks for. */
  readonly reports?: AskedReports;
  /** True if it was begun elsewhere: then it is unknown which operation_id the seller was given. */
  readonly isAdopted?: true;
  /**
   * The time at which it ended, was refused or orphaned, on the store's clock, Unix ms. Absent: none of these, or an
   * earlier version did it.
   */
  readonly closedAt?: number;
}

export const storedIn = ({ value }: RegistrationRow): Stored => storedObject(value) as unknown as Stored;

/** The row of an operation. @param dueAt null: nobody has to call it. */
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

/** The reason for an end other than `completed`, if the answer gives one. */
export const reasonOfEnd = (status: TaskStatus, { reason }: SellerAnswer): Pick<Stored, 'reason'> =>
  isTerminal(status) && status !== 'completed' && reason !== undefined ? { reason } : {};

/**
 * An operation that nobody has to call any more: without its encrypted arguments, and without members that were true of
 * the call alone.
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

/** True while somebody waits for its end. */
export const isOpen = (state: OperationState): boolean => state === 'calling' || state === 'open';

/** The row of an operation that was not answered and is no longer called. */
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
