import { describe, expect, it, vi } from 'vitest';
import { redisStore } from '../../../src/stores/redis.ts';
import { newPrefix, ownRedis } from '../redis-harness.ts';
import { PATIENT_MS } from '../../support/patient.ts';

describe('registrations on Redis', () => {
  const own = ownRedis();

  it('leave no index behind when they are swept after Redis expired their rows', async () => {
    const prefix = newPrefix();
    // A run sweeps now and then: here each does.
    const random = vi.spyOn(Math, 'random').mockReturnValue(0);
    const store = redisStore({ client: own.redis, prefix, timeoutMs: PATIENT_MS });
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
    const left = (await own.redis.keys(`${prefix}*:4:*`)).filter((name) => !name.includes('{registry}'));
    expect(left).toEqual([]);
  });
});
