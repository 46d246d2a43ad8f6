import { randomUUID } from 'node:crypto';
import { afterEach, describe, expect, it } from 'vitest';
import type { Event, OtherEvent } from '../../src/events/index.ts';
import type { SnapshotQuery, SnapshotReader, SnapshotState } from '../../src/reconcile/index.ts';
import type { JsonObject } from '../../src/registrations/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { AGENT, payloads } from '../receiver/setup.ts';
import {
  BUY,
  buy,
  creative,
  declares,
  impairment,
  type Process,
  type Question,
  subscribed,
  SUBSCRIBER,
  world,
  type World,
} from './kit.ts';

let here: World | undefined;
afterEach(() => here?.end());

const FLIGHT = { start: '2026-03-02T00:00:00Z', end: '2026-04-06T00:00:00Z' };
const BEGIN = '2026-03-02T00:00:00Z';

/** A seller that has what `impairments` has, by media buy. */
interface Impaired extends World {
  readonly impairments: Map<string, readonly JsonObject[]>;
  /** Of each row. */
  more: JsonObject;
  /** Questions for several media buys, and for one, in pages. */
  readonly rounds: () => readonly Question[];
}

function begin(): Impaired {
  const made = world(BEGIN);
  const impaired: Impaired = {
    ...made,
    impairments: new Map(),
    more: {},
    rounds: () => made.seller.asked('get_media_buys').filter(({ args }) => args['pagination'] !== undefined),
  };
  made.seller.buys = ({ media_buy_ids: ids }) => ({
    media_buys: (ids as readonly string[]).map((id) => rowOf(impaired, id)),
  });
  return (here = impaired);
}

function rowOf({ impairments, more }: Impaired, id: string): JsonObject {
  const own = impairments.get(id) ?? [];
  return {
    media_buy_id: id,
    status: 'active',
    start_time: FLIGHT.start,
    end_time: FLIGHT.end,
    packages: [{ package_id: 'p1', product_id: 'product-1' }],
    health: own.length > 0 ? 'impaired' : 'ok',
    impairments: own,
    ...more,
  };
}

const started = async (at: Impaired, ...given: Parameters<World['process']>): Promise<Process> => {
  const one = await at.process(...given);
  await one.reconciler.start();
  return one;
};

const isImpairment = (event: Event): event is OtherEvent =>
  event.kind === 'other' && event.family === 'impairment';

const told = (...processes: readonly Process[]): readonly OtherEvent[] =>
  processes.flatMap(({ seen }) => seen.map(({ event }) => event)).filter(isImpairment);

const statesOf = (...processes: readonly Process[]): readonly (readonly [string, string, boolean])[] =>
  told(...processes).map(({ source, state }) => [source, state?.id ?? '', state?.ended === true]);

const codes = ({ alarms }: Process): readonly string[] => alarms.map(({ code }) => code);

const WEBHOOKS = {
  adcp: {},
  adcp_version: '3.1',
  media_buy: { propagation_surfaces: ['snapshot', 'webhook'] },
};

/** A webhook of an impairment. */
const comes = async ({ deliver }: Process, of: JsonObject, mediaBuyId = BUY): Promise<void> => {
  const sent = { ...payloads.family('impairment'), ...of, media_buy_id: mediaBuyId };
  await deliver({
    ...sent,
    idempotency_key: randomUUID(),
  });
};

