import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, inject, it } from 'vitest';
import { type BuyerProcess, within } from './buyer/processes.ts';
import type { AlarmSeen, Wish } from './buyer/wire.ts';
import type { Entry } from './seller/entries.ts';
import type { Line } from './seller/log.ts';
import { accountOf, LEGACY_CREDENTIALS, LEGACY_OTHER, OTHERS } from './seller/others.ts';
import { AGENT_SET, type Behaviour, type CallName, type SellerOptions } from './seller/seller.ts';
import { CALL_MS, faultsIn, inWorld, oursIn, refusedIn, settled, type World } from './world.ts';

/* What goes wrong at the seller while a set is changed. */

const SET = 'acc-1';
const LIST: CallName = { operation: 'list_accounts' };
const DRY: CallName = { operation: 'sync_accounts', isDry: true };
const REAL: CallName = { operation: 'sync_accounts', isDry: false };

const wishOf = ({ seller }: World, more: Partial<Wish> = {}): Wish => ({
  agentUrl: seller.agentUrl,
  account: { account_id: SET },
  ref: 'r',
  eventTypes: ['product.updated', 'creative.purged'],
  ...more,
});

const inScene = (
  play: (world: World, process: BuyerProcess) => Promise<void>,
  options: { readonly others?: readonly Entry[]; readonly seller?: SellerOptions } = {},
): Promise<void> => {
  const { others = OTHERS, seller: sellerOptions } = options;
  return inWorld(
    {
      kind: 'SQLite',
      shared: inject('shared'),
      startBy: ({ direct }) => within(direct),
      ...(sellerOptions && { seller: sellerOptions }),
    },
    async (world) => {
      const { seller } = world;
      for (let at = 0; at < 5; at += 1) seller.add(accountOf(`acc-${at}`));
      for (const entry of others) seller.put(SET, entry);
      const [process, other] = [await world.start(), await world.start()];
      world.send(other);
      await process.ask({ what: 'start' });
      await play(world, process);
    },
  );
};

const callsOf = (log: readonly Line[], { operation, isDry }: CallName) =>
  log.flatMap((line) =>
    line.what === 'asked' &&
    line.operation === operation &&
    (isDry === undefined || (line.args['dry_run'] === true) === isDry)
      ? [line]
      : [],
  );

/** Subscribes, however that is answered, and gives what came of it. */
async function subscribed(world: World, process: BuyerProcess, more: Partial<Wish> = {}) {
  const error = await process.ask({ what: 'subscribe', wish: wishOf(world, more) }).then(
    () => undefined,
    (reason: unknown) => reason as Error & { readonly code?: string },
  );
  return { error, seen: await settled(world, process) };
}

const HICCUPS: readonly (readonly [string, CallName, Behaviour, number])[] = [
  ['the reading is not answered', LIST, { isLost: true }, 1],
  ['the dry run is not answered', DRY, { isLost: true }, 1],
  ['the change is not answered, and was not done', REAL, { isLost: true }, 2],
  ['the change is not answered, and was done', REAL, { isUnanswered: true }, 1],
  ['the change comes twice', REAL, { isTwice: true }, 1],
  ['the dry run is taken for the change', DRY, { isReal: true }, 0],
  ['the dry run is taken for the change and not answered', DRY, { isReal: true, isUnanswered: true }, 0],
  [
    'the seller is busy before it reads',
    LIST,
    { error: { code: 'SERVICE_UNAVAILABLE', message: 'later' } },
    1,
  ],
  ['the seller is busy at the dry run', DRY, { error: { code: 'RATE_LIMITED', message: 'later' } }, 1],
  ['the seller is busy at the change', REAL, { error: { code: 'CONFLICT', message: 'again' } }, 2],
];

