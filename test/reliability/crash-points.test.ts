import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { SignedDelivery } from '../../src/sender/sign.ts';
import type { Ground, ProcessOptions } from './crash-points-kit.ts';
import { ground, pointsOf, sweep } from './crash-points-kit.ts';
import { KEPT } from './processes/judge.ts';

let place: Ground;

beforeEach(async () => {
  place = await ground();
});

afterEach(() => {
  place.remove();
});

/** The sender's retry, at a fresh process on the same file, when the lease of the dead one has run out. */
async function retryElsewhere(
  { effect }: ProcessOptions,
  delivery: SignedDelivery,
): Promise<number | undefined> {
  place.leasePasses();
  const heir = await place.start(effect ? { effect } : {});
  const status = await heir.tell(delivery);
  await heir.end();
  return status;
}

const OUTSIDE = [
  'the sender is looked up',
  ...pointsOf('accept'),
  'before the effect',
  'after the effect',
  ...pointsOf('complete'),
  'before the reply',
];

const TRANSACTION = [
  'the sender is looked up',
  ...pointsOf('accept'),
  'before the effect',
  ...pointsOf('transaction', ['before the write', 'after the write']),
  'after the effect',
  'before the reply',
];

const EFFECTS = [
  ['outside', OUTSIDE],
  ['transaction', TRANSACTION],
] as const;

describe('inline: the process dies at every point between arrival and reply, and the sender retries', () => {
  it.each(EFFECTS)('effect %s, a fresh delivery: completed once, 200', async (effect, expected) => {
    const options = { effect };
    const points = await sweep(place, options, async (mortal, key, where) => {
      const status = await mortal.tell(await place.sign(key));
      expect(status, where).toBe(mortal.life.isOver() ? undefined : 200);
      expect(await retryElsewhere(options, await place.sign(key)), where).toBe(200);
      expect(place.verdict(key), where).toEqual(KEPT);
    });
    expect(points).toEqual(expected);
  });

  it.each(EFFECTS)(
    'effect %s, the same bytes: 200, or 401 replayed once the event is done',
    async (effect) => {
      const options = { effect };
      const statuses: (number | undefined)[] = [];
      const points = await sweep(place, options, async (mortal, key, where) => {
        const delivery = await place.sign(key);
        await mortal.tell(delivery);
        const wasDone = place.completions(key) === 1;
        const status = await retryElsewhere(options, delivery);
        expect(status, where).toBe(wasDone ? 401 : 200);
        statuses.push(status);
        expect(place.verdict(key), where).toEqual(KEPT);
      });
      // The line between the two is the last COMMIT: not before it, and never again after it.
      const committed = points.lastIndexOf('after COMMIT');
      expect(statuses.indexOf(401)).toBe(committed);
      expect(statuses.slice(committed)).toEqual(Array(points.length - committed + 1).fill(401));
    },
  );

  it.each(['outside', 'transaction'] as const)(
    'effect %s, the handler fails: 503, then completed once, 200',
    async (effect) => {
      const options = { effect };
      const points = await sweep(place, { ...options, fails: true }, async (mortal, key, where) => {
        const status = await mortal.tell(await place.sign(key));
        expect(status, where).toBe(mortal.life.isOver() ? undefined : 503);
        expect(place.completions(key), where).toBe(0);
        expect(await retryElsewhere(options, await place.sign(key)), where).toBe(200);
        expect(place.verdict(key), where).toEqual(KEPT);
      });
      expect(points).toEqual(expect.arrayContaining(['before fail', 'after fail']));
    },
  );

  it('while it renews the lease: completed once, 200', async () => {
    const options = { renews: true } as const;
    const points = await sweep(place, options, async (mortal, key, where) => {
      await mortal.tell(await place.sign(key));
      expect(await retryElsewhere({}, await place.sign(key)), where).toBe(200);
      expect(place.verdict(key), where).toEqual(KEPT);
    });
    expect(points).toEqual(expect.arrayContaining(['before renew', 'after renew', 'before complete']));
  });

  it('while it takes over from a dead process: completed once, 200, a minute later where it died with the event alone', async () => {
    const onPeek = (): void => place.leasePasses();
    const statuses: (number | undefined)[] = [];
    const points = await sweep(place, { onPeek }, async (mortal, key, where) => {
      const dead = await place.start({ diesAt: 'after accept' });
      expect(await dead.tell(await place.sign(key))).toBeUndefined();
      await mortal.tell(await place.sign(key));
      const isDone = place.completions(key) === 1;
      statuses.push(await retryElsewhere({}, await place.sign(key)));
      if (!isDone && statuses.at(-1) === 503) {
        place.firstWaitPasses();
        expect(await retryElsewhere({}, await place.sign(key)), where).toBe(200);
      }
      expect(place.verdict(key), where).toEqual(KEPT);
    });
    // From the commit of its lease to that of its completion, and at no other point.
    const charged = statuses.flatMap((status, at) => (status === 503 ? [at] : []));
    expect(charged).toEqual(Array.from(charged, (_, n) => (charged[0] ?? 0) + n));
    expect(points[charged[0] ?? -1]).toBe('after COMMIT');
    expect(points[charged.at(-1) ?? -1]).toBe('before COMMIT');
    expect(new Set(statuses)).toEqual(new Set([200, 503]));
    const calls = points.filter((point) => /^before (?:accept|peek|complete)$/.test(point));
    const again = 'before accept';
    // It is a suspect by then: asked for once more, with its process's place for one kept.
    expect(calls).toEqual(['before accept', 'before peek', again, again, 'before complete']);
  });

  it('while it answers a duplicate: nothing changes, 200', async () => {
    const points = await sweep(place, {}, async (mortal, key, where) => {
      const first = await place.start();
      expect(await first.tell(await place.sign(key))).toBe(200);
      await first.end();
      await mortal.tell(await place.sign(key));
      expect(await retryElsewhere({}, await place.sign(key)), where).toBe(200);
      expect([place.completions(key), place.effects(key)], where).toEqual([1, 1]);
    });
    expect(points).toEqual(['the sender is looked up', ...pointsOf('accept'), 'before the reply']);
  });

  it('the check catches a store that records the nonce separately: the sender is told to give up', async () => {
    const breaks: ProcessOptions['breaks'] = (store) => ({
      ...store,
      accept: async (request) => {
        const { event, nonce, ...rest } = request;
        const burned = nonce ? await store.accept({ ...rest, nonce }) : undefined;
        if (burned?.kind === 'replayed') return burned;
        return store.accept({ ...rest, ...(event && { event }) });
      },
    });
    const lost: string[] = [];
    const points = await sweep(place, { breaks }, async (mortal, key) => {
      const delivery = await place.sign(key);
      await mortal.tell(delivery);
      place.leasePasses();
      const heir = await place.start({ breaks });
      const status = await heir.tell(delivery);
      await heir.end();
      if (status === 401 && place.completions(key) === 0) lost.push(mortal.life.passed.at(-1) ?? '');
    });
    const [burned, completed] = [points.indexOf('after COMMIT'), points.lastIndexOf('before COMMIT')];
    expect(lost).toEqual(points.slice(burned, completed + 1));
  });
});
