import type { RegistrationErrorCode } from '../shared/codes.ts';
import { PrintableError } from '../codec/printable-value.ts';

/** A registration that cannot be made, or read. Thrown before anything is written or called; `message` ends with the fix. */
export class RegistrationError extends PrintableError {
  override readonly name = 'RegistrationError';
  readonly code: RegistrationErrorCode;

  constructor(code: RegistrationErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
