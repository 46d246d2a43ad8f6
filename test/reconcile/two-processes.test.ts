import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, describe, expect, inject, it } from 'vitest';
import type { Event } from '../../src/events/index.ts';
import type { Store } from '../../src/index.ts';
import type { JsonObject } from '../../src/registrations/index.ts';
import { sqliteStore } from '../../src/stores/sqlite.ts';
import { streamText } from '../../src/windows/for-tests.ts';
import { AGENT } from '../receiver/setup.ts';
import { inThisForm, LONG } from '../reliability/form.ts';
import { testSchema } from '../stores/postgres-schemas.ts';
import { tempFile } from '../stores/sqlite-files.ts';
import { sharedPostgres } from '../support/shared-postgres.ts';
import { BUY, buy, declares, impairment, type Process, streamOf, world, type World } from './kit.ts';
import { collect } from '../support/collect.ts';

const MINUTE_MS = 60_000;
const BEGIN = '2026-03-02T00:00:00Z';
const FLIGHT = { start: '2026-03-02T00:00:00Z', end: '2026-03-03T00:00:00Z' };

/** Data that several processes open, each with a handle of its own. */
interface Ground {
  readonly open: () => Promise<Store>;
  /** Lets time pass in a world until an instant. */
  readonly until: (its: World, instant: string) => Promise<void>;
  readonly remove: () => Promise<void>;
}

async function groundOf(newStore: () => Store, of: Omit<Ground, 'open'>): Promise<Ground> {
  const stores: Store[] = [];
  return {
    ...of,
    open: async () => {
      const store = newStore();
      stores.push(store);
      await store.open();
      return store;
    },
    remove: async () => {
      await Promise.all(stores.map((store) => store.close()));
      await of.remove();
    },
  };
}

async function onSqlite(): Promise<Ground> {
  const { file, remove } = tempFile();
  return groundOf(() => sqliteStore(file), {
    until: (its, instant) => its.until(instant),
    remove: async () => remove(),
  });
}

/** The time of this machine, which `Date` does not tell in a world. */
const machineNow = (): number => performance.timeOrigin + performance.now();

/** Its clock is the world's. Of that a minute passes at a time, and then what goes on there ends. */
async function onPostgres(): Promise<Ground> {
  const { pools, store, drop } = await testSchema(await sharedPostgres(inject('shared')));
  const running = new Set<symbol>();
  const handles = [...pools];
  const newStore = (): Store =>
    watched(store(handles.pop(), { clockOffsetMs: () => Date.now() - machineNow() }), async (call) => {
      const own = Symbol('call');
      running.add(own);
      try {
        return await call();
      } finally {
        running.delete(own);
      }
    });
  return groundOf(newStore, {
    until: async (its, instant) => {
      for (let left = Date.parse(instant) - Date.now(); left > 0; left = Date.parse(instant) - Date.now()) {
        await its.until(new Date(Date.now() + Math.min(left, MINUTE_MS)).toISOString());
        while (running.size > 0) {
          await turn();
          if (running.size === 0) await its.clock.settled();
        }
      }
    },
    remove: drop,
  });
}

const GROUNDS: readonly (readonly [string, () => Promise<Ground>])[] = [
  ...inThisForm([['SQLite', onSqlite] as const], () => true),
  ...(LONG ? [['Postgres', onPostgres] as const] : []),
];

/** Each call of the store is made by `make`. */
function watched(store: Store, make: (call: () => unknown) => unknown): Store {
  const watching = <T extends object>(of: T): T =>
    Object.fromEntries(
      Object.entries(of).map(([name, call]: [string, unknown]) => [
        name,
        typeof call === 'function' && CALLS.has(name)
          ? (...given: readonly unknown[]): unknown => make(() => Reflect.apply(call, of, given))
          : call,
      ]),
    ) as T;
  const { inbox, registrations } = store;
  return {
    ...watching(store),
    ...(inbox && { inbox: watching(inbox) }),
    ...(registrations && { registrations: watching(registrations) }),
  };
}

