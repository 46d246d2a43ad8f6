// Reads the answers of the two operations that write a subscription set, `sync_accounts` and
// `sync_agent_notification_configs` (subscriptions.md §2.4, §2.6). The change of a set and all code that needs the
// object of an answer use it.
import { isJsonObject, type JsonObject, present, textMember } from '../../codec/members.ts';
import { errorsIn, type ReportedError } from '../../events/error-object.ts';
import { agentAnswerData, answerIn, errorTextIn, refusalIn, reportedErrors, unwrapped } from '../answer.ts';
import { reportedText, SellerError } from '../seller-error.ts';

/**
 * The answer to a set that was sent. `refused`: the seller keeps its own set. `taken`: the seller has accepted the set,
 * or would accept it if this was a dry run.
 */
export type SetAnswer =
  | { readonly kind: 'refused'; readonly error: SellerError }
  | {
      readonly kind: 'taken';
      readonly isDryRun: boolean;
      readonly isUnchanged: boolean;
      /** True if the answer shows the current set. A running task does not, and neither does a repeated answer. */
      readonly isNow: boolean;
      /** True if a task is running whose outcome is not known yet. */
      readonly isTask: boolean;
    };

export const SYNC_ACCOUNTS = 'sync_accounts';
export const SYNC_AGENT = 'sync_agent_notification_configs';

const refused = (error: SellerError): SetAnswer => ({ kind: 'refused', error });

/**
 * Returns the object that an operation answered; undefined for a task that has not ended.
 * @throws SellerError; RegistrationError `answer_invalid`
 */
export function answeredObject(raw: unknown, operation: string): JsonObject | undefined {
  const refusal = refusalIn(raw, operation);
  if (refusal) throw withAllReasons(refusal, reportedErrors(raw, operation));
  const { status, data } = answerIn(raw, operation);
  if (FAILED.has(status)) throw new SellerError('', errorTextIn(raw, operation) || `the status ${status}`);
  return status === 'completed' && isJsonObject(data) ? data : undefined;
}

const FAILED: ReadonlySet<string> = new Set(['failed', 'rejected', 'canceled']);

/** Reads the answer for an account. @throws RegistrationError `answer_invalid` */
export function accountAnswer(raw: unknown, accountId: string): SetAnswer {
  // Some servers mark the answer about a failed account as a failed tool.
  const body = unwrapped(raw);
  const failure = isJsonObject(body) && failureOf(accountIn(body, accountId));
  if (failure) return refused(failure);
  return judged(raw, SYNC_ACCOUNTS, (data) => {
    const own = accountIn(data, accountId);
    return own ?? new SellerError('', 'the answer does not have the account');
  });
}

/** Reads the answer for the agent. @throws RegistrationError `answer_invalid` */
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
    // The answer is a running task. Its outcome is read from the seller later.
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

/** True if the seller recognised the request key and repeats its first answer. */
const isOfBefore = (raw: unknown): boolean =>
  [raw, unwrapped(raw), agentAnswerData(raw).data].some(
    (layer) => isJsonObject(layer) && present(layer, 'replayed') === true,
  );

/** Returns our account from the answer. Only one account was sent. */
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

/** Returns the first error that is not transient, which decides the outcome. */
const worst = (errors: readonly ReportedError[]): ReportedError | undefined =>
  errors.find(({ recovery }) => recovery !== 'transient');

/** The most reasons that an error keeps. */
const MOST_REASONS = 16;

/** Returns an error with all reasons that the seller gives, in its text and in `details.reasons`. */
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
