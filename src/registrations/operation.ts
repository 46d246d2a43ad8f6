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

/* An operation as it is kept, and what is told of one; how that changes it: settling.ts. */

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

/** What the seller has answered. */
export interface SellerAnswer {
  readonly status: TaskStatus;
  readonly taskId?: string;
  readonly mediaBuyId?: string;
  /** The media buy's own status, where it is a terminal one. */
  readonly ending?: string;
  /** The result, or what the status says: what a webhook would have in `result`. */
  readonly data?: unknown;
  /** It is not over by that, though its status is an end: nothing says what came of it (calls.md §1.6). */
  readonly isOpen?: true;
  /** The task that the named one has taken the place of (calls.md §1.5). */
  readonly replaces?: string;
  /** The seller's error, of an end that is not `completed`. */
  readonly reason?: string;
}

/** The first error in the data of an end that is not `completed`, in one line; undefined where there is none. */
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

/** The media buy that a result names; undefined for one that is too long to be kept. */
export function mediaBuyIn(data: unknown): string | undefined {
  const id = isJsonObject(data) ? textMember(data, 'media_buy_id') : undefined;
  return id !== undefined && id.length <= MAX_TEXT ? id : undefined;
}

/**
 * The end of a media buy that a result tells of. A `status` beside the media buy's id may be the task's: it is none.
 * @returns undefined where the media buy goes on, or nothing is said of it.
 */
export function endingIn(data: unknown): string | undefined {
  const status = isJsonObject(data) ? textMember(data, 'media_buy_status') : undefined;
  return isTerminalBuy(status) ? status : undefined;
}

/** What an event says of the operation that it is of. */
export interface OperationTold {
  readonly agentUrl: string;
  readonly operationId?: string;
  readonly taskId?: string;
  /** The agent transport's Task that told of that task, where it is another one. */
  readonly callTaskId?: string;
  /** The one media buy that it names: of the result, or of a report. */
  readonly mediaBuyId?: string;
  /** As of `SellerAnswer`. */
  readonly ending?: string;
  /** Of an event that tells of a task. */
  readonly status?: TaskStatus;
  /** As of `SellerAnswer`. */
  readonly reason?: string;
  /** The seller has delivered it itself. */
  readonly isWebhook?: boolean;
}

/** The operation that an event is of. */
export interface OperationFound {
  readonly operation: OperationSeen;
  /** The event names another operation than its task's, or a task that is not the operation's. */
  readonly isMismatch: boolean;
  /** Id of the secret that its token is made by; absent: none was asked for. */
  readonly token?: string;
}

/** What a row says. */
export interface Stored {
  readonly seller: Seller;
  readonly taskType: string;
  readonly state: OperationState;
  readonly ref?: string;
  /** As JSON text: its members are the caller's. */
  readonly context?: string;
  readonly taskId?: string;
  /** How many tasks have taken the place of the one before. */
  readonly moves?: number;
  readonly status?: TaskStatus;
  readonly createdAt: number;
  readonly requestKey: string;
  /** From then on the seller may not know the request any more. Unix ms. */
  readonly keyUntil: number;
  readonly keyMs: number;
  readonly scheme: RouteScheme;
  /** Id of the secret that the token is made by; absent: none was asked for. */
  readonly token?: string;
  /** The arguments, until it is settled. */
  readonly sealed?: string;
  /** The URLs of ours by which its seller was asked to send. Absent: it was adopted. */
  readonly told?: CallTold;
  readonly withoutConfig?: true;
  /** Calls whose answers were refused, while it is called. */
  readonly refusals?: number;
  /** Why, once it is called no more for that. */
  readonly reason?: string;
  /** The code of the seller's error, once it is called no more for that. */
  readonly refusal?: string;
  /** The step of a move (told.md §3.2). */
  readonly isStep?: true;
  /** Transient errors since the call was made, each an answer of its last attempt. */
  readonly busy?: number;
  /** Its last attempt was answered, and so were those before: none of them has done anything. Goes with the next attempt. */
  readonly isAnswered?: true;
  /** `account` of the arguments, as JSON text: the seller is asked about the task with it. */
  readonly account?: string;
  /** What came of it: its delivery reports name no operation. */
  readonly mediaBuyId?: string;
  /** The id of the stream's row, where it is another text. The rules of stores read both. */
  readonly streamId?: string;
  /** The reports that it asks for. */
  readonly reports?: AskedReports;
  /** Begun elsewhere: which operation_id its seller was told is not known. */
  readonly isAdopted?: true;
  /** When it ended, was refused or orphaned, on the store's clock, Unix ms. Absent: it has not been, or an earlier version did it. */
  readonly closedAt?: number;
}

export const storedIn = ({ value }: RegistrationRow): Stored => storedObject(value) as unknown as Stored;

/** @param dueAt null: nobody has to call it. */
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

/** Why it has ended otherwise than it should; nothing of one that goes on. */
export const reasonOfEnd = (status: TaskStatus, { reason }: SellerAnswer): Pick<Stored, 'reason'> =>
  isTerminal(status) && status !== 'completed' && reason !== undefined ? { reason } : {};

/** What is encrypted goes when nobody has to call it any more, with what else was so of the call. */
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

/** Whether somebody waits for its end. */
export const isOpen = (state: OperationState): boolean => state === 'calling' || state === 'open';

/** Nobody calls it any more, and it has not been answered. */
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

/** The bytes of a call cannot be made again. */
export class NotRepeatable extends PrintableError {
  override readonly name = 'NotRepeatable';
  override readonly code = 'not_repeatable';
  constructor() {
    super('the credentials of the URL that it named were retired');
  }
}
