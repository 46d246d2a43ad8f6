import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, inject, it } from 'vitest';
import { LONG } from '../form.ts';
import { onGround, type Ground } from '../processes/ground.ts';
import type { Role } from '../processes/wire.ts';
import { outcomeOf, report, sell, type Outcome } from './events.ts';
import { tell } from '../../support/tell.ts';

const HANGS = LONG ? 5 : 2;
const TIMES = { leaseMs: 2_000, waitMs: 2_000, timeoutMs: 10_000 } as const;
/** Longer than a lease, and shorter than the store's clients wait. */
const HANG_MS = 3_000;
const ROLES: readonly Role[] = ['both', 'worker'];

/** Their handlers go on through all of the hangs. */
const LASTING = Array.from({ length: 5 }, (_, n) => report(`lasting-${n}`, { until: 'released' }));
/** Their handlers end while the store hangs. */
const passing = (hang: number) =>
  Array.from({ length: 5 }, (_, n) => report(`passing-${hang}-${n}`, { takesMs: HANG_MS / 2 }));

async function allRun({ ledger, signal }: Ground, keys: readonly string[]): Promise<void> {
  for (;;) {
    const run = new Set(ledger.read().map(({ key }) => key));
    if (keys.every((key) => run.has(key))) return;
    signal.throwIfAborted();
    await sleep(5);
  }
}

function hangs(): Promise<Outcome> {
  const retry = { attempts: 12, crashes: HANGS };
  const options = { kind: 'Redis', mode: 'inbox', retry, roles: ROLES, seed: 20_260_106 } as const;
  return onGround({ ...options, ...TIMES, deadlineMs: 240_000, shared: inject('shared') }, async (ground) => {
    const { backend, folder } = ground;
    const events = [...LASTING];
    const acknowledged = await sell(ground, LASTING);
    for (let hang = 1; hang <= HANGS; hang += 1) {
      const more = passing(hang);
      events.push(...more);
      for (const key of await sell(ground, more)) acknowledged.add(key);
      await allRun(
        ground,
        events.map(({ key }) => key),
      );
      backend.hang?.(true);
      await sleep(HANG_MS);
      backend.hang?.(false);
    }
    writeFileSync(join(folder, 'released'), '');
    return outcomeOf(ground, events, acknowledged, HANGS);
  });
}

it('a store that does not answer for longer than a lease is not a crash: no event is DEAD or overlaps itself', async () => {
  const outcome = await hangs();
  expect(outcome).toMatchObject({ lost: [], twice: [], dead: [], besideItself: [] });
  const events = LASTING.length + HANGS * passing(1).length;
  expect(outcome).toMatchObject({ events, acknowledged: events, unexpected: [] });
  if (!LONG) return;
  tell(outcome);
  // Where a process is held up for longer than others wait for it, its events run once more elsewhere: how many, the
  // machine decides. The long form is made on a quiet one.
  expect(outcome.runs).toBeLessThan(1.5 * outcome.events);
}, 300_000);