describe('what goes wrong with one call', () => {
  it.each(HICCUPS)(
    '%s: active in the end, sent no more often than needed',
    async (_what, call, how, most) => {
      await inScene(async (world, process) => {
        const { seller } = world;
        seller.next(call, how);
        const { seen } = await subscribed(world, process);
        expect(seen).toMatchObject([{ ref: 'r', state: 'active' }]);
        expect(faultsIn(world, SET, OTHERS, seen)).toEqual([]);
        expect(callsOf(seller.log, REAL)).toHaveLength(most);
        const keys = callsOf(seller.log, { operation: 'sync_accounts' }).map(
          ({ args }) => args['idempotency_key'],
        );
        expect(new Set(keys).size).toBe(keys.length);
        expect(await seller.emit(SET, world.baseUrl)).toHaveLength(2);
        expect(refusedIn(seller.log)).toEqual([]);
      });
    },
  );

  it.each([LIST, DRY, REAL])('nobody asks before the seller’s retry_after: %j', async (call) => {
    await inScene(async (world, process) => {
      const { seller } = world;
      seller.next(call, { error: { code: 'RATE_LIMITED', message: 'later', retry_after: 600 } });
      const asking = process.ask({ what: 'subscribe', wish: wishOf(world) }).catch(() => undefined);
      const answers = (): number =>
        seller.log.filter((line) => line.what === 'answered' && line.reply.kind === 'error').length;
      await expect.poll(answers).toBe(1);
      await wait(30);
      const asked = (): number => callsOf(seller.log, DRY).length + callsOf(seller.log, REAL).length;
      const before = asked();
      await world.later(590_000);
      await wait(40);
      expect(asked()).toBe(before);
      await world.later(20_000);
      expect(await settled(world, process)).toMatchObject([{ state: 'active' }]);
      await asking;
    });
  });
});

describe('other subscribers', () => {
  it('one that replaces the set after us costs one more change', async () => {
    await inScene(async (world, process) => {
      const { seller } = world;
      seller.next(REAL, {
        after: () => {
          for (const { subscriber_id: id } of oursIn(world, SET)) seller.drop(SET, id);
        },
      });
      const { seen } = await subscribed(world, process);
      expect(seen).toMatchObject([{ state: 'active' }]);
      expect(faultsIn(world, SET, OTHERS, seen)).toEqual([]);
      expect(callsOf(seller.log, REAL)).toHaveLength(2);
    });
  });

  it('an entry that vanishes meanwhile is told of', async () => {
    await inScene(async (world, process) => {
      const { seller } = world;
      seller.next(REAL, { after: () => seller.drop(SET, 'other.signed') });
      const { seen } = await subscribed(world, process);
      expect(seen).toMatchObject([{ state: 'active' }]);
      const alarms = await process.ask<readonly AlarmSeen[]>({ what: 'alarms' });
      expect(alarms).toMatchObject([{ code: 'subscription_lost' }]);
      expect(alarms[0]?.message).toContain('other.signed');
    });
  });

  it('a call that the seller carries out late takes out what was set meanwhile: that is named within a day', async () => {
    await inScene(async (world, process) => {
      const { seller } = world;
      const other = await world.start();
      let carryOut = (): void => undefined;
      const held = new Promise<void>((resolve) => {
        carryOut = resolve;
      });
      seller.next(REAL, { before: () => held });
      const late = process.ask({ what: 'subscribe', wish: wishOf(world) });
      await expect.poll(() => callsOf(seller.log, REAL).length).toBe(1);
      // Whoever holds the set is taken for dead.
      await world.later(2 * CALL_MS);
      await other.ask({ what: 'subscribe', wish: wishOf(world, { ref: 's' }) });
      expect(oursIn(world, SET)).toHaveLength(2);
      carryOut();
      await late;
      expect(oursIn(world, SET)).toHaveLength(1);
      const alarms: AlarmSeen[] = [];
      await expect
        .poll(async () => {
          await world.later(CALL_MS * 60);
          alarms.push(...(await process.ask<readonly AlarmSeen[]>({ what: 'alarms' })));
          return alarms.map(({ code }) => code);
        })
        .toEqual(['subscription_lost']);
      const seen = await settled(world, process);
      expect(seen.map(({ ref, state }) => `${ref} ${state}`).toSorted()).toEqual(['r active', 's lost']);
      expect(faultsIn(world, SET, OTHERS, seen)).toEqual([]);
    });
  });

  it('credentials of others are asked for before anything is sent, and sent back as the owner gives them', async () => {
    const others = [...OTHERS, LEGACY_OTHER];
    await inScene(
      async (world, process) => {
        const { seller } = world;
        const first = await subscribed(world, process);
        expect(first.error?.code).toBe('foreign_credentials');
        expect(first.seen).toMatchObject([{ state: 'refused' }]);
        expect(callsOf(seller.log, { operation: 'sync_accounts' })).toEqual([]);
        const { seen } = await subscribed(world, process, { credentials: LEGACY_CREDENTIALS });
        expect(seen).toMatchObject([{ state: 'active' }]);
        expect(faultsIn(world, SET, others, seen)).toEqual([]);
        const wrong = { other_legacy: 'credentials-that-are-not-those-of-it-01' };
        const third = await subscribed(world, process, { ref: 's', credentials: wrong });
        expect(third.seen.map(({ state }) => state).toSorted()).toEqual(['active', 'refused']);
        expect(faultsIn(world, SET, others, third.seen)).toEqual([]);
      },
      { others },
    );
  });
});

