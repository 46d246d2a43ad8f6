import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, inject, it } from 'vitest';
import { type BuyerProcess, within } from './buyer/processes.ts';
import type { AlarmSeen, Seen, Wish } from './buyer/wire.ts';
import { accountOf, OTHERS } from './seller/others.ts';
import { AGENT_SET, type SubscriptionSeller } from './seller/seller.ts';
import { inWorld, type World } from './world.ts';

const SET = 'acc-1';
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

interface Place {
  readonly set: string;
  readonly wish: (agentUrl: string) => Wish;
}

const PLACES: Readonly<Record<'account' | 'agent', Place>> = {
  account: {
    set: SET,
    wish: (agentUrl) => ({
      agentUrl,
      account: { account_id: SET },
      ref: 'r',
      eventTypes: ['product.updated', 'product.priced'],
    }),
  },
  agent: {
    set: AGENT_SET,
    wish: (agentUrl) => ({ agentUrl, ref: 'r', eventTypes: ['capabilities.changed'], exclusive: true }),
  },
};

interface Scene {
  readonly world: World;
  readonly processes: readonly BuyerProcess[];
  readonly subscriberId: string;
  readonly seen: () => Promise<Seen | undefined>;
  /** Those of both processes since it was called last. */
  readonly alarms: () => Promise<readonly AlarmSeen[]>;
  /** Questions since it was called last, and whether one of them was a change. */
  readonly asked: () => { readonly readings: number; readonly changes: number };
}

/** Two processes that watch, and one active subscription. */
const scene = (of: Place, play: (scene: Scene) => Promise<void>): Promise<void> =>
  inWorld(
    { kind: 'SQLite', shared: inject('shared'), startBy: ({ direct }) => within(direct) },
    async (world) => {
      const { seller } = world;
      seller.add(accountOf(SET));
      for (const entry of OTHERS) seller.put(SET, entry);
      const processes = [await world.start(), await world.start()];
      world.send(...processes);
      const [one] = processes as [BuyerProcess];
      await one.ask({ what: 'subscribe', wish: of.wish(seller.agentUrl) });
      for (const process of processes) await process.ask({ what: 'start' });
      const list = (): Promise<readonly Seen[]> => one.ask({ what: 'list', agentUrl: seller.agentUrl });
      const [first] = await list();
      seller.log.splice(0);
      await play({
        world,
        processes,
        subscriberId: first?.subscriberId ?? '',
        seen: async () => (await list())[0],
        alarms: async () =>
          (
            await Promise.all(processes.map((process) => process.ask<AlarmSeen[]>({ what: 'alarms' })))
          ).flat(),
        asked: () => {
          const calls = seller.log.splice(0).filter((line) => line.what === 'asked');
          const isChange = ({ operation, args }: (typeof calls)[number]): boolean =>
            operation.startsWith('sync_') && args['dry_run'] !== true;
          const changes = calls.filter(isChange).length;
          return { readings: calls.length - changes, changes };
        },
      });
    },
  );

/** Looks until it is so, while days pass: a look that is late puts off the next one. */
const days = <T>(world: World, look: () => Promise<T>) =>
  expect.poll(async () => {
    await world.later(DAY / 2);
    return look();
  });

const CHANGES: readonly (readonly [
  string,
  'account' | 'agent',
  (seller: SubscriptionSeller, id: string) => void,
])[] = [
  [
    'an account’s that the seller pauses',
    'account',
    (seller, id) => seller.change(SET, id, { active: false }),
  ],
  ['an account’s that is gone', 'account', (seller, id) => seller.drop(SET, id)],
  [
    'an account’s with fewer types',
    'account',
    (seller, id) => seller.change(SET, id, { event_types: ['product.updated'] }),
  ],
  [
    'an account’s with another URL',
    'account',
    (seller, id) => seller.change(SET, id, { url: 'https://elsewhere.example/' }),
  ],
  [
    'an agent’s that the seller pauses',
    'agent',
    (seller, id) => seller.change(AGENT_SET, id, { active: false }),
  ],
  ['an agent’s that is gone', 'agent', (seller, id) => seller.drop(AGENT_SET, id)],
];

describe('the watch of a day (subscriptions.md §4)', () => {
  it.each(CHANGES)(
    '%s is lost: one alarm of all processes, and nothing is changed',
    async (_what, of, change) => {
      await scene(PLACES[of], async ({ world, subscriberId, seen, alarms, asked }) => {
        await world.later(25 * HOUR);
        await expect.poll(() => world.seller.log.some(({ what }) => what === 'answered')).toBe(true);
        expect(await seen()).toMatchObject({ state: 'active' });
        change(world.seller, subscriberId);
        await world.later(25 * HOUR);
        await expect.poll(async () => (await seen())?.state).toBe('lost');
        expect((await seen())?.reason).toMatch(/./);
        await expect
          .poll(async () => (await alarms()).map(({ code }) => code))
          .toEqual(['subscription_lost']);
        const entries = JSON.stringify(world.seller.entries(PLACES[of].set));
        for (let day = 0; day < 3; day += 1) await world.later(DAY + HOUR);
        expect(await alarms()).toEqual([]);
        expect(JSON.stringify(world.seller.entries(PLACES[of].set))).toBe(entries);
        expect(asked().changes).toBe(0);
      });
    },
  );

  it('two processes read a set once a day, not each', async () => {
    await scene(PLACES.account, async ({ world, seen, alarms, asked }) => {
      for (let quarter = 0; quarter < 5 * 4; quarter += 1) {
        await world.later(DAY / 4);
        await wait(20);
      }
      const { readings } = asked();
      // One that is late puts off the next: it is never sooner than a day.
      expect(readings).toBeLessThanOrEqual(5);
      expect(readings).toBeGreaterThanOrEqual(2);
      expect(await seen()).toMatchObject({ state: 'active' });
      expect(await alarms()).toEqual([]);
    });
  });

  it.each(['account', 'agent'] as const)('a reading that fails says nothing of the set: %s', async (of) => {
    await scene(PLACES[of], async ({ world, subscriberId, seen, alarms, asked }) => {
      const { seller } = world;
      const failures = [
        { isLost: true },
        { error: { code: 'SERVICE_UNAVAILABLE', message: 'later' } },
        { error: { code: 'AUTH_INVALID', message: 'who?' } },
        { error: { code: 'ACCOUNT_NOT_FOUND', message: 'which?' } },
      ] as const;
      seller.change(PLACES[of].set, subscriberId, { active: false });
      for (const failure of failures) {
        seller.always(() => failure);
        asked();
        await world.later(25 * HOUR);
        await expect
          .poll(() => seller.log.filter(({ what }) => what === 'answered').length)
          .toBeGreaterThan(0);
        expect(await seen()).toMatchObject({ state: 'active' });
      }
      expect((await alarms()).filter(({ code }) => code === 'subscription_lost')).toEqual([]);
      seller.always(undefined);
      await days(world, async () => (await seen())?.state).toBe('lost');
      expect(asked().changes).toBe(0);
    });
  });
});
