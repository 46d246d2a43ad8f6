import { expect } from 'vitest';
import type { Store } from '../../../src/index.ts';
import { acceptRequest } from '../requests.ts';

const CALLERS = 12;

/**
 * Accepts by twelve callers at once while the server is crashed three times: it goes on after each crash, and whatever
 * was not answered failed with `store_unavailable`.
 * @param between how many accepts are answered between two crashes at least, and for how long that is waited for. Ms.
 * @returns the keys of the events that were answered.
 */
export async function acceptDuringCrashes(
  store: Store,
  crash: () => unknown,
  between: { readonly accepts: number; readonly timeoutMs: number },
): Promise<readonly string[]> {
  const answered: string[] = [];
  const faults: unknown[] = [];
  let next = 0;
  const stop = new AbortController();
  const call = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      next += 1;
      const key = `event-${next}-of-the-seller`;
      try {
        if ((await store.accept(acceptRequest({ key }))).kind === 'won') answered.push(key);
      } catch (error) {
        faults.push(error);
        await new Promise((resolve) => {
          setTimeout(resolve, 5);
        });
      }
    }
  };
  const calls = Array.from({ length: CALLERS }, call);
  const moreAnswered = async (): Promise<void> => {
    const before = answered.length;
    await expect
      .poll(() => answered.length, { timeout: between.timeoutMs })
      .toBeGreaterThan(before + between.accepts);
  };
  for (let crashes = 0; crashes < 3; crashes += 1) {
    await moreAnswered();
    await crash();
  }
  await moreAnswered();
  stop.abort();
  await Promise.all(calls);
  expect(faults.length).toBeGreaterThan(0);
  for (const fault of faults) expect(fault).toMatchObject({ code: 'store_unavailable' });
  return answered;
}