/** Those that a round, the telling and the handling make. */
const CALLS: ReadonlySet<string> = new Set(['accept', 'complete', 'fail', 'lease', 'run', 'due', 'page']);

let here: World | undefined;
let ground: Ground | undefined;
afterEach(async () => {
  await here?.end();
  await ground?.remove();
  here = undefined;
  ground = undefined;
});

/** A seller whose media buys have what `impaired` has of them. */
function selling(its: World, impaired: ReadonlyMap<string, JsonObject>, statusOf: () => string): void {
  declares(its, { adcp: {}, adcp_version: '3.1', media_buy: { propagation_surfaces: ['webhook'] } });
  its.seller.buys = ({ media_buy_ids: ids }) => ({
    media_buys: (ids as readonly string[]).map((id) => {
      const own = impaired.get(id);
      return {
        media_buy_id: id,
        status: statusOf(),
        start_time: FLIGHT.start,
        end_time: FLIGHT.end,
        packages: [{ package_id: 'p1', product_id: 'product-1' }],
        health: own ? 'impaired' : 'ok',
        impairments: own ? [own] : [],
      };
    }),
  });
}

const roundsOf = ({ seller }: World) =>
  seller.asked('get_media_buys').filter(({ args }) => args['pagination'] !== undefined);

/** Impairments as handlers were told them: media buy, and the transition or the end. */
const toldBy = (...processes: readonly Process[]): readonly string[] =>
  processes
    .flatMap(({ seen }) => seen.map(({ event }) => event))
    .flatMap((event: Event) => {
      if (event.kind !== 'other' || event.family !== 'impairment') return [];
      const { transition } = event.notification as { readonly transition: { readonly to?: string } };
      return [`${event.state?.mediaBuyId} ${event.state?.ended ? 'ended' : transition.to}`];
    });

describe.each(GROUNDS)('%s: two processes with handles of their own', (_name, newGround) => {
  it('tell each state once within the calls of a day, and close a media buy once', async () => {
    const its = world(BEGIN);
    here = its;
    const on = await newGround();
    ground = on;
    const until = (instant: string): Promise<void> => on.until(its, instant);
    const impaired = new Map<string, JsonObject>();
    let status = 'active';
    selling(its, impaired, () => status);
    its.seller.delivery = ({ start_date: start, end_date: end, media_buy_ids: ids }) => ({
      reporting_period: { start: `${start as string}T00:00:00Z`, end: `${end as string}T00:00:00Z` },
      currency: 'USD',
      media_buy_deliveries: (ids as readonly string[]).map((id) => ({
        media_buy_id: id,
        status,
        totals: { impressions: 100, spend: 100 },
        by_package: [],
      })),
    });
    const ours = async () => ({ impressions: 90, spend: 100, currency: 'USD' });
    const begin = async (store: Store): Promise<Process> => {
      const one = await its.process({ ours }, { store });
      await one.reconciler.start();
      return one;
    };
    const one = await begin(await on.open());
    const other = await begin(await on.open());
    const both = [one, other];
    await buy(one, FLIGHT);
    for (let n = 1; n <= 100; n += 1) await buy(one, FLIGHT, null, AGENT, { mediaBuyId: `buy-${n + 1}` });
    const changed = ['buy-1', 'buy-50', 'buy-101'];
    const set = (to: string, observedAt: string): void =>
      changed.forEach((id) => impaired.set(id, impairment(observedAt, `of-${id}`, to)));
    set('rejected', '2026-03-02T00:00:00Z');
    await until('2026-03-02T06:00:00Z');
    set('withdrawn', '2026-03-02T06:00:00Z');
    await until('2026-03-02T12:00:00Z');
    impaired.clear();
    await until('2026-03-03T00:00:00Z');
    expect(toldBy(...both).toSorted()).toEqual(
      changed.flatMap((id) => ['ended', 'rejected', 'withdrawn'].map((is) => `${id} ${is}`)).toSorted(),
    );
    const day = roundsOf(its).filter(({ at }) => at < Date.parse(FLIGHT.end));
    expect(day.length).toBeLessThanOrEqual(96 * 2);
    expect(day.length).toBeGreaterThan(90 * 2);
    for (const { args } of day) expect(args['media_buy_ids']).toSatisfy((ids: string[]) => ids.length <= 100);
    status = 'completed';
    await until('2026-03-04T00:00:00Z');
    const codes = both.flatMap(({ alarms }) =>
      alarms.flatMap(({ code, mediaBuyId }) => (mediaBuyId === BUY ? [code] : [])),
    );
    expect(codes.filter((code) => code !== 'impairment_missed').toSorted()).toEqual([
      'final_absent',
      'totals_differ',
    ]);
    const stand = async ({ reconciler }: Process) =>
      (await reconciler.account({ agentUrl: AGENT, mediaBuyId: BUY })).streams;
    const [known] = await stand(one);
    expect(known).toMatchObject({ final: 'absent', closedAt: expect.any(String), totals: { differs: true } });
    await until('2026-03-04T12:00:00Z');
    expect(await stand(other)).toEqual([known]);
  }, 300_000);
});

