import { expect, it } from 'vitest';
import { PARTS } from '../../bench/lib/breakdown.ts';
import { AGENT_URL, makeKey, prepare, PUBLIC_URL } from '../../bench/lib/deliveries.ts';
import { stageContestants } from '../../bench/lib/stages.ts';
import { contextOf } from '../../bench/lib/walk.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { SILENT_LOGGER } from '../support/silent-logger.ts';

const COUNT = 3;

/** Worked out from the others. */
const DIFFERENCES = [
  'strict count: names twice, depth',
  'envelope and event',
  'verification: more in its place than alone',
  'rest: promises, order of the stages',
];

it('breakdown: each part runs alone and repeatedly, and does what it does in a delivery', async () => {
  const key = await makeKey('ed25519');
  const deliveries = await prepare(COUNT, key, 'ed25519', 1024);
  const handled: string[] = [];
  const contestants = await stageContestants(
    deliveries,
    await contextOf({
      publicUrl: PUBLIC_URL,
      senders: [{ agentUrl: AGENT_URL, pins: [key.publicJwk] }],
      store: memoryStore(),
      durability: { require: 'process' },
      logger: SILENT_LOGGER,
      handlers: { other: ({ idempotencyKey }) => handled.push(idempotencyKey) },
    }),
  );
  const names = contestants.map(({ name }) => name);
  const alone = Object.keys(PARTS).filter((name) => !DIFFERENCES.includes(name));
  expect(new Set(names)).toEqual(new Set([...alone, 'strict', 'reading']));
  for (const { setUp, run, tearDown } of [...contestants, ...contestants]) {
    await setUp?.(COUNT);
    // Throws where a stage refuses.
    await run(COUNT, 0);
    await tearDown?.();
  }
  // Dispatched twice; no other part runs the handler.
  expect(handled.length).toBe(2 * COUNT);
});