describe('impairments (owed.md §6)', () => {
  it('one that no webhook brought is told, and its end', async () => {
    const at = begin();
    declares(at, WEBHOOKS);
    const one = await started(at);
    await buy(one, FLIGHT);
    await at.until('2026-03-02T01:00:00Z');
    at.impairments.set(BUY, [impairment('2026-03-02T01:00:00Z')]);
    await at.until('2026-03-02T01:09:00Z');
    expect(told(one)).toEqual([]);
    await at.until('2026-03-02T01:31:00Z');
    expect(told(one)).toMatchObject([
      {
        source: 'pull',
        family: 'impairment',
        notification: impairment('2026-03-02T01:00:00Z'),
        state: {
          id: 'i1',
          observedAt: '2026-03-02T01:00:00.000Z',
          ended: false,
          repeated: false,
          mediaBuyId: BUY,
        },
      },
    ]);
    expect(one.alarms).toMatchObject([
      { code: 'impairment_missed', sender: AGENT, mediaBuyId: BUY, id: 'i1' },
    ]);
    const open = (await one.reconciler.account()).streams[0]?.impairments;
    expect(open).toEqual([
      { id: 'i1', state: 'open', observedAt: '2026-03-02T01:00:00.000Z', source: 'pull' },
    ]);
    await at.until('2026-03-02T02:00:00Z');
    at.impairments.delete(BUY);
    await at.until('2026-03-02T02:46:00Z');
    expect(statesOf(one)).toEqual([
      ['pull', 'i1', false],
      ['pull', 'i1', true],
    ]);
    expect(told(one)[1]).toMatchObject({
      notification: {
        impairment_id: 'i1',
        transition: { from: 'rejected' },
        observed_at: '2026-03-02T01:00:00.001Z',
      },
    });
    expect(codes(one)).toEqual(['impairment_missed', 'impairment_missed']);
    const ended = (await one.reconciler.account()).streams[0]?.impairments;
    expect(ended).toMatchObject([{ id: 'i1', state: 'ended', source: 'pull' }]);
    await at.until('2026-03-03T00:00:00Z');
    expect(told(one)).toHaveLength(2);
  });

  it('one whose webhook came is told by that alone, and nothing is raised', async () => {
    const at = begin();
    declares(at, WEBHOOKS);
    const one = await started(at);
    await buy(one, FLIGHT);
    await at.until('2026-03-02T01:00:00Z');
    at.impairments.set(BUY, [impairment('2026-03-02T01:00:00Z')]);
    await at.until('2026-03-02T01:05:00Z');
    await comes(one, impairment('2026-03-02T01:00:00Z'));
    await at.until('2026-03-02T06:00:00Z');
    expect(statesOf(one)).toEqual([['webhook', 'i1', false]]);
    expect(one.alarms).toEqual([]);
  });

  it('raises nothing where webhooks are not promised, or capabilities are not known', async () => {
    for (const surfaces of [undefined, ['snapshot']]) {
      const at = begin();
      if (surfaces) declares(at, { ...WEBHOOKS, media_buy: { propagation_surfaces: surfaces } });
      const one = await started(at);
      await buy(one, FLIGHT);
      await at.until('2026-03-02T01:00:00Z');
      at.impairments.set(BUY, [impairment('2026-03-02T01:00:00Z')]);
      await at.until('2026-03-02T03:00:00Z');
      expect(statesOf(one)).toEqual([['pull', 'i1', false]]);
      expect(one.alarms).toEqual([]);
      await at.end();
    }
  });

  it.each([
    ['has neither surface', { ...WEBHOOKS, media_buy: { propagation_surfaces: ['out_of_band'] } }],
    ['speaks edition 3.0', { adcp: {}, adcp_version: '3.0' }],
  ])('does not ask a seller that %s', async (_what, capabilities) => {
    const at = begin();
    declares(at, capabilities);
    const one = await started(at);
    await buy(one, FLIGHT);
    await at.until('2026-03-02T12:00:00Z');
    expect(at.seller.asked('get_adcp_capabilities')).toHaveLength(1);
    expect(at.rounds()).toEqual([]);
  });

  it('ends what impairs a media buy that is over, and asks for it no more', async () => {
    const at = begin();
    const one = await started(at);
    await buy(one, FLIGHT);
    at.impairments.set(BUY, [impairment('2026-03-02T00:10:00Z')]);
    await at.until('2026-03-02T03:00:00Z');
    at.more = { status: 'canceled' };
    await at.until('2026-03-02T05:00:00Z');
    expect(statesOf(one)).toEqual([
      ['pull', 'i1', false],
      ['pull', 'i1', true],
    ]);
    const { length } = at.rounds();
    await at.until('2026-03-03T05:00:00Z');
    expect(at.rounds()).toHaveLength(length);
  });

  it('closes one without reports that is over: a snapshot is the first to say so', async () => {
    const at = begin();
    const one = await started(at);
    await one.registrations.adopt({ agentUrl: AGENT, mediaBuyId: BUY });
    await at.until('2026-03-02T04:00:00Z');
    at.more = { status: 'completed' };
    await at.until('2026-03-02T05:00:00Z');
    const { streams } = await one.reconciler.account();
    expect(streams).toMatchObject([{ mediaBuyId: BUY, closed: true }]);
    const { length } = at.rounds();
    await at.until('2026-03-03T05:00:00Z');
    expect(at.rounds()).toHaveLength(length);
  });

  it('asks what a media buy is whose status or revision is another', async () => {
    const at = begin();
    at.more = { revision: 1 };
    const one = await started(at);
    await buy(one, FLIGHT);
    await at.until('2026-03-02T04:00:00Z');
    const alone = (): number =>
      at.seller.asked('get_media_buys').filter(({ args }) => args['pagination'] === undefined).length;
    expect(alone()).toBe(1);
    at.more = { revision: 2 };
    await at.until('2026-03-02T06:00:00Z');
    expect(alone()).toBe(2);
  });

  it('asks a seller that makes a new revision of each answer once an hour', async () => {
    const at = begin();
    const one = await started(at);
    const snapshots = at.seller.buys;
    at.seller.buys = (args) => {
      at.more = { updated_at: new Date().toISOString() };
      return snapshots(args);
    };
    await buy(one, FLIGHT);
    await at.until('2026-03-02T12:00:00Z');
    const alone = at.seller.asked('get_media_buys').filter(({ args }) => args['pagination'] === undefined);
    expect(alone.length).toBeGreaterThan(8);
    expect(alone.length).toBeLessThan(14);
  });

  it('tells what a seller shows whose status_as_of is the time of its last change', async () => {
    const at = begin();
    declares(at, WEBHOOKS);
    const one = await started(at);
    await buy(one, FLIGHT);
    await at.until('2026-03-02T01:00:00Z');
    at.impairments.set(BUY, [impairment('2026-03-02T01:00:00Z')]);
    at.more = { status_as_of: '2026-03-02T01:00:00Z' };
    await at.until('2026-03-02T01:31:00Z');
    expect(statesOf(one)).toEqual([['pull', 'i1', false]]);
    await at.until('2026-03-02T02:00:00Z');
    at.impairments.delete(BUY);
    at.more = { status_as_of: '2026-03-02T02:00:00Z' };
    await at.until('2026-03-02T02:46:00Z');
    expect(statesOf(one)).toEqual([
      ['pull', 'i1', false],
      ['pull', 'i1', true],
    ]);
  });

  it('tells again what was told by an event that is gone before a handler completed it', async () => {
    const at = begin();
    let fails = true;
    const one = await started(
      at,
      {},
      {
        handler: async () => {
          if (fails) throw new Error('not now');
        },
        retry: { baseMs: 1, maxMs: 1, attempts: 1 },
      },
    );
    await buy(one, FLIGHT);
    await at.until('2026-03-02T00:10:00Z');
    at.impairments.set(BUY, [impairment('2026-03-02T00:10:00Z')]);
    await at.until('2026-03-02T01:00:00Z');
    const dead = await one.receiver.inbox.list({ state: 'dead' });
    const records = dead.records.filter(({ key }) => key.includes('/pull/'));
    expect(records).toHaveLength(1);
    fails = false;
    for (const { sender, key } of records) await one.receiver.inbox.discard(sender, key);
    await at.until('2026-03-02T02:00:00Z');
    expect(told(one)).toHaveLength(2);
    expect(told(one)[1]?.state?.id).toBe('i1');
  });
});