const MIB = 1_048_576;
const MANY = 10_000;
const IMPAIRED = 50;

it.each(inThisForm([MANY], () => false))(
  'a round of %i media buys has a call for a hundred, as many steps, and holds no more than one answer',
  async (many) => {
    const its = world(BEGIN);
    here = its;
    ground = await onSqlite();
    let calls = 0;
    const store = watched(await ground.open(), (call) => {
      calls += 1;
      return call();
    });
    const ids = Array.from({ length: many }, (_, n) => `buy-${n}`);
    const observedAt = '2026-03-01T20:00:00Z';
    const impaired = new Map(
      ids.slice(-IMPAIRED).map((id) => [id, impairment(observedAt, `of-${id}`)] as const),
    );
    selling(its, impaired, () => 'active');
    const now = Date.parse(BEGIN);
    const list = 'all';
    const nothing = { sender: AGENT, list: null, dueAt: null, expiresAt: null };
    for (let from = 0; from < many; from += 500) {
      await store.registrations?.run(AGENT, (rows) => {
        for (const mediaBuyId of ids.slice(from, from + 500)) {
          const stream = streamOf({ mediaBuyId, round: list, since: now, askedAt: now, status: 'active' });
          rows.save({ ...nothing, kind: 'stream', id: mediaBuyId, value: streamText(stream), list });
        }
      });
    }
    const value = JSON.stringify({ added: many });
    await store.registrations?.run(AGENT, (rows) =>
      rows.save({ ...nothing, kind: 'snapshot', id: list, value, dueAt: now }),
    );
    const { buys } = its.seller;
    const heldMiB: number[] = [];
    its.seller.buys = (args) => {
      if (roundsOf(its).length % 10 === 5) {
        collect();
        heldMiB.push(process.memoryUsage().heapUsed / MIB);
      }
      return buys(args);
    };
    const one = await its.process({}, { store });
    const before = calls;
    await one.reconciler.start();
    for (let turns = 0; turns < 1_000 && roundsOf(its).length < many / 100; turns += 1)
      await its.clock.settled();
    await its.until('2026-03-02T00:14:00Z');
    const asked = roundsOf(its).flatMap(({ args }) => args['media_buy_ids'] as readonly string[]);
    expect(roundsOf(its)).toHaveLength(many / 100);
    expect(new Set(asked).size).toBe(many);
    expect(toldBy(one).toSorted()).toEqual([...impaired.keys()].map((id) => `${id} rejected`).toSorted());
    expect(calls - before).toBeLessThan(6 * (many / 100) + 8 * IMPAIRED);
    expect(Math.max(...heldMiB) - (heldMiB[0] ?? 0)).toBeLessThan(8);
  },
  120_000,
);
