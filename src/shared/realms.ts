// Recognises values of the runtime without `instanceof`, because a value from another realm has other constructors.
// Used by every check of a caller's value. Other realms are, for example, a test runner's `vm` context or an
// iframe.

/** Returns the name of the typed array's class from the runtime, which no member of the value can falsify. */
const typedArrayName: (value: unknown) => unknown = Function.prototype.call.bind(
  // eslint-disable-next-line @typescript-eslint/unbound-method -- bound in the same expression
  Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype) as object, Symbol.toStringTag)
    ?.get as () => unknown,
);

/** True for a `Uint8Array` or a `Buffer`, of any realm. */
export const isBytes = (value: unknown): value is Uint8Array =>
  value instanceof Uint8Array || (ArrayBuffer.isView(value) && typedArrayName(value) === 'Uint8Array');

/** True for an error of any realm. False for a Proxy whose traps throw. */
export function isError(value: unknown): value is Error {
  try {
    return value instanceof Error || Object.prototype.toString.call(value) === '[object Error]';
  } catch {
    return false;
  }
}

/** True for a promise, and anything else that `await` waits for. */
export const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  (typeof value === 'object' || typeof value === 'function') &&
  value !== null &&
  typeof (value as { readonly then?: unknown }).then === 'function';

/** True for an `AbortSignal`, of any realm or library. */
export const isAbortSignal = (value: unknown): value is AbortSignal =>
  typeof value === 'object' &&
  value !== null &&
  typeof (value as Partial<AbortSignal>).aborted === 'boolean' &&
  typeof (value as Partial<AbortSignal>).addEventListener === 'function';

/**
 * True for an object from a literal or `JSON.parse`, in any realm. False for a `Date`, a `Map` or any class
 * instance.
 */
export function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
