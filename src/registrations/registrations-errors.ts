// Defines the error that `createRegistrations` and its methods throw. Its codes are listed in `src/shared/codes.ts`.
import type { RegistrationErrorCode } from '../shared/codes.ts';
import { PrintableError } from '../codec/printable-value.ts';

/**
 * Thrown by `createRegistrations` and its methods if a registration cannot be made or read, before anything is
 * written or called. `message` ends with the fix.
 */
export class RegistrationError extends PrintableError {
  override readonly name = 'RegistrationError';
  /** The stable code, for programs. The page docs/thrown-errors.md explains each code. */
  readonly code: RegistrationErrorCode;

  constructor(code: RegistrationErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
