import type { UnavailableCode } from './codes.ts';
import { isError } from './realms.ts';

/**
 * A mistake of the receiver's owner: wrong options, a store that cannot keep the promise, a body that the
 * framework parsed. `message` ends with the fix. Thrown at construction wherever the mistake can be seen
 * there, by `ready()` where it takes I/O to see it.
 */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  /** Stable, machine readable: always `config_error`. */
  readonly code = 'config_error';
}

/** What was observed cannot be kept: a mistake of who observes it by hand, the fault of the answer where one was observed. */
export class UnfitObservation extends ConfigError {}

/**
 * Thrown by a handler to say that no retry can help: the event goes to DEAD at once, is kept with its body,
 * raises the alarm `dead`, and is answered 200 so that the seller stops (admission.md §4.10).
 */
export class PermanentError extends Error {
  override readonly name = 'PermanentError';
  readonly code = 'permanent_error';
}

/**
 * A fault on our side: answered 503 with `Retry-After`, and `message` is for the owner's log, never for a sender. What a
 * store of your own rejects with where it cannot decide (`Store`), and what `receiver.inbox` and `ready()` reject with
 * where the store cannot be reached.
 */
export class Fault extends Error {
  override readonly name = 'Fault';
  readonly code: UnavailableCode;

  constructor(code: UnavailableCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** A handler's `PermanentError`, of whichever copy of this package it was made; none where its code cannot be read. */
export function isPermanent(error: unknown): boolean {
  try {
    return isError(error) && (error as { readonly code?: unknown }).code === 'permanent_error';
  } catch {
    return false;
  }
}

/** `instanceof` for anything thrown, a Proxy whose traps throw among it. */
export function isOfKind<E>(error: unknown, kind: abstract new (...args: never[]) => E): error is E {
  try {
    return error instanceof kind;
  } catch {
    return false;
  }
}

/** What was thrown, without its class. */
export const messageOf = (error: unknown): string => (isError(error) ? error.message : textOf(error));

/** Anything thrown as text, for the owner's log: a conversion that throws must not take the answer with it. */
export function textOf(error: unknown): string {
  try {
    return String(error);
  } catch {
    return 'an error that cannot be shown as text';
  }
}
