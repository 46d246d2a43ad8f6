import { afterEach, describe, expect, it } from 'vitest';
import type { Event } from '../../src/events/index.ts';
import type { Alarm, Store } from '../../src/index.ts';
import type { JsonObject } from '../../src/registrations/index.ts';
import { createMemoryState } from '../../src/stores/for-tests.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { sqliteStore } from '../../src/stores/sqlite.ts';
import { type Life, lifeUntil } from '../reliability/crash-points-life.ts';
import { LONG } from '../reliability/form.ts';
import { tempFile } from '../stores/sqlite-files.ts';
import { buy, creative, declares, impairment, type Process, subscribed, world, type World } from './kit.ts';

/*
 * A process dies at each step by which a snapshot is asked for, taken, told and handled, while a state opens, changes and ends
 * (owed.md §6.6). Another one goes on.
 */

const BEGIN = Date.parse('2026-03-02T00:00:00Z');
const MINUTE_MS = 60_000;
const SNAPSHOT_MS = 30 * MINUTE_MS;
const FLIGHT = { start: '2026-03-02T00:00:00Z', end: '2026-04-06T00:00:00Z' };

const at = (minute: number): string => new Date(BEGIN + minute * MINUTE_MS).toISOString();

/** Handles on the same data. */
interface Ground {
  readonly open: () => Promise<Store>;
  readonly remove: () => Promise<void>;
}

function groundOf(newStore: () => Store, remove: () => void): Ground {
  const stores: Store[] = [];
  return {
    open: async () => {
      const store = newStore();
      stores.push(store);
      await store.open();
      return store;
    },
    remove: async () => {
      await Promise.all(stores.map((store) => store.close()));
      remove();
    },
  };
}

const GROUNDS: readonly (readonly [string, () => Ground])[] = [
  [
    'memory',
    () => {
      const state = createMemoryState();
      return groundOf(
        () => memoryStore({ state }),
        () => undefined,
      );
    },
  ],
  [
    'SQLite',
    () => {
      const { file, remove } = tempFile();
      return groundOf(() => sqliteStore(file), remove);
    },
  ],
];

/** A kind of states, and its seller. */
interface Subject {
  readonly family: string;
  /** In a process that lives. */
  readonly before: (here: World, one: Process, store: Store) => Promise<void>;
  /** Of each process. */
  readonly process: (of: Process, read: () => Promise<JsonObject | undefined>) => void;
  /** The seller answers with the state that `read` gives. */
  readonly seller: (here: World, read: () => Promise<JsonObject | undefined>) => void;
  readonly state: (to: string, observedAt: string) => JsonObject;
}

const around = (...calls: readonly string[]): readonly string[] =>
  calls.flatMap((call) => [`before ${call}`, `after ${call}`]);

const TOLD = around('the question', 'accept', 'the effect', 'complete');

/** The points but steps of rows, of which some are of what runs beside. What is absent once has not ended. */
const POINTS = [...TOLD, ...TOLD, ...around('the question'), ...TOLD];
const BESIDE = /run|due|lease/;

const TYPE = 'creative.status_changed';

const SUBJECTS: readonly (readonly [string, Subject])[] = [
  [
    'an impairment is read from get_media_buys',
    {
      family: 'impairment',
      before: async (here, one) => {
        declares(here, { adcp: {}, adcp_version: '3.1', media_buy: { propagation_surfaces: ['webhook'] } });
        await buy(one, FLIGHT, null);
      },
      process: () => undefined,
      seller: ({ seller }, read) => {
        seller.buys = async ({ media_buy_ids: ids }) => {
          const [id] = ids as readonly string[];
          const own = await read();
          const row = { media_buy_id: id, status: 'active', start_time: FLIGHT.start, end_time: FLIGHT.end };
          const impairments = own ? [own] : [];
          return { media_buys: [{ ...row, health: own ? 'impaired' : 'ok', impairments, packages: [] }] };
        };
      },
      state: (to, observedAt) => impairment(observedAt, 'i1', to),
    },
  ],
  [
    'a reader reads a creative',
    {
      family: TYPE,
      before: async (_here, _one, store) => subscribed(store, [TYPE]),
      process: ({ reconciler }, read) =>
        reconciler.snapshot(TYPE, async () => {
          const payload = await read();
          if (!payload) return [];
          const { observed_at: observedAt } = payload['transition'] as { readonly observed_at: string };
          return [{ id: 'c1', observedAt, payload }];
        }),
      seller: () => undefined,
      state: creative,
    },
  ],
];

const WRITES: ReadonlySet<string> = new Set(['accept', 'complete', 'fail', 'run']);
const LOOKS: ReadonlySet<string> = new Set(['lease', 'due']);

/** The store in a process that can die before and after each step, and when it has taken something. */
function mortal(store: Store, life: Life): Store {
  const { inbox, registrations } = store;
  return {
    ...calls(store, life),
    ...(inbox && { inbox: calls(inbox, life) }),
    ...(registrations && { registrations: calls(registrations, life) }),
  };
}

function calls<T extends object>(of: T, life: Life): T {
  const around = Object.entries(of).map(([name, call]: [string, unknown]) => {
    if (typeof call !== 'function') return [name, call];
    return [
      name,
      (...given: readonly unknown[]): unknown => {
        if (life.isOver()) return new Promise(() => {});
        const made = (): unknown => Reflect.apply(call, of, given);
        if (WRITES.has(name)) return between(life, name, made);
        return LOOKS.has(name) ? taking(life, name, made) : made();
      },
    ];
  });
  return Object.fromEntries(around) as T;
}

