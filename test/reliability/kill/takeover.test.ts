import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, it } from 'vitest';
import { onGround, TIMES } from '../processes/ground.ts';
import { judge, KEPT } from '../processes/judge.ts';
import { report } from '../suspects/events.ts';

it('kill -9 of a worker in a handler: another one takes the event over when the lease is over, and completes it once', async () => {
  const options = { kind: 'SQLite', mode: 'inbox', seed: 1, deadlineMs: 120_000 } as const;
  const roles = ['door', 'worker', 'worker'] as const;
  await onGround({ ...options, ...TIMES, roles, shared: inject('shared') }, async (ground) => {
    const { fleet, folder, ledger, seller } = ground;
    const { key, payload } = report('taken-over', { until: 'released' });
    const runs = () => ledger.read().filter((line) => line.what === 'run');
    expect(await seller.deliver(payload(1), 'fresh')).toBe(true);
    await expect.poll(() => runs().length).toBe(1);
    const [first] = runs();
    expect(first?.run).toBe(1);
    expect(await ground.stateOf(key)).toBe('leased');
    expect(fleet.killThis(first?.pid ?? 0)).toBe(true);
    await expect.poll(() => runs().length).toBeGreaterThan(1);
    writeFileSync(join(folder, 'released'), '');
    const noted = await ground.finish();
    expect(runs()[1]?.pid).not.toBe(first?.pid);
    expect(runs()[1]?.run).toBe(2);
    const state = await ground.stateOf(key);
    expect(judge({ ...noted, owed: [{ name: key, keys: [key], state }] })).toEqual(KEPT);
  });
}, 180_000);
