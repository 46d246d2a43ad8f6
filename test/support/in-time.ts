/**
 * Repeats a call of a store whose `timeoutMs` is short: a busy machine may not make it in time at once.
 * @throws what the call throws that is not `store_unavailable`, and that too after 60 s.
 */
export async function inTime<T>(call: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + 60_000;
  for (;;) {
    try {
      return await call();
    } catch (error) {
      const { code } = error as { readonly code?: string };
      if (code !== 'store_unavailable' || performance.now() > deadline) throw error;
    }
  }
}