describe('a refusal', () => {
  it('a proof of control that reaches nobody is the seller’s reason; the next call of the owner sets it', async () => {
    await inScene(async (world, process) => {
      const { seller } = world;
      world.send();
      const { error, seen } = await subscribed(world, process);
      expect(error?.message).toContain('has not proven control');
      expect(seen).toMatchObject([{ state: 'refused', reason: expect.stringContaining('proven control') }]);
      expect(oursIn(world, SET)).toEqual([]);
      const before = seller.log.length;
      await world.later(3 * CALL_MS);
      await wait(30);
      expect(seller.log.length).toBe(before);
      world.send(process);
      expect((await subscribed(world, process)).seen).toMatchObject([{ state: 'active' }]);
    });
  });

  it.each([
    ['a type of agents', ['capabilities.changed']],
    ['a type of media buys', ['impairment']],
    ['a type of none', ['product.exploded']],
  ])(
    '%s is refused with the list of those that are offered, and nothing is sent',
    async (_what, eventTypes) => {
      await inScene(async (world, process) => {
        const { error } = await subscribed(world, process, { eventTypes });
        expect(error?.code).toBe('event_types_not_offered');
        expect(error?.message).toContain('wholesale_feed.bulk_change');
        expect(callsOf(world.seller.log, { operation: 'sync_accounts' })).toEqual([]);
      });
    },
  );

  it('one of sixteen is the last that a set takes', async () => {
    const others = Array.from({ length: 15 }, (_, at): Entry => ({
      ...(OTHERS[0] as Entry),
      subscriber_id: `o-${at}`,
    }));
    await inScene(
      async (world, process) => {
        expect((await subscribed(world, process)).seen).toMatchObject([{ state: 'active' }]);
        const { error } = await subscribed(world, process, { ref: 's' });
        expect(error?.code).toBe('set_full');
        const seen = await settled(world, process);
        expect(faultsIn(world, SET, others, seen)).toEqual([]);
      },
      { others },
    );
  });

  it('an account that several have, or none, is not guessed', async () => {
    await inScene(async (world, process) => {
      for (const account of [{ operator: 'operator.example' }, { account_id: 'nobody' }]) {
        const { error } = await subscribed(world, process, { account });
        expect(error?.code).toBe('account_unknown');
      }
      expect(callsOf(world.seller.log, { operation: 'sync_accounts' })).toEqual([]);
    });
  });

  it('a seller of an old edition, which declares nothing, refuses by itself', async () => {
    await inScene(
      async (world, process) => {
        const { error, seen } = await subscribed(world, process, { eventTypes: ['product.exploded'] });
        expect(error?.message).toContain('not of this channel: product.exploded');
        expect(seen).toMatchObject([{ state: 'refused' }]);
        expect(callsOf(world.seller.log, REAL)).toEqual([]);
        expect(oursIn(world, SET)).toEqual([]);
      },
      { seller: { isSilent: true } },
    );
  });
});

