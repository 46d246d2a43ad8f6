/** What is wrong with a registration, for programs. */
export type RegistrationErrorCode =
  | 'arguments_invalid'
  | 'arguments_too_large'
  | 'context_invalid'
  | 'context_too_large'
  | 'ref_invalid'
  | 'ref_too_large'
  | 'reporting_invalid'
  | 'task_type_invalid'
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
