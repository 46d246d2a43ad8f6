import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { SignedDelivery } from '../../src/sender/sign.ts';
import type { Ground, Process, ProcessOptions } from './crash-points-kit.ts';
import { ground, pointsOf, sweep } from './crash-points-kit.ts';
import { KEPT } from './processes/judge.ts';

let place: Ground;

beforeEach(async () => {
  place = await ground();
});

afterEach(() => {
  place.remove();
});

const INBOX = { mode: 'inbox' } as const;

/** Its worker works until the event is done; it may be already. */
async function workOff(worker: Process, key: string): Promise<void> {
  const done = worker.life.reached(/^after (?:complete|transaction)$/);
  if (place.completions(key) === 0) {
    await worker.receiver.start();
    await done;
  }
  await worker.end();
}

/** A fresh process on the same file, door and worker, when the lease of the dead one has run out. */
async function heirOf({ effect }: ProcessOptions): Promise<Process> {
  place.leasePasses();
  return place.start({ ...INBOX, ...(effect && { effect }) });
}

describe('inbox: the receiver dies at every point between arrival and reply, and the sender retries', () => {
  const points = ['the sender is looked up', ...pointsOf('accept'), 'before the reply'];

  it('a fresh delivery: 200, completed once', async () => {
    const passed = await sweep(place, INBOX, async (mortal, key, where) => {
      const status = await mortal.tell(await place.sign(key));
      expect(status, where).toBe(mortal.life.isOver() ? undefined : 200);
      const heir = await heirOf({});
      expect(await heir.tell(await place.sign(key)), where).toBe(200);
      await workOff(heir, key);
      expect([place.completions(key), place.effects(key)], where).toEqual([1, 1]);
    });
    expect(passed).toEqual(points);
  });

  it('the same bytes: 200, or 401 replayed once the event is safe; completed once', async () => {
    const statuses: (number | undefined)[] = [];
    const passed = await sweep(place, INBOX, async (mortal, key, where) => {
      const delivery: SignedDelivery = await place.sign(key);
      await mortal.tell(delivery);
      const wasSafe = place.isSafe(key);
      const heir = await heirOf({});
      const status = await heir.tell(delivery);
      expect(status, where).toBe(wasSafe ? 401 : 200);
      statuses.push(status);
      await workOff(heir, key);
      expect([place.completions(key), place.effects(key)], where).toEqual([1, 1]);
    });
    expect(statuses.indexOf(401)).toBe(passed.lastIndexOf('after COMMIT'));
  });

  it('from the COMMIT on it is completed without its sender', async () => {
    const handled: string[] = [];
    const passed = await sweep(place, INBOX, async (mortal, key) => {
      await mortal.tell(await place.sign(key));
      if (!place.isSafe(key)) return;
      await workOff(await heirOf({}), key);
      if (mortal.life.isOver() && place.completions(key) === 1) handled.push(mortal.life.passed.at(-1) ?? '');
    });
    expect(handled).toEqual(passed.slice(passed.indexOf('after COMMIT')));
  });
});

/** Where its run ends, when it lives so long. */
const RUN_ENDS = /^after (?:complete|transaction|fail)$/;

describe('inbox: the worker dies at every point between lease and completion', () => {
  it.each([
    { effect: 'outside' },
    { effect: 'transaction' },
    { effect: 'outside', fails: true },
    { effect: 'transaction', fails: true },
  ] as const)('%o: completed once', async (how) => {
    const passed = await sweep(place, { ...INBOX, ...how }, async (mortal, key, where) => {
      const door = await place.start(INBOX);
      expect(await door.tell(await place.sign(key))).toBe(200);
      await door.end();
      const ends = mortal.life.reached(RUN_ENDS);
      void mortal.receiver.start();
      await Promise.race([mortal.life.died, ends]);
      // Alive, its worker stops before a second run can begin.
      await mortal.end();
      await workOff(await heirOf(how), key);
      expect(place.verdict(key), where).toEqual(KEPT);
    });
    const end = 'fails' in how ? 'fail' : how.effect === 'outside' ? 'complete' : 'transaction';
    const around = ['before lease', 'after lease', 'before the effect', `before ${end}`];
    expect(passed).toEqual(expect.arrayContaining([...around, 'before COMMIT', 'after COMMIT']));
  });
});
