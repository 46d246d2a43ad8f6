import { AsyncResource, createHook, executionAsyncId } from 'node:async_hooks';
import { expect, it } from 'vitest';
import { testReceiver, payloads, said } from './setup.ts';

/** How many promises come into being because of what `work` does; those of others that run meanwhile do not count. */
async function promisesOf(work: () => Promise<unknown>): Promise<number> {
  const scope = new AsyncResource('delivery');
  const ours = new Set([scope.asyncId()]);
  let promises = 0;
  const hook = createHook({
    init: (id, type) => {
      if (!ours.has(executionAsyncId())) return;
      ours.add(id);
      if (type === 'PROMISE') promises += 1;
    },
  });
  hook.enable();
  try {
    await scope.runInAsyncScope(work);
  } finally {
    hook.disable();
  }
  return promises;
}

/**
 * Counted on Node 24, not derived: the caller's and the handler's own promises are among them. A smaller count is to be
 * written here; a larger one means that an ordinary delivery waits for more than before. It was 29 while stages returned
 * values without a promise where they could: that was no faster (docs/performance.md).
 */
const MOST = 76;

it('an ordinary delivery makes no more promises than the counted number', async () => {
  const { receiver, sign, send } = await testReceiver({ verification: 'main' });
  // Loads what is loaded when it is first needed.
  await send(await sign(payloads.tool('completed')));
  const signed = await sign(payloads.tool('completed'));
  let answer = '';
  const promises = await promisesOf(async () => {
    answer = said(await send(signed));
  });
  expect(answer).toBe('accepted 200');
  // None at all would say that the hook saw nothing.
  expect(promises).toBeGreaterThan(2);
  expect(promises).toBeLessThanOrEqual(MOST);
  await receiver.stop();
});
