/**
 * The three functions of the metadata proposal that the certificate library's dependency injection asks for when it is
 * loaded. To be imported before it.
 */
const metadata = new WeakMap<object, Map<unknown, unknown>>();

const own = (key: unknown, target: object): unknown => metadata.get(target)?.get(key);

function inherited(key: unknown, target: object | null): unknown {
  if (target === null) return undefined;
  return own(key, target) ?? inherited(key, Object.getPrototypeOf(target) as object | null);
}

Object.assign(Reflect, {
  defineMetadata: (key: unknown, value: unknown, target: object): void => {
    const entries = metadata.get(target) ?? new Map<unknown, unknown>();
    metadata.set(target, entries.set(key, value));
  },
  getOwnMetadata: own,
  getMetadata: inherited,
});
