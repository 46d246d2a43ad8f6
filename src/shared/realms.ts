/**
 * Kinds of values that the runtime makes, told apart without `instanceof`: a value of another realm (a test runner's
 * `vm` context, an iframe) has other constructors. Every check of a caller's value goes through here.
 */

/** The kind that the runtime itself gives a value: no member of the value can change it. */
const typedArrayName: (value: unknown) => unknown = Function.prototype.call.bind(
  // eslint-disable-next-line @typescript-eslint/unbound-method -- bound in the same expression
  Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype) as object, Symbol.toStringTag)
    ?.get as () => unknown,
);

/** Bytes: a `Uint8Array` or a `Buffer`, of whichever realm. */
export const isBytes = (value: unknown): value is Uint8Array =>
  value instanceof Uint8Array || (ArrayBuffer.isView(value) && typedArrayName(value) === 'Uint8Array');

/** An error, of whichever realm, a Proxy whose traps throw being none. */
export function isError(value: unknown): value is Error {
  try {
    return value instanceof Error || Object.prototype.toString.call(value) === '[object Error]';
  } catch {
    return false;
  }
}

/** A promise, or whatever else `await` waits for. */
export const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  (typeof value === 'object' || typeof value === 'function') &&
  value !== null &&
  typeof (value as { readonly then?: unknown }).then === 'function';

/** An `AbortSignal`, of whichever realm or library. */
export const isAbortSignal = (value: unknown): value is AbortSignal =>
  typeof value === 'object' &&
  value !== null &&
  typeof (value as Partial<AbortSignal>).aborted === 'boolean' &&
  typeof (value as Partial<AbortSignal>).addEventListener === 'function';

/** An object as a literal or `JSON.parse` makes it, of whichever realm: no `Date`, no `Map`, nothing of a class. */
export function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