async function between<T>(life: Life, name: string, call: () => T): Promise<Awaited<T>> {
  await life.point(`before ${name}`);
  const result = await call();
  await life.point(`after ${name}`);
  return result;
}

async function taking(life: Life, name: string, call: () => unknown): Promise<unknown> {
  const found = (await call()) as {
    readonly rows?: readonly unknown[];
    readonly events?: readonly unknown[];
  };
  if ((found.rows ?? found.events ?? []).length > 0) await life.point(`after ${name}`);
  return found;
}

let here: World | undefined;
let ground: Ground | undefined;
async function ended(): Promise<void> {
  await here?.end();
  await ground?.remove();
  here = undefined;
  ground = undefined;
}
afterEach(ended);

/** Outside the long form at every other point: between what is done at one and what is done at the next, nothing is written. */
const STRIDE = LONG ? 1 : 2;

/** The changes, and the minutes in which each is told by a process that lives, and by one that goes on. */
const CHANGES = [
  { to: 'rejected', lives: 15, goesOn: 45 },
  { to: 'withdrawn', lives: 35, goesOn: 45 },
  { to: undefined, lives: 60, goesOn: 75 },
] as const;

interface Lived {
  readonly points: readonly string[];
  readonly isOver: boolean;
  readonly wrong?: string;
}

/** A state opens, changes and ends, while a process dies. */
async function lived(subject: Subject, newGround: () => Ground, diesAt: number): Promise<Lived> {
  here = world(at(0));
  const its = here;
  ground = newGround();
  const life = lifeUntil(diesAt);
  const applied: (readonly [key: string, is: string])[] = [];
  let now: JsonObject | undefined;
  let asked = 0;
  let isHeirs = false;
  const point = (name: string, isMortal: boolean): Promise<void> =>
    isMortal ? life.point(name) : Promise.resolve();
  const readFor = (isMortal: boolean) => async () => {
    asked += 1;
    await point('before the question', isMortal);
    const is = now;
    await point('after the question', isMortal);
    return is;
  };
  subject.seller(its, () => readFor(!isHeirs)());
  const begin = async (store: Store, isMortal: boolean): Promise<Process> => {
    const handler = async (event: Event): Promise<void> => {
      if (event.kind !== 'other' || event.family !== subject.family) return;
      await point('before the effect', isMortal);
      const { transition } = event.notification as { readonly transition: { readonly to?: string } };
      applied.push([event.idempotencyKey, event.state?.ended ? 'ended' : (transition.to ?? '')]);
      await point('after the effect', isMortal);
    };
    const one = await its.process({ snapshotMs: SNAPSHOT_MS }, { store, handler });
    subject.process(one, readFor(isMortal));
    return one;
  };
  let one = await begin(mortal(await ground.open(), life), true);
  await subject.before(its, one, await ground.open());
  await its.clock.settled();
  life.begin();
  await one.reconciler.start();
  const alarms: Alarm[] = [];
  let minute = 0;
  for (const { to, lives, goesOn } of CHANGES) {
    now = to && subject.state(to, at(minute === 0 ? -SNAPSHOT_MS / MINUTE_MS : minute));
    minute += isHeirs ? goesOn : lives;
    await its.until(at(minute));
    if (!life.isOver() || isHeirs) continue;
    its.died(one);
    alarms.push(...one.alarms);
    isHeirs = true;
    one = await begin(await ground.open(), false);
    await one.reconciler.start();
    minute += goesOn;
    await its.until(at(minute));
  }
  alarms.push(...one.alarms);
  const firsts = [...new Map(applied).values()];
  const left = await Promise.all(
    (['queued', 'leased', 'dead'] as const).map(async (state) => one.receiver.inbox.list({ state })),
  );
  const isOnce =
    firsts.join() === 'rejected,withdrawn,ended' && left.every(({ records }) => records.length === 0);
  const { length: told } = alarms.filter(({ code }) => code === 'impairment_missed');
  // What the dead process has asked is asked once more.
  const most = Math.ceil((minute * MINUTE_MS) / SNAPSHOT_MS) + 2;
  const isRight =
    isOnce &&
    told <= 3 &&
    alarms.every(({ code }) => code === 'impairment_missed' || code === 'store_created') &&
    asked <= most;
  const end = {
    applied,
    left: left.map(({ records }) => records.length),
    alarms: alarms.map(({ code }) => code),
    asked,
    most,
  };
  return { points: life.passed, isOver: life.isOver(), ...(!isRight && { wrong: JSON.stringify(end) }) };
}

describe.each(LONG ? GROUNDS : GROUNDS.slice(0, 1))(
  '%s: a process dies at every step, and each state is told once',
  (_name, newGround) => {
    it.each(SUBJECTS)('while %s', async (_is, subject) => {
      const wrong: string[] = [];
      for (let diesAt = 0; ; diesAt += STRIDE) {
        const { points, isOver, wrong: found } = await lived(subject, newGround, diesAt);
        if (found !== undefined) wrong.push(`${diesAt}, ${points.at(-1) ?? ''}: ${found}`);
        await ended();
        if (isOver) continue;
        expect(wrong).toEqual([]);
        expect(points.filter((point) => !BESIDE.test(point))).toEqual(POINTS);
        return;
      }
    });
  },
);
