/** What is wrong with a registration, for programs. */
export type RegistrationErrorCode =
  /** An argument of a method: the message names it. */
  | 'request_invalid'
  /** More is to be kept than may be. */
  | 'request_too_large'
  /** What `call` gave or `settle` was given is no answer of an operation. */
  | 'answer_invalid'
  /** As many operations of the seller as `maxOpen` says have not ended. */
  | 'too_many_open'
  /** Kept encrypted under a secret that is not among those given. */
  | 'secret_missing'
  /** Kept encrypted, and what is kept was changed, cut, or belongs to another row. */
  | 'sealed_text_invalid';

/** A registration that cannot be made, or read. Thrown before anything is written or called; `message` ends with the fix. */
export class RegistrationError extends Error {
  override readonly name = 'RegistrationError';
  readonly code: RegistrationErrorCode;

  constructor(code: RegistrationErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