const AGENT_DRY: CallName = { operation: 'sync_agent_notification_configs', isDry: true };
const AGENT_REAL: CallName = { operation: 'sync_agent_notification_configs', isDry: false };

const agentWish = ({ seller }: World, ref = 'r'): Wish => ({
  agentUrl: seller.agentUrl,
  ref,
  eventTypes: ['capabilities.changed'],
  exclusive: true,
});

async function subscribedToAgent(world: World, process: BuyerProcess, ref = 'r') {
  const error = await process.ask({ what: 'subscribe', wish: agentWish(world, ref) }).then(
    () => undefined,
    (reason: unknown) => reason as Error & { readonly code?: string },
  );
  return { error, seen: await settled(world, process) };
}

const keysOf = (log: readonly Line[], call: CallName): readonly unknown[] =>
  callsOf(log, call).map(({ args }) => args['idempotency_key']);

describe('the set of an agent', () => {
  it.each([
    ['the dry run is not answered', AGENT_DRY, { isLost: true }, 1],
    ['the change is not answered, and was not done', AGENT_REAL, { isLost: true }, 2],
    ['the change is not answered, and was done', AGENT_REAL, { isUnanswered: true }, 1],
    ['the change comes twice', AGENT_REAL, { isTwice: true }, 1],
    ['the dry run is taken for the change', AGENT_DRY, { isReal: true }, 1],
    [
      'the seller is busy at the change',
      AGENT_REAL,
      { error: { code: 'RATE_LIMITED', message: 'later' } },
      2,
    ],
  ] as const)('%s: active in the end, and repeated under its key', async (_what, call, how, most) => {
    await inScene(async (world, process) => {
      const { seller } = world;
      seller.next(call, how);
      const { seen } = await subscribedToAgent(world, process);
      expect(seen).toMatchObject([{ state: 'active' }]);
      expect(faultsIn(world, AGENT_SET, [], seen)).toEqual([]);
      expect(keysOf(seller.log, AGENT_REAL)).toHaveLength(most);
      expect(new Set(keysOf(seller.log, AGENT_REAL)).size).toBe(Math.min(most, 1));
      expect(await seller.emit(AGENT_SET, world.baseUrl)).toHaveLength(1);
      expect(refusedIn(seller.log)).toEqual([]);
    });
  });

  it.each(['IDEMPOTENCY_EXPIRED', 'IDEMPOTENCY_CONFLICT'])('%s: sent under another key', async (code) => {
    await inScene(async (world, process) => {
      const { seller } = world;
      seller.next(AGENT_REAL, { error: { code, message: 'another key' } });
      const { seen } = await subscribedToAgent(world, process);
      expect(seen).toMatchObject([{ state: 'active' }]);
      expect(faultsIn(world, AGENT_SET, [], seen)).toEqual([]);
      expect(new Set(keysOf(seller.log, AGENT_REAL)).size).toBe(2);
    });
  });

  it('an answer that was given before says nothing of now', async () => {
    await inScene(async (world, process) => {
      const { seller } = world;
      const drop = (): void => {
        for (const { subscriber_id: id } of seller.entries(AGENT_SET)) seller.drop(AGENT_SET, id);
      };
      seller.next(AGENT_REAL, { after: drop, isUnanswered: true });
      const { seen } = await subscribedToAgent(world, process);
      expect(seen).toMatchObject([{ state: 'active' }]);
      expect(faultsIn(world, AGENT_SET, [], seen)).toEqual([]);
      const replayed = seller.log.filter(
        (line) =>
          line.what === 'answered' && line.reply.kind === 'result' && line.reply.value['replayed'] === true,
      );
      expect(replayed).toHaveLength(1);
    });
  });

  it('needs the word that nobody else has entries', async () => {
    await inScene(async (world, process) => {
      const { exclusive: _exclusive, ...wish } = agentWish(world);
      await expect(process.ask({ what: 'subscribe', wish })).rejects.toMatchObject({
        code: 'exclusive_required',
      });
      expect(keysOf(world.seller.log, { operation: AGENT_REAL.operation })).toEqual([]);
    });
  });

  it('that was refused is set by the owner’s next call: the seller does not answer that as it did before', async () => {
    await inScene(async (world, process) => {
      world.send();
      const { error, seen: refused } = await subscribedToAgent(world, process);
      expect(error?.message).toContain('has not proven control');
      expect(refused).toMatchObject([{ state: 'refused' }]);
      world.send(process);
      const { seen } = await subscribedToAgent(world, process);
      expect(seen).toMatchObject([{ state: 'active' }]);
      expect(faultsIn(world, AGENT_SET, [], seen)).toEqual([]);
    });
  });

  it.each(['paused', 'dropped'])('that the seller has %s is set by the owner’s next call', async (how) => {
    await inScene(async (world, process) => {
      const { seller } = world;
      await subscribedToAgent(world, process);
      const [{ subscriber_id: id } = { subscriber_id: '' }] = seller.entries(AGENT_SET);
      if (how === 'paused') seller.change(AGENT_SET, id, { active: false });
      else seller.drop(AGENT_SET, id);
      const { seen } = await subscribedToAgent(world, process);
      expect(seen).toMatchObject([{ state: 'active' }]);
      expect(faultsIn(world, AGENT_SET, [], seen)).toEqual([]);
    });
  });

  it('goes to and fro: each time the seller has what was asked for last', async () => {
    await inScene(async (world, process) => {
      const { agentUrl } = world.seller;
      for (let round = 0; round < 3; round += 1) {
        for (const ref of ['one', 'two']) await subscribedToAgent(world, process, ref);
        let seen = await settled(world, process);
        expect(seen.map(({ state }) => state)).toEqual(['active', 'active']);
        expect(faultsIn(world, AGENT_SET, [], seen)).toEqual([]);
        for (const ref of ['one', 'two']) {
          await process.ask({ what: 'unsubscribe', wish: { agentUrl, ref, exclusive: true } });
        }
        seen = await settled(world, process);
        expect(seen).toEqual([]);
        expect(faultsIn(world, AGENT_SET, [], seen)).toEqual([]);
      }
    });
  });
});

