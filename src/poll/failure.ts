// Classifies failed requests to sellers: busy, unknown task, missing operation, refused, failed (calls.md §2.8). Used
// by the poller and the reconciler for all their requests.
import { MAX_TEXT, printableText } from '../codec/printable.ts';
import { ConfigError, isOfKind, messageOf } from '../shared/errors.ts';
import {
  refusalIn,
  SellerBusyError,
  SellerError,
  TaskUnknownError,
  taskUnknownIn,
  TOO_MANY_REQUESTS,
  waitMs,
} from '../registrations/answer.ts';
import { AnswerRefusedError } from '../calls/refused-answer.ts';
import { AnswerError } from './poll-answer.ts';

/** The pause before the next request that the seller asks for in an error, ms; absent: none. */
interface Pause {
  readonly pauseMs?: number;
}

/**
 * The reason why a request got no usable answer. `busy`: the seller asks for a pause. `unknown`: the seller does not
 * know the task. `no-operation`: the seller does not have the operation. `refused`: repeating the request is useless
 * until somebody has changed something. `failed`: anything else; the request is repeated.
 */
export type PollFailure =
  | { readonly kind: 'busy'; readonly pauseMs: number | undefined; readonly message: string }
  | ({ readonly kind: 'unknown' | 'no-operation' | 'failed'; readonly message: string } & Pause)
  | ({ readonly kind: 'refused'; readonly code: string; readonly message: string } & Pause);

/** Matches texts by which servers and their SDKs say that an operation does not exist. */
const NO_OPERATION =
  /\b(?:unknown|no such|unsupported)\s+(?:tool|operation|method|skill)\b|\b(?:tool|operation|method|skill)\b.{0,200}\bnot (?:found|supported|available)\b/i;

/** Error codes for a missing operation: the one of JSON-RPC 2.0 for an unknown method, and this package's own. */
const NO_OPERATION_CODES: ReadonlySet<unknown> = new Set([-32_601, 'no_operation']);

/** Classifies an error. @param error the error that the client, or the reading of its answer, threw. */
export function failureOf(error: unknown): PollFailure {
  const message = printableText(messageOf(error), MAX_TEXT);
  if (isOfKind(error, SellerBusyError)) return { kind: 'busy', pauseMs: waitMs(error.retryAfterMs), message };
  if (isTaskUnknown(error)) return { kind: 'unknown', message: unknownIn(error), ...pauseIn(error) };
  const ownCode = ownCodeOf(error);
  if (ownCode !== undefined) return { kind: 'refused', code: ownCode, message };
  const { code, status, retryAfterMs } = membersOf(error);
  if (status === TOO_MANY_REQUESTS || code === TOO_MANY_REQUESTS) {
    return { kind: 'busy', pauseMs: waitMs(retryAfterMs), message };
  }
  const refusal = isOfKind(error, SellerError) ? error : refusalIn(error);
  const isNoOperation = NO_OPERATION_CODES.has(code) || NO_OPERATION.test(message);
  if (isNoOperation && !(refusal && asksToWait(refusal))) return { kind: 'no-operation', message };
  return refusal ? refusedBy(refusal) : { kind: 'failed', message };
}

/**
 * True if the error asks to wait. Such an error is never about a missing operation, even if its text looks like that.
 */
const asksToWait = ({ recovery, retryAfterMs }: SellerError): boolean =>
  recovery === 'transient' || retryAfterMs !== undefined;

/** Returns the classification of an error that the seller answered (calls.md §2.8). */
function refusedBy(refusal: SellerError): PollFailure {
  const { code, message, recovery, retryAfterMs, isUnknown } = refusal;
  if (recovery !== 'transient' && !isUnknown) return { kind: 'refused', code, message, ...pauseIn(refusal) };
  const isBusy = retryAfterMs !== undefined || code === 'RATE_LIMITED';
  return isBusy ? { kind: 'busy', pauseMs: waitMs(retryAfterMs), message } : { kind: 'failed', message };
}

/** Returns the pause that a seller's error asks for. In a TaskUnknownError that error is the `cause`. */
function pauseIn(error: unknown): Pause {
  const said = isOfKind(error, TaskUnknownError) ? error.cause : error;
  const pauseMs = isOfKind(said, SellerError) ? waitMs(said.retryAfterMs) : undefined;
  return pauseMs === undefined ? {} : { pauseMs };
}

/**
 * Returns the code if this package itself raised the error, for a wrong configuration or an unusable answer; otherwise
 * undefined.
 */
function ownCodeOf(error: unknown): string | undefined {
  if (isOfKind(error, ConfigError)) return 'misconfigured';
  if (isOfKind(error, AnswerRefusedError)) return error.code;
  return isOfKind(error, AnswerError) ? error.code : undefined;
}

/**
 * Returns the text of an error about an unknown task. If the seller's own error is the cause, its text is preferred.
 */
function unknownIn(error: unknown): string {
  const cause = isOfKind(error, TaskUnknownError) ? error.cause : undefined;
  return printableText(messageOf(isOfKind(cause, SellerError) ? cause : error), MAX_TEXT);
}

function isTaskUnknown(error: unknown): boolean {
  return (
    isOfKind(error, TaskUnknownError) || (isOfKind(error, SellerError) && taskUnknownIn(error) !== undefined)
  );
}

function membersOf(error: unknown): Readonly<Record<'code' | 'status' | 'retryAfterMs', unknown>> {
  const none = { code: undefined, status: undefined, retryAfterMs: undefined };
  return typeof error === 'object' && error !== null ? { ...none, ...error } : none;
}
