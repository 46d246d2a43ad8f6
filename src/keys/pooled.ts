/** What `ask` gives for each item, in their order, `width` at a time. Rejects with the first rejection. */
export async function pooled<T, R>(
  items: readonly T[],
  width: number,
  ask: (item: T) => Promise<R>,
): Promise<R[]> {
  const results = new Map<number, R>();
  const queue = items.entries();
  const work = async (): Promise<void> => {
    for (const [index, item] of queue) results.set(index, await ask(item));
  };
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, work));
  return [...results].sort(([a], [b]) => a - b).map(([, result]) => result);
}
