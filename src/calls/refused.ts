/**
 * A seller has answered, and its answer is not taken: too large, too deep, encoded in a way that was not asked for, not to be kept.
 * Whether it has done what it was asked is not known.
 */
export class AnswerRefusedError extends Error {
  override readonly name = 'AnswerRefusedError';
  /** Stable, machine readable: always `answer_refused`. */
  readonly code = 'answer_refused';
  /** Why, without a full stop. */
  readonly reason: string;

  /** @param reason of ours, or printable. */
  constructor(reason: string, options?: ErrorOptions) {
    super(`The answer is refused: ${reason}.`, options);
    this.reason = reason;
  }
}