describe('rounds (owed.md §6.2)', () => {
  const many = async (one: Process, count: number, more: Parameters<typeof buy>[4] = {}): Promise<void> => {
    for (let n = 0; n < count; n += 1) {
      await buy(one, FLIGHT, 'daily', AGENT, { ...more, mediaBuyId: `buy-${n}` });
    }
  };

  it('asks a seller at most once in 15 minutes for a hundred media buys, by any number of processes', async () => {
    const at = begin();
    const one = await started(at);
    const other = await started(at);
    await many(one, 250);
    await at.until('2026-03-03T00:00:00Z');
    const day = at.rounds().filter((question) => question.at < Date.parse('2026-03-03T00:00:00Z'));
    expect(day.length).toBeLessThanOrEqual(96 * 3);
    expect(day.length).toBeGreaterThanOrEqual(94 * 3);
    for (const { args } of day) {
      expect((args['media_buy_ids'] as readonly string[]).length).toBeLessThanOrEqual(100);
      expect(args['pagination']).toEqual({ max_results: 100 });
    }
    const asked = day.slice(-3).flatMap(({ args }) => args['media_buy_ids'] as readonly string[]);
    expect(new Set(asked).size).toBe(250);
    at.impairments.set('buy-249', [impairment('2026-03-03T00:01:00Z')]);
    await at.until('2026-03-03T01:00:00Z');
    expect(statesOf(one, other)).toEqual([['pull', 'i1', false]]);
  });

  it('asks for each account, and each reference, by itself', async () => {
    const at = begin();
    const one = await started(at);
    await many(one, 2);
    await buy(one, FLIGHT, 'daily', AGENT, { mediaBuyId: 'a', account: { account_id: 'a1' } });
    await buy(one, FLIGHT, 'daily', AGENT, { mediaBuyId: 'b', account: { account_id: 'a1' }, ref: 'mine' });
    await at.until('2026-03-02T00:20:00Z');
    const asked = at.rounds().map(({ args }) => [args['account'], args['media_buy_ids']]);
    expect(asked.slice(0, 3)).toEqual(
      expect.arrayContaining([
        [undefined, ['buy-0', 'buy-1']],
        [{ account_id: 'a1' }, ['a']],
        [{ account_id: 'a1' }, ['b']],
      ]),
    );
  });

  it('follows pages while they bring media buys that were asked for', async () => {
    const at = begin();
    const one = await at.process();
    await many(one, 5);
    const pages: string[] = [];
    at.seller.buys = ({ media_buy_ids: ids, pagination }) => {
      const all = ids as readonly string[];
      if (pagination === undefined) return { media_buys: all.map((id) => rowOf(at, id)) };
      const { cursor = '0' } = pagination as { readonly cursor?: string };
      pages.push(cursor);
      const from = Number(cursor);
      const rows = all.slice(from, from + 2).map((id) => rowOf(at, id));
      return { media_buys: rows, pagination: { has_more: true, cursor: String(from + 2) } };
    };
    at.impairments.set('buy-4', [impairment('2026-03-01T22:00:00Z')]);
    await one.reconciler.start();
    await at.until('2026-03-02T00:10:00Z');
    expect(pages).toEqual(['0', '2', '4']);
    expect(statesOf(one)).toEqual([['pull', 'i1', false]]);
  });

  it.each<readonly [string, (cursor: unknown) => JsonObject]>([
    ['the same cursor for ever', () => ({ has_more: true, cursor: 'again' })],
    ['another cursor for ever', (cursor) => ({ has_more: true, cursor: `${String(cursor)}x` })],
    ['a cursor that is no text', () => ({ has_more: true, cursor: { __proto__: null } })],
    ['more, and no cursor', () => ({ has_more: true })],
  ])('ends with a seller that gives %s', async (_what, pagination) => {
    const at = begin();
    const one = await at.process();
    await many(one, 3);
    at.seller.buys = ({ media_buy_ids: ids, pagination: asked }) => ({
      media_buys: (ids as readonly string[]).slice(0, 1).map((id) => rowOf(at, id)),
      pagination: pagination((asked as JsonObject | undefined)?.['cursor']),
    });
    await one.reconciler.start();
    await at.until('2026-03-02T00:14:00Z');
    expect(at.rounds().length).toBeLessThanOrEqual(3);
  });

  it('leaves a seller alone that fails, within the same calls, and misses nothing', async () => {
    const at = begin();
    const one = await started(at);
    await many(one, 150);
    await at.until('2026-03-02T02:00:00Z');
    const { buys } = at.seller;
    at.seller.buys = () => ({ errors: [{ code: 'SERVICE_UNAVAILABLE', message: 'no' }] });
    at.impairments.set('buy-7', [impairment('2026-03-02T02:30:00Z')]);
    await at.until('2026-03-02T08:00:00Z');
    at.seller.buys = buys;
    await at.until('2026-03-02T09:00:00Z');
    expect(statesOf(one)).toEqual([['pull', 'i1', false]]);
    await at.until('2026-03-03T00:00:00Z');
    expect(at.rounds().length).toBeLessThanOrEqual(96 * 2);
  });

  it('heeds a pause that the seller asks for', async () => {
    const at = begin();
    const one = await started(at);
    await buy(one, FLIGHT);
    await at.until('2026-03-02T01:00:00Z');
    at.seller.buys = () => ({
      errors: [{ code: 'RATE_LIMITED', message: 'later', retry_after: 3600, recovery: 'transient' }],
    });
    await at.until('2026-03-02T01:20:00Z');
    const { length } = at.rounds();
    await at.until('2026-03-02T02:00:00Z');
    expect(at.rounds()).toHaveLength(length);
  });

  it('asks for a media buy that comes when none was left', async () => {
    const at = begin();
    const one = await started(at);
    await buy(one, { ...FLIGHT, end: '2026-03-04T00:00:00Z' });
    at.more = { status: 'completed' };
    await at.until('2026-03-07T00:00:00Z');
    const { length } = at.rounds();
    await at.until('2026-03-08T00:00:00Z');
    expect(at.rounds()).toHaveLength(length);
    at.more = {};
    await buy(one, { ...FLIGHT, end: '2026-05-01T00:00:00Z' }, 'daily', AGENT, { mediaBuyId: 'later' });
    await at.until('2026-03-08T02:00:00Z');
    expect(at.rounds().length).toBeGreaterThan(length);
  });
});

