// Converts the errors that sellers report, in any of their shapes, into one shape (verification.md §7.35, calls.md
// §2).
// Called for events, answers of calls and polls.

import { defined, isJsonObject, type JsonObject, present, textMember } from '../codec/members.ts';
import { MAX_TEXT, printableText } from '../codec/printable.ts';
import { type Recovery, recoveryMember, recoveryOfCode } from './error-codes.ts';

/**
 * An error that a seller reports about a task or call, in one shape for all transports: `event.error`. Its texts are
 * the seller's, with each unprintable character replaced by `?`.
 */
export interface ReportedError {
  /** The error code, 1 to 64 characters. Absent if the seller gave none. */
  readonly code?: string;
  /** The seller's message. Empty if there is none. */
  readonly message: string;
  /** The way to recover, from the error's own `recovery` or else from its code. Absent if neither tells it. */
  readonly recovery?: Recovery;
  /** The path of the argument that caused the error. */
  readonly field?: string;
  /** The seller's details, as sent. */
  readonly details?: JsonObject;
  /** The time that the seller asks the caller to wait, ms: 1 s to 1 h. */
  readonly retryAfterMs?: number;
}

/** Members with which sellers report errors, in order of precedence. */
export const ERROR_MEMBERS = ['adcp_error', 'proto_error', 'error', 'errors'] as const;

/** Longest text that is accepted as a code, in characters. */
const MAX_CODE = 64;
/** The largest number of errors of one list that are read. */
const MAX_ERRORS = 16;

/**
 * Returns the errors that an object reports, in order of precedence. A member that is `null` counts as absent.
 * @param names the members in which errors are searched.
 */
export const errorsIn = (
  holder: JsonObject,
  names: readonly string[] = ERROR_MEMBERS,
): readonly ReportedError[] => names.flatMap((name) => errorsOf(present(holder, name)));

const NONE: readonly ReportedError[] = [];

/**
 * Returns the errors in the value of a member of `ERROR_MEMBERS`: an object, a list of objects and texts, or a text.
 */
export function errorsOf(value: unknown): readonly ReportedError[] {
  if (value === undefined) return NONE;
  if (Array.isArray(value)) {
    return value.slice(0, MAX_ERRORS).flatMap((item) => (Array.isArray(item) ? [] : errorsOf(item)));
  }
  const own = errorOf(value);
  return [...(isJsonObject(value) ? errorsInData(value) : []), ...(own ? [own] : [])];
}

/**
 * Returns the errors inside a JSON-RPC error. The code of a JSON-RPC error is only a number; the operation's own error
 * is in `data`.
 */
function errorsInData({ code, data }: JsonObject): readonly ReportedError[] {
  if (typeof code === 'string' || !isJsonObject(data)) return [];
  const found = errorsIn(data);
  return found.length > 0 || textMember(data, 'code') === undefined ? found : errorsOf(data);
}

/** Converts one error, given as an object or as a text. Undefined if it has neither code, recovery nor message. */
function errorOf(value: unknown): ReportedError | undefined {
  const error = typeof value === 'string' ? { message: value } : value;
  if (!isJsonObject(error)) return undefined;
  const code = codeIn(error);
  const message = printableText(textMember(error, 'message') ?? '', MAX_TEXT);
  const recovery = recoveryIn(error, code);
  if (code === undefined && recovery === undefined && message === '') return undefined;
  const details = present(error, 'details');
  return {
    message,
    ...defined({
      code,
      recovery,
      field: fieldIn(error),
      details: isJsonObject(details) ? details : undefined,
      retryAfterMs: retryAfterMsIn(error),
    }),
  };
}

const recoveryIn = (error: JsonObject, code: string | undefined): Recovery | undefined =>
  recoveryMember(present(error, 'recovery')) ?? (code === undefined ? undefined : recoveryOfCode(code));

function codeIn(error: JsonObject): string | undefined {
  const code = textMember(error, 'code') ?? '';
  return code === '' || code.length > MAX_CODE ? undefined : printableText(code, MAX_CODE);
}

/** Returns the member `field` of an error or, without it, the pointer of the first of the error's `issues`. */
function fieldIn(error: JsonObject): string | undefined {
  const issues = present(error, 'issues');
  const [first] = Array.isArray(issues) ? (issues as readonly unknown[]) : [];
  const field =
    textMember(error, 'field') ?? (isJsonObject(first) ? textMember(first, 'pointer') : undefined);
  return field === undefined || field === '' ? undefined : printableText(field, MAX_TEXT);
}

const SECOND_MS = 1000;
/** Bounds of an error's `retry_after`, in seconds. */
const LEAST_S = 1;
const MOST_S = 3600;

/**
 * Returns the `retry_after` of an error in ms, rounded up to whole seconds and limited to 1 s to 1 h. Undefined if the
 * member is not a number.
 */
export function retryAfterMsIn(error: JsonObject): number | undefined {
  const seconds = present(error, 'retry_after');
  if (typeof seconds !== 'number' || !Number.isFinite(seconds)) return undefined;
  return Math.min(Math.max(Math.ceil(seconds), LEAST_S), MOST_S) * SECOND_MS;
}