describe('the owner', () => {
  it.each(['paused', 'dropped'])('sets again what the seller has %s, with a fresh proof', async (how) => {
    await inScene(async (world, process) => {
      const { seller } = world;
      const [first] = (await subscribed(world, process)).seen;
      const id = first?.subscriberId ?? '';
      if (how === 'paused') seller.change(SET, id, { active: false });
      else seller.drop(SET, id);
      const { seen } = await subscribed(world, process);
      expect(seen).toMatchObject([{ state: 'active', subscriberId: id }]);
      expect(faultsIn(world, SET, OTHERS, seen)).toEqual([]);
      expect(seller.log.filter(({ what }) => what === 'proof')).toHaveLength(2);
    });
  });

  it('keeps what was set before where a change is refused, and takes it out where it is wanted no more', async () => {
    await inScene(
      async (world, process) => {
        const { seller } = world;
        await subscribed(world, process);
        const before = oursIn(world, SET);
        const { error, seen } = await subscribed(world, process, { eventTypes: ['product.exploded'] });
        expect(error?.message).toContain('product.exploded');
        expect(seen).toMatchObject([{ state: 'refused' }]);
        expect(oursIn(world, SET)).toEqual(before);
        expect(await seller.emit(SET, world.baseUrl)).toHaveLength(2);
        expect(refusedIn(seller.log)).toEqual([]);
        const { eventTypes: _types, ...removal } = wishOf(world);
        await process.ask({ what: 'unsubscribe', wish: removal });
        expect(await settled(world, process)).toEqual([]);
        expect(oursIn(world, SET)).toEqual([]);
        expect(seller.entries(SET)).toEqual(OTHERS);
      },
      { seller: { isSilent: true } },
    );
  });

  it('forgets a seller with its subscriptions', async () => {
    await inScene(async (world, process) => {
      await subscribed(world, process);
      await process.ask({ what: 'forget', agentUrl: world.seller.agentUrl });
      expect(await settled(world, process)).toEqual([]);
    });
  });
});
