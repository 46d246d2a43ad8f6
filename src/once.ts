import type { Eventual } from './eventual.ts';

/**
 * A value made at first use and kept: there at once from then on, a promise before. An attempt that failed is made
 * again at the next use.
 * @param shared whether whoever asks meanwhile waits for the attempt under way. Where a promise dies with the request
 *   that made it (`requestsMayShare`) each request makes the value for itself, and the first that is made is kept.
 */
export function once<T>(make: () => Eventual<T>, shared: boolean): () => Eventual<T> {
  let made: { readonly value: T } | undefined;
  let making: Promise<T> | undefined;
  const keep = async (): Promise<T> => {
    const value = await make();
    made ??= { value };
    return made.value;
  };
  return () => {
    if (made) return made.value;
    if (!shared) return keep();
    making ??= keep().finally(() => {
      making = undefined;
    });
    return making;
  };
}
