/** Versions from a random one of 52 bits on: none is used twice, also where a row was deleted and comes again (admission.md §8.6). */
export function versions(): () => number {
  // Not before the first: workerd gives no random values while a module is loaded.
  let last: number | undefined;
  return () => {
    last = ((last ?? random52()) + 1) % 2 ** 52;
    return last;
  };
}

function random52(): number {
  const [high = 0, low = 0] = globalThis.crypto.getRandomValues(new Uint32Array(2));
  return (high % 2 ** 20) * 2 ** 32 + low;
}
