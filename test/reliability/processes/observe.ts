import { setTimeout as sleep } from 'node:timers/promises';
import type { Observation } from '../../../src/index.ts';
import type { Ground } from './ground.ts';

/** The longest pause before it is asked again, ms. Nothing that is asserted depends on it. */
const PAUSE_MS = 30;

/**
 * Asks until some process says that what was observed is safe. A process may die before it has said so.
 * @returns the key of the event that it became.
 */
export async function observeUntilSafe(
  { fleet, random, signal }: Pick<Ground, 'fleet' | 'random' | 'signal'>,
  observation: Observation,
  timeoutMs: number,
): Promise<string> {
  for (;;) {
    signal.throwIfAborted();
    const { port } = await fleet.door(signal);
    try {
      const response = await fetch(`http://127.0.0.1:${port}/observe`, {
        method: 'POST',
        body: JSON.stringify(observation),
        signal: AbortSignal.timeout(timeoutMs),
      });
      const text = await response.text();
      if (response.status === 200) return text;
    } catch {
      // No answer: asked again.
    }
    await sleep(1 + random.below(PAUSE_MS));
  }
}
