// Errors for answers that cannot be used, and the test if an error is the answer's fault (calls.md §4.10, §4.11). All
// code that reads or stores answers of sellers uses them.
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

  /** @param reason text of this package, or printable text. */
  constructor(reason: string, options?: ErrorOptions) {
    super(`The answer is refused: ${reason}.`, options);
    this.reason = reason;
  }
}

/**
 * Thrown if a call was not made, because the answer to a preliminary request was refused. This does not count as a
 * refused answer of the call (calls.md §4.10).
 */
export class CallNotMadeError extends PrintableError {
  override readonly name = 'CallNotMadeError';
  /** The stable code, always `call_not_made`. */
  readonly code = 'call_not_made';
}

/**
 * Turns an AnswerRefusedError of a preliminary request into a CallNotMadeError (calls.md §4.10). Any other error is
 * returned unchanged.
 */
export function beforeCall(what: string, error: unknown): unknown {
  if (!isOfKind(error, AnswerRefusedError)) return error;
  return new CallNotMadeError(`The call was not made: ${what} is refused, ${error.reason}.`, {
    cause: error,
  });
}

/** Classes of errors that the runtime itself throws. Neither this package nor a store throws them deliberately. */
const NATIVE = [RangeError, TypeError, SyntaxError, URIError, ReferenceError];

/**
 * Returns the AnswerRefusedError that an error means, if the error came while an answer was fetched, read or stored
 * (calls.md §4.11). Undefined if the answer is not at fault.
 * @param isAnswered true if there was an answer. Before that, errors of the runtime are about the connection.
 */
export function refusedBy(error: unknown, isAnswered: boolean): AnswerRefusedError | undefined {
  if (isOfKind(error, AnswerRefusedError)) return error;
  if (isOfKind(error, Fault)) return undefined;
  const isNative = NATIVE.some((kind) => isOfKind(error, kind));
  if (!isOfKind(error, UnfitObservation) && !(isNative && isAnswered)) return undefined;
  const why = printableText(messageOf(error), MAX_TEXT).replace(/\.$/, '');
  return new AnswerRefusedError(`it cannot be kept (${why})`, { cause: error });
}
