// Errors of answers that cannot be used, and the test if an error is the answer's fault (calls.md §4.10, §4.11). All
// that reads or stores answers of sellers throws or sorts them by it.
import { MAX_TEXT, printableText } from '../codec/printable.ts';
import { Fault, isOfKind, messageOf, UnfitObservation } from '../shared/errors.ts';
import { PrintableError } from '../codec/printable-value.ts';

/**
 * Thrown by a call if the seller's answer cannot be used: too large, too deep, in an encoding that was not
 * requested, or not storable. The seller may have done what it was asked.
 */
export class AnswerRefusedError extends PrintableError {
  override readonly name = 'AnswerRefusedError';
  /** The stable code, always `answer_refused`. */
  readonly code = 'answer_refused';
  /** The reason, without a full stop. */
  readonly reason: string;

  /** @param reason our own text, or printable. */
  constructor(reason: string, options?: ErrorOptions) {
    super(`The answer is refused: ${reason}.`, options);
    this.reason = reason;
  }
}

/** Thrown if what precedes a call was refused: the call was not made, and is not counted (calls.md §4.10). */
export class CallNotMadeError extends PrintableError {
  override readonly name = 'CallNotMadeError';
  /** The stable code, always `call_not_made`. */
  readonly code = 'call_not_made';
}

/** Turns a refusal of something that precedes a call into CallNotMadeError (calls.md §4.10). Any other error stays. */
export function beforeCall(what: string, error: unknown): unknown {
  if (!isOfKind(error, AnswerRefusedError)) return error;
  return new CallNotMadeError(`The call was not made: ${what} is refused, ${error.reason}.`, {
    cause: error,
  });
}

/** Errors that the runtime itself throws. No code of ours or of a store's uses them for a message. */
const NATIVE = [RangeError, TypeError, SyntaxError, URIError, ReferenceError];

/**
 * The refusal in an error that came while an answer was fetched, read or stored (calls.md §4.11). Undefined if the
 * answer is not at fault.
 * @param isAnswered true if there was an answer; before that, errors of the runtime are the connection's.
 */
export function refusedBy(error: unknown, isAnswered: boolean): AnswerRefusedError | undefined {
  if (isOfKind(error, AnswerRefusedError)) return error;
  if (isOfKind(error, Fault)) return undefined;
  const isNative = NATIVE.some((kind) => isOfKind(error, kind));
  if (!isOfKind(error, UnfitObservation) && !(isNative && isAnswered)) return undefined;
  const why = printableText(messageOf(error), MAX_TEXT).replace(/\.$/, '');
  return new AnswerRefusedError(`it cannot be kept (${why})`, { cause: error });
}
