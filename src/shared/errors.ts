// The errors that this package throws, and safe ways to classify and print anything that was thrown
// (admission.md §1.3).
// A `Fault` becomes a 503, a `ConfigError` is the owner's mistake.

import type { UnavailableCode } from './codes.ts';
import { isError } from './realms.ts';

/**
 * A mistake in the configuration or use of this package: wrong options, an unsuitable store, a body that the
 * framework parsed. `message` ends with the fix. It is thrown at construction if possible, otherwise by `ready()`.
 */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  /** The stable code, always `config_error`. */
  readonly code = 'config_error';
}

/**
 * Thrown for an observation that cannot be stored, by a mistake of the caller of `observe` or a fault in the
 * observed answer.
 */
export class UnfitObservation extends ConfigError {}

/**
 * Throw it in a handler if no retry can help. The event becomes DEAD immediately: it is kept with its body for an
 * operator, no longer runs, and raises the alarm `dead`. The answer is 200, so that the seller stops.
 */
export class PermanentError extends Error {
  override readonly name = 'PermanentError';
  readonly code = 'permanent_error';
}

/**
 * A fault on the receiver's side, e.g. an unreachable store. A delivery is then answered with 503 and `Retry-After`.
 * `message` is for the operator's log, never for a sender.
 * `receiver.inbox` and `ready()` reject with it if the store is unreachable. A `Store` that you write must reject with
 * it if it cannot decide.
 */
export class Fault extends Error {
  override readonly name = 'Fault';
  readonly code: UnavailableCode;

  constructor(code: UnavailableCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** True for a handler's `PermanentError`, from any copy of this package; false if its code cannot be read. */
export const isPermanent = (error: unknown): boolean => hasCode(error, 'permanent_error');

/**
 * True for the error by which a handler gives its event back. The event has no fault, but something that the handler
 * needs is missing (serve.md §2.6).
 */
export const isGivenBack = (error: unknown): boolean => hasCode(error, 'given_back');

function hasCode(error: unknown, code: string): boolean {
  try {
    return isError(error) && (error as { readonly code?: unknown }).code === code;
  } catch {
    return false;
  }
}

/** Works like `instanceof` for any thrown value. Returns false for a Proxy whose traps throw. */
export function isOfKind<E>(error: unknown, kind: abstract new (...args: never[]) => E): error is E {
  try {
    return error instanceof kind;
  } catch {
    return false;
  }
}

/** Returns the message of a thrown value, without its class. */
export const messageOf = (error: unknown): string => (isError(error) ? error.message : textOf(error));

/**
 * Returns any thrown value as text, for the owner's log. If the conversion throws, a fixed text is returned, so that
 * the answer is still sent.
 */
export function textOf(error: unknown): string {
  try {
    return String(error);
  } catch {
    return 'an error that cannot be shown as text';
  }
}