describe('hostile answers', () => {
  const answered = async (row: (id: string) => unknown): Promise<Process> => {
    const at = begin();
    const one = await started(at);
    await buy(one, FLIGHT);
    at.seller.buys = ({ media_buy_ids: ids, pagination }) => ({
      media_buys: (ids as readonly string[]).map((id) => (pagination ? row(id) : rowOf(at, id))),
    });
    await at.until('2026-03-02T04:00:00Z');
    return one;
  };

  it('ten thousand impairments of a media buy: a hundred are told, once', async () => {
    const list = Array.from({ length: 10_000 }, (_, n) => impairment('2026-03-01T20:00:00Z', `i${n}`));
    const one = await answered((id) => ({ media_buy_id: id, status: 'active', impairments: list }));
    expect(told(one)).toHaveLength(100);
    expect(one.alarms[0]).toMatchObject({ code: 'cap_near', limit: 'states', mediaBuyId: BUY });
  });

  it.each<readonly [string, (id: string) => unknown]>([
    ['another media buy', () => ({ media_buy_id: 'x', status: 'active', impairments: [impairment(BEGIN)] })],
    ['no status', (id) => ({ media_buy_id: id, impairments: [impairment(BEGIN)] })],
    [
      'no list',
      (id) => ({ media_buy_id: id, status: 'active', impairments: { length: 1, 0: impairment(BEGIN) } }),
    ],
    ['no objects', (id) => ({ media_buy_id: id, status: 'active', impairments: [null, 1, 'x', []] })],
    ['no ids', (id) => ({ media_buy_id: id, status: 'active', impairments: [{ impairment_id: 7 }] })],
    [
      'an id without end',
      (id) => ({ media_buy_id: id, status: 'active', impairments: [impairment(BEGIN, 'x'.repeat(256))] }),
    ],
    ['impaired, and no list', (id) => ({ media_buy_id: id, status: 'active', health: 'impaired' })],
    [
      'an instant far ahead',
      (id) => ({ media_buy_id: id, status: 'active', status_as_of: '9999-01-01T00:00:00Z', health: 'ok' }),
    ],
    ['no object', () => 'media buy'],
  ])('tells nothing of %s', async (_what, row) => {
    const one = await answered(row);
    expect(told(one)).toEqual([]);
  });

  it('a name of objects is an id like any other', async () => {
    const row = JSON.parse(
      `{"status":"active","impairments":[{"impairment_id":"__proto__","observed_at":"2026-03-01T20:00:00Z","__proto__":{"x":1}}]}`,
    ) as JsonObject;
    const one = await answered((id) => ({ ...row, media_buy_id: id }));
    expect(told(one)).toMatchObject([{ state: { id: '__proto__' } }]);
  });
});

