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

  /** @param reason of ours, or printable. */
  constructor(reason: string, options?: ErrorOptions) {
    super(`The answer is refused: ${reason}.`, options);
    this.reason = reason;
  }
}

/** Thrown if what precedes a call was refused: the call was not made, and is not counted (calls.md §4.10). */
export class CallNotMadeError extends PrintableError {
  override readonly name = 'CallNotMadeError';
  /** Stable, machine readable: always `call_not_made`. */
  readonly code = 'call_not_made';
}

/** The same of what comes before a call: that one was not made, and is not counted (calls.md §4.10). Any other error as it is. */
export function beforeCall(what: string, error: unknown): unknown {
  if (!isOfKind(error, AnswerRefusedError)) return error;
  return new CallNotMadeError(`The call was not made: ${what} is refused, ${error.reason}.`, {
    cause: error,
  });
}

/** What the runtime throws by itself, and no code of ours or of a store's says in words. */
const NATIVE = [RangeError, TypeError, SyntaxError, URIError, ReferenceError];

/**
 * The refusal in what was thrown while an answer was had, read or kept (calls.md §4.11); undefined for what is not its fault.
 * @param isAnswered whether there was one: before that, what the runtime throws is the connection's.
 */
export function refusedBy(error: unknown, isAnswered: boolean): AnswerRefusedError | undefined {
  if (isOfKind(error, AnswerRefusedError)) return error;
  if (isOfKind(error, Fault)) return undefined;
  const isNative = NATIVE.some((kind) => isOfKind(error, kind));
  if (!isOfKind(error, UnfitObservation) && !(isNative && isAnswered)) return undefined;
  const why = printableText(messageOf(error), MAX_TEXT).replace(/\.$/, '');
  return new AnswerRefusedError(`it cannot be kept (${why})`, { cause: error });
}
