import * as fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { memoryStore } from '../../../src/stores/memory.ts';
import { redisStore } from '../../../src/stores/redis.ts';
import { expectSameRegistrations, registrationCalls } from '../registration-calls.ts';
import { newPrefix, ownRedis } from '../redis-harness.ts';

describe('registrations on Redis', () => {
  const own = ownRedis();

  it('get the same answers as in memory, by two handles', async () => {
    let last = Promise.resolve();
    await fc.assert(
      fc.asyncProperty(registrationCalls, (calls) => {
        const run = async (): Promise<void> => {
          let offsetMs = 0;
          const clockOffsetMs = (): number => offsetMs;
          const prefix = newPrefix();
          const stores = [1, 2].map(() => redisStore({ client: own.redis, prefix, clockOffsetMs }));
          for (const store of stores) await store.open();
          await expectSameRegistrations(
            calls,
            stores,
            memoryStore({ clockOffsetMs }),
            (ms) => (offsetMs += ms),
          );
          for (const store of stores) await store.close();
        };
        return (last = run());
      }),
      { numRuns: 40, interruptAfterTimeLimit: 20_000 },
    );
    await last;
  });

  it('leave no index behind when they are swept after Redis expired their rows', async () => {
    const prefix = newPrefix();
    // A run sweeps now and then: here each does.
    const random = vi.spyOn(Math, 'random').mockReturnValue(0);
    const store = redisStore({ client: own.redis, prefix });
    await store.open();
    const sender = 'https://seller.example/mcp';
    const row = { kind: 'watch', sender, value: '', list: 'open', expiresAt: null } as const;
    const ids = ['1', '2', '3'];
    await store.registrations?.run(sender, (rows, now) => {
      for (const id of ids) rows.save({ ...row, id, dueAt: now + 1000 });
    });
    await store.registrations?.run(sender, (rows) => {
      for (const id of ids) rows.save({ ...row, id, dueAt: null, expiresAt: 1 });
    });
    expect(await own.redis.keys(`${prefix}*:W:*`)).toEqual([]);
    await store.close();
    random.mockRestore();
    const left = (await own.redis.keys(`${prefix}*:2:*`)).filter((name) => !name.includes('{registry}'));
    expect(left).toEqual([]);
  });
});