it('two processes tell a state once', async () => {
  const at = begin();
  const [one, other] = [await started(at), await started(at)];
  await buy(one, FLIGHT);
  for (let hour = 1; hour <= 5; hour += 1) {
    const open = hour % 2 === 1;
    await at.until(`2026-03-02T0${hour}:00:00Z`);
    at.impairments.set(BUY, open ? [impairment(`2026-03-02T0${hour}:00:00Z`, 'i1', `state-${hour}`)] : []);
  }
  await at.until('2026-03-02T07:00:00Z');
  expect(statesOf(one, other)).toHaveLength(5);
});

describe('other states (owed.md §6.8)', () => {
  const TYPE = 'creative.status_changed';

  const reading = async (read: SnapshotReader) => {
    const at = begin();
    const store = memoryStore();
    await subscribed(store, [TYPE, 'creative.purged']);
    const one = await started(at, {}, { store });
    one.reconciler.snapshot(TYPE, read);
    return { at, store, one };
  };

  const states = ({ seen }: Process): readonly unknown[] =>
    seen
      .map(({ event }) => event)
      .flatMap((event) => (event.kind === 'other' && event.family === TYPE ? [event] : []));

  it('are read for each subscription of the type, and what no webhook brought is told', async () => {
    const queries: SnapshotQuery[] = [];
    let held: readonly SnapshotState[] = [];
    const { at, one } = await reading((query) => {
      queries.push(query);
      return held;
    });
    await at.until('2026-03-02T01:00:00Z');
    held = [
      { id: 'c1', observedAt: '2026-03-02T01:00:00Z', payload: creative('approved', '2026-03-02T01:00:00Z') },
    ];
    await at.until('2026-03-02T02:00:00Z');
    const { signal, ...query } = queries[0] ?? ({} as SnapshotQuery);
    expect(query).toEqual({ agentUrl: AGENT, accountId: 'a1', subscriberId: SUBSCRIBER, ref: 'creatives' });
    expect(signal).toBeInstanceOf(AbortSignal);
    expect(queries.length).toBeGreaterThanOrEqual(7);
    expect(queries.length).toBeLessThanOrEqual(9);
    expect(states(one)).toMatchObject([
      {
        source: 'pull',
        notification: creative('approved', '2026-03-02T01:00:00Z'),
        subscription: { subscriberId: SUBSCRIBER, accountId: 'a1', ref: 'creatives' },
        state: { id: 'c1', observedAt: '2026-03-02T01:00:00.000Z', ended: false },
      },
    ]);
    held = [];
    await at.until('2026-03-02T03:00:00Z');
    expect(states(one)[1]).toMatchObject({
      notification: { creative_id: 'c1', transition: { from: 'approved' } },
      state: { ended: true },
    });
    expect(one.alarms).toEqual([]);
  });

  it('that a webhook brought are told by that alone', async () => {
    const state = creative('approved', '2026-03-02T01:00:00Z');
    let held: readonly SnapshotState[] = [];
    const { at, one } = await reading(() => held);
    await at.until('2026-03-02T01:00:00Z');
    held = [{ id: 'c1', observedAt: '2026-03-02T01:00:00Z', payload: state }];
    await one.deliver({
      ...payloads.family(TYPE),
      ...state,
      subscriber_id: SUBSCRIBER,
      account_id: 'a1',
      idempotency_key: randomUUID(),
    });
    await at.until('2026-03-02T04:00:00Z');
    expect(states(one)).toHaveLength(1);
  });

  it('end with their subscription', async () => {
    let reads = 0;
    const { at, store } = await reading(() => {
      reads += 1;
      return [];
    });
    await at.until('2026-03-02T01:00:00Z');
    await subscribed(store, ['creative.purged']);
    await at.until('2026-03-02T01:20:00Z');
    const before = reads;
    await at.until('2026-03-02T06:00:00Z');
    expect(reads).toBe(before);
    const page = await store.registrations?.page({ kind: 'snapshot', limit: 10 });
    expect(page?.rows).toEqual([]);
  });

  it.each<readonly [string, () => unknown, RegExp]>([
    ['throws', () => Promise.reject(new Error('no network')), /failed: no network/],
    ['no list', () => ({}), /returned no list/],
    ['no object', () => ['c1'], /a state: is not an object/],
    ['an unknown member', () => [{ id: 'c1', payload: {}, at: 1 }], /at is not known/],
    ['no id', () => [{ payload: {} }], /no text of 1 to 255 characters/],
    ['no payload', () => [{ id: 'c1' }], /payload of c1 is not an object/],
    [
      'an id twice',
      () => [
        { id: 'c1', payload: {} },
        { id: 'c1', payload: {} },
      ],
      /an id twice/,
    ],
    ['no instant', () => [{ id: 'c1', payload: {}, observedAt: 'today' }], /observedAt of c1/],
    [
      'too many',
      () => Array.from({ length: 1001 }, (_, n) => ({ id: `c${n}`, payload: {} })),
      /returned 1001 states/,
    ],
  ])('a reader that gives %s changes nothing, with an alarm', async (_what, wrong, message) => {
    let isWrong = false;
    const asked: number[] = [];
    const right = [
      { id: 'c1', observedAt: '2026-03-01T20:00:00Z', payload: creative('approved', '2026-03-01T20:00:00Z') },
    ];
    const read = (): readonly SnapshotState[] => {
      asked.push(at.clock.now());
      return (isWrong ? wrong() : right) as readonly SnapshotState[];
    };
    const { at, one, store } = await reading(read);
    const kept = async (): Promise<unknown> =>
      (await store.registrations?.page({ kind: 'snapshot', limit: 10 }))?.rows.map(({ value }) => value);
    await at.until('2026-03-02T01:00:00Z');
    const before = await kept();
    isWrong = true;
    asked.length = 0;
    await at.until('2026-03-02T03:00:00Z');
    expect(states(one)).toHaveLength(1);
    // It is asked again as soon as after an answer.
    const waits = asked.slice(1).map((ms, n) => (ms - (asked[n] ?? 0)) / 60_000);
    expect(waits).toEqual(Array.from({ length: 7 }, () => 15));
    expect(await kept()).toEqual(before);
    expect(one.alarms[0]).toMatchObject({ code: 'misconfigured', message: expect.stringMatching(message) });
  });

  it('a reader ends by its signal when the reconciler stops', async () => {
    let given: AbortSignal | undefined;
    const { at, one } = await reading(async ({ signal }) => {
      given = signal;
      return new Promise<never>(() => {});
    });
    await at.until('2026-03-02T00:25:00Z');
    expect(given?.aborted).toBe(false);
    await one.reconciler.stop();
    expect(given?.aborted).toBe(true);
  });

  it.each<readonly [string, unknown, unknown, RegExp]>([
    ['impairments', 'impairment', () => [], /impairments are read by the reconciler itself/],
    ['a type that does not exist', 'creative.status', () => [], /"creative.status" is no type of events/],
    ['a type that tells of no one thing', 'indicators.changed', () => [], /is no type of events/],
    ['no text', 7, () => [], /7 is no type of events/],
    ['no function', 'creative.purged', {}, /read is not a function/],
    ['a second one', TYPE, () => [], /creative.status_changed has a reader already/],
  ])('refuses at once a reader of %s', async (_what, type, read, message) => {
    const { one } = await reading(() => []);
    expect(() => one.reconciler.snapshot(type as string, read as SnapshotReader)).toThrow(message);
  });
});
