// Defines the errors of sellers: refused calls, rate limits, unknown tasks, with advice for each code (calls.md §2).
// The callers and answer.ts create these errors, and owners receive them.
import type { JsonObject } from '../codec/members.ts';
import { printableText } from '../codec/printable.ts';
import { PrintableError } from '../codec/printable-value.ts';
import { type ErrorCode, type Recovery, recoveryOfCode } from '../events/error-codes.ts';
import type { ReportedError } from '../events/error-object.ts';

/**
 * The code of an error that the protocol defines for answers of sellers, e.g. `INVALID_REQUEST`: `code` of a
 * `SellerError`.
 */
export type SellerErrorCode = ErrorCode;

/** The advice for error codes for which the general advice of their `recovery` is not enough. */
const ADVICE_BY_CODE: Partial<Record<ErrorCode, string>> = {
  AUTH_REQUIRED: 'Send a bearer token in the transport: auth: { type: bearer, token }.',
  AUTH_MISSING: 'Send a bearer token in the transport: auth: { type: bearer, token }.',
  AUTH_INVALID: 'Get a new token from the seller: this one is wrong, or has expired.',
  INSUFFICIENT_PERMISSIONS: 'Ask the seller for the permission that this operation needs.',
  INVALID_REQUEST: 'Compare the arguments with what the seller documents for the operation.',
  IDEMPOTENCY_CONFLICT:
    'The same request key came with other arguments. Ask the seller what it did for that key before you create another registration.',
};

const ADVICE: Record<Recovery, string> = {
  transient: 'The same call may succeed later.',
  correctable: 'Change what the seller names, and create another registration, or subscribe again.',
  terminal: 'No further call can help: ask the seller.',
};

/**
 * Returns the advice for a code, or else for its recovery. `hasOwn` is needed: a code called `constructor` must not
 * find an inherited member.
 */
const adviceFor = (code: string, recovery: Recovery | undefined): string | undefined =>
  Object.hasOwn(ADVICE_BY_CODE, code) ? ADVICE_BY_CODE[code as ErrorCode] : recovery && ADVICE[recovery];

/** The longest text of a seller in a message, characters. */
const MAX_SELLER_TEXT = 300;

/** Shortens a seller's text for a message of ours, and makes it printable. */
export const sellerText = (text: string): string => printableText(text, MAX_SELLER_TEXT);

/**
 * The third argument of the constructor of `SellerError`: the parts of a seller's error in addition to code and
 * message.
 */
export interface SellerErrorOptions
  extends ErrorOptions, Partial<Pick<ReportedError, 'field' | 'details' | 'retryAfterMs'>> {
  /** The way to recover from the error. Absent: the code decides. */
  readonly recovery?: Recovery;
}

/** Thrown if a seller answered a call with an error. `code` and `recovery` say how to react. */
export class SellerError extends PrintableError {
  override readonly name = 'SellerError';
  /** The seller's code: one of `SellerErrorCode`, or one of its own. It is empty if the seller gave only a recovery. */
  readonly code: string;
  /**
   * The way to recover from the error. `transient`: repeat the call unchanged. `correctable`: change the arguments.
   * `terminal`: no further call can help, or neither the error nor its code tells a way.
   */
  readonly recovery: Recovery;
  /** The path of the argument that caused the error. */
  readonly field?: string;
  /** The details as the seller sent them. */
  readonly details?: JsonObject;
  /** The time that the seller asks to wait, ms. */
  readonly retryAfterMs?: number;
  /** True if the protocol does not define the code and the seller gave no recovery. */
  readonly isUnknown: boolean;

  /** @param detail the seller's own message. */
  constructor(code: string, detail: string, options: SellerErrorOptions = {}) {
    const { recovery = recoveryOfCode(code), field, details, retryAfterMs, ...rest } = options;
    const is = recovery ?? 'terminal';
    const advice = adviceFor(code, recovery);
    const said = `The seller answers ${reportedText({ code, message: detail })}.`;
    super(advice === undefined ? said : `${said} ${advice}`, rest);
    this.code = sellerText(code);
    this.recovery = is;
    this.isUnknown = recovery === undefined;
    if (field !== undefined) this.field = field;
    if (details !== undefined) this.details = details;
    if (retryAfterMs !== undefined) this.retryAfterMs = retryAfterMs;
  }
}

/** Returns code and message of an error in one line; empty if it has neither. */
export const reportedText = ({ code = '', message }: ReportedError): string =>
  [code, message]
    .filter((part) => part !== '')
    .map(sellerText)
    .join(': ');

/**
 * Makes the SellerError for an error that an answer reports.
 * @param cause the error that a client threw, if it threw one.
 */
export const sellerErrorOf = ({ code = '', message, ...rest }: ReportedError, cause?: Error): SellerError =>
  new SellerError(code, message, { ...rest, ...(cause && { cause }) });

/** The HTTP status for a caller that sends too many requests. */
export const TOO_MANY_REQUESTS = 429;

/**
 * Thrown by a call if the seller is overloaded or limits your calls: it answered 429, or 503 with `Retry-After`. The
 * seller has done nothing, so repeat the call later.
 */
export class SellerBusyError extends PrintableError {
  override readonly name = 'SellerBusyError';
  /** The stable code, always `seller_busy`. */
  readonly code = 'seller_busy';
  /** The HTTP status: 429, or 503 with `Retry-After`. */
  readonly status: number;
  /** The time that the seller asks to wait, ms. */
  readonly retryAfterMs: number | undefined;

  constructor(status: number, retryAfterMs: number | undefined, options?: ErrorOptions) {
    const wait = retryAfterMs === undefined ? 'later' : `in ${retryAfterMs} ms`;
    super(`The seller answers ${status}: it is busy. Call it again ${wait}.`, options);
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }
}

/** The longest pause that is kept: a longer one that a seller asks for is cut to this. Ms. */
export const LONGEST_PAUSE_MS = 86_400_000;

/** Returns a pause that a seller asks for, cut to one day; undefined if it is not a positive number. */
export function waitMs(ms: unknown): number | undefined {
  return typeof ms === 'number' && ms > 0 ? Math.min(ms, LONGEST_PAUSE_MS) : undefined;
}

/**
 * Thrown by a call that asks for a task's status if the seller does not know the task. The result of the task stays
 * unknown.
 */
export class TaskUnknownError extends PrintableError {
  override readonly name = 'TaskUnknownError';
  /** The stable code, always `task_unknown`. */
  readonly code = 'task_unknown';

  /** @param detail the seller's own message. */
  constructor(detail: string, options?: ErrorOptions) {
    super(`The seller does not know the task${detail === '' ? '' : `: ${sellerText(detail)}`}.`, options);
  }
}
