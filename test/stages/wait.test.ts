import { expect, it } from 'vitest';
import { createWaiting } from '../../src/stages/for-tests.ts';
import type { PeekResult } from '../../src/stores/index.ts';
import { onWorkerd } from '../support/workerd.ts';

const request = {
  sender: 'https://seller.example/mcp',
  key: 'k',
  leftMs: 30_000,
  signal: undefined,
  isRunning: () => false,
};

/** A store whose first `peek` never answers, as for a request that died. */
function deaf(): { readonly store: { peek: () => Promise<PeekResult> }; readonly peeks: () => number } {
  let peeks = 0;
  const peek = (): Promise<PeekResult> => {
    peeks += 1;
    return peeks === 1 ? new Promise(() => {}) : Promise.resolve('applied');
  };
  return { store: { peek }, peeks: () => peeks };
}

it('waits for one record share one poll', async () => {
  const { store, peeks } = deaf();
  const waiting = createWaiting(store);
  const both = [1, 2].map(() => waiting.until({ ...request, leftMs: 10 }));
  expect(await Promise.all(both)).toEqual(['busy', 'busy']);
  expect(peeks()).toBe(1);
});

it('on workerd each wait polls for itself', async () => {
  const { store, peeks } = deaf();
  onWorkerd();
  const waiting = createWaiting(store);
  const gone = new AbortController();
  const dead = waiting.until({ ...request, signal: gone.signal });
  expect(await waiting.until(request)).toBe('applied');
  expect(peeks()).toBe(2);
  gone.abort();
  expect(await dead).toBe('busy');
});

it('a run of this process is waited for after its lease expired', async () => {
  let peeks = 0;
  let isOver = false;
  const peek = async (): Promise<PeekResult> => {
    peeks += 1;
    return isOver ? 'applied' : 'free';
  };
  const waiting = createWaiting({ peek });
  const until = { ...request, isRunning: () => true };
  expect(await waiting.until({ ...until, leftMs: 10 })).toBe('busy');
  expect(peeks).toBe(1);
  const seen = waiting.until(until);
  isOver = true;
  waiting.wake(request.sender);
  expect(await seen).toBe('applied');
  expect(await waiting.until({ ...request, isRunning: () => false })).toBe('applied');
});
