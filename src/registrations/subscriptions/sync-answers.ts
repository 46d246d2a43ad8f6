// Reads sellers' answers to the operations that write subscriptions, `sync_accounts` and
// `sync_agent_notification_configs` (subscriptions.md §2.4, §2.6). Also returns the data in the answer to any other
// operation.
import { isJsonObject, type JsonObject, present, textMember } from '../../codec/members.ts';
import { errorsIn, type ReportedError } from '../../events/error-object.ts';
import { agentAnswerData, answerIn, errorTextIn, refusalIn, reportedErrors, unwrapped } from '../answer.ts';
import { reportedText, SellerError } from '../seller-error.ts';

/**
 * The seller's answer to a change of subscriptions. `refused`: the seller changed nothing. `taken`: the seller has
 * accepted the change, or would accept it if this was a dry run.
 */
export type SetAnswer =
  | { readonly kind: 'refused'; readonly error: SellerError }
  | {
      readonly kind: 'taken';
      readonly isDryRun: boolean;
      readonly isUnchanged: boolean;
      /**
       * True if the seller has the sent entries now. False for a running task, and for the repeated answer to an
       * earlier call.
       */
      readonly isNow: boolean;
      /** True if the seller has started a task for the change, whose outcome is unknown yet. */
      readonly isTask: boolean;
    };

export const SYNC_ACCOUNTS = 'sync_accounts';
export const SYNC_AGENT = 'sync_agent_notification_configs';

const refused = (error: SellerError): SetAnswer => ({ kind: 'refused', error });

/**
 * Returns the data of a completed operation from the seller's answer; undefined for a task that has not ended.
 * @throws SellerError if the answer is an error; RegistrationError `answer_invalid`
 */
export function answeredObject(raw: unknown, operation: string): JsonObject | undefined {
  const refusal = refusalIn(raw, operation);
  if (refusal) throw withAllReasons(refusal, reportedErrors(raw, operation));
  const { status, data } = answerIn(raw, operation);
  if (FAILED.has(status)) throw new SellerError('', errorTextIn(raw, operation) || `the status ${status}`);
  return status === 'completed' && isJsonObject(data) ? data : undefined;
}

const FAILED: ReadonlySet<string> = new Set(['failed', 'rejected', 'canceled']);

/** Reads the answer to `sync_accounts` for one account. @throws RegistrationError `answer_invalid` */
export function accountAnswer(raw: unknown, accountId: string): SetAnswer {
  // Some servers mark the whole tool call as failed if one account failed. So the account's own error is looked for
  // first.
  const body = unwrapped(raw);
  const failure = isJsonObject(body) && failureOf(accountIn(body, accountId));
  if (failure) return refused(failure);
  return judged(raw, SYNC_ACCOUNTS, (data) => {
    const own = accountIn(data, accountId);
    return own ?? new SellerError('', 'the answer does not have the account');
  });
}

/** Reads the answer to `sync_agent_notification_configs`. @throws RegistrationError `answer_invalid` */
export function agentAnswer(raw: unknown): SetAnswer {
  return judged(raw, SYNC_AGENT, (data) =>
    ACTIONS.has(data['action']) ? data : new SellerError('', 'the answer has no action that is known'),
  );
}

const ACTIONS: ReadonlySet<unknown> = new Set(['updated', 'unchanged', 'cleared', 'failed']);

function judged(
  raw: unknown,
  operation: string,
  of: (data: JsonObject) => JsonObject | SellerError,
): SetAnswer {
  try {
    const data = answeredObject(raw, operation);
    // An answer without data means that the seller does the change in a task that still runs. A later check finds the
    // task's outcome.
    if (!data) return { kind: 'taken', isDryRun: false, isUnchanged: false, isNow: false, isTask: true };
    const own = of(data);
    if (own instanceof SellerError) return refused(own);
    const failure = failureIn(own);
    if (failure) return refused(failure);
    return {
      kind: 'taken',
      isDryRun: present(data, 'dry_run') === true,
      isUnchanged: own['action'] === 'unchanged',
      isTask: false,
      isNow: !isOfBefore(raw),
    };
  } catch (error) {
    if (error instanceof SellerError) return refused(error);
    throw error;
  }
}

/** True if the seller repeated its answer to an earlier call with the same `idempotency_key`. */
const isOfBefore = (raw: unknown): boolean =>
  [raw, unwrapped(raw), agentAnswerData(raw).data].some(
    (layer) => isJsonObject(layer) && present(layer, 'replayed') === true,
  );

/**
 * Returns the account with the id `accountId` from the answer. A single account without an id counts too, because only
 * one account was sent.
 */
function accountIn(data: JsonObject, accountId: string): JsonObject | undefined {
  const accounts = present(data, 'accounts');
  const found = Array.isArray(accounts) ? accounts.filter(isJsonObject) : [];
  const own = found.find((one) => textMember(one, 'account_id') === accountId);
  const [only, other] = found;
  return own ?? (only && !other && present(only, 'account_id') === undefined ? only : undefined);
}

const DONE: ReadonlySet<unknown> = new Set(['created', 'updated', 'unchanged', 'cleared']);

const failureOf = (own: JsonObject | undefined): SellerError | undefined => own && failureIn(own);

function failureIn(own: JsonObject): SellerError | undefined {
  const { action } = own;
  const errors = errorsIn(own);
  if (DONE.has(action) || (action !== 'failed' && errors.length === 0)) return undefined;
  const [first = { message: 'the action failed' }] = errors;
  return ofReasons(worst(errors) ?? first, errors);
}

/**
 * Returns the first error that is not transient; undefined if all are transient. Such an error decides the outcome,
 * because a retry would not help.
 */
const worst = (errors: readonly ReportedError[]): ReportedError | undefined =>
  errors.find(({ recovery }) => recovery !== 'transient');

/** The most of the seller's errors that `details.reasons` lists. */
const MOST_REASONS = 16;

/**
 * Returns an error that contains all errors of the seller: their texts in its message, and the errors in
 * `details.reasons`.
 */
function ofReasons(error: ReportedError, all: readonly ReportedError[]): SellerError {
  const { code = '', message, ...rest } = error;
  const others = all.filter((one) => one !== error).map(reportedText);
  const told = [message, ...others].filter((text) => text !== '').join('; ');
  return new SellerError(code, told, {
    ...rest,
    details: { ...rest.details, reasons: all.slice(0, MOST_REASONS) },
  });
}

function withAllReasons(refusal: SellerError, all: readonly ReportedError[]): SellerError {
  const own = all.find((one) => one.code === refusal.code) ?? all[0];
  return own && all.length > 1 ? ofReasons(own, all) : refusal;
}
