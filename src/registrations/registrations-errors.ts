import { PrintableError } from '../codec/printable-value.ts';

/** What is wrong with a registration, for programs. */
export type RegistrationErrorCode =
  /** An argument of a method: the message names it. */
  | 'request_invalid'
  /** A part is larger than its limit. */
  | 'request_too_large'
  /** The result of `call`, or the argument of `settle`, is not an answer of an operation. */
  | 'answer_invalid'
  /** `maxOpen` operations of the seller have not ended. */
  | 'too_many_open'
  /** Encrypted under a secret that is not in `secrets`. */
  | 'secret_missing'
  /** The stored ciphertext was changed, cut, or belongs to another row. */
  | 'sealed_text_invalid';

/** A registration that cannot be made, or read. Thrown before anything is written or called; `message` ends with the fix. */
export class RegistrationError extends PrintableError {
  override readonly name = 'RegistrationError';
  readonly code: RegistrationErrorCode;

  constructor(code: RegistrationErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
