import { randomBytes, randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  beginPoll,
  type Begun,
  endPoll,
  type Held,
  type Pace,
  type PlaceFreed,
} from '../../src/poll/for-tests.ts';
import type { Registration } from '../../src/registrations/index.ts';
import {
  registrationsOf,
  WATCHED_TASKS,
  type WatchedTasks,
  type WithWatchedTasks,
} from '../../src/registrations/for-tests.ts';
import type { Account, AccountQuery } from '../../src/reconcile/index.ts';
import { accountOf } from '../../src/reconcile/for-tests.ts';
import type { RegistrationRow } from '../../src/stores/index.ts';
import { streamText } from '../../src/windows/for-tests.ts';
import { UNCHANGED } from '../poll/kit.ts';
import { streamOf } from '../reconcile/kit.ts';
import { hashes, NEWEST } from '../registrations/kit.ts';
import { type CountedStore, countedMysql, countedPostgres, countedRedis } from './round-trips.ts';

const FAST_MS = 30_000;
const LEASE_MS = 40_000;
const MAX_DUE = 10;
const PACE: Pace = {
  fastMs: FAST_MS,
  slowMs: FAST_MS,
  giveUpMs: 30 * 86_400_000,
  silentMs: 0,
  leaseMs: LEASE_MS,
  perSeller: 10,
  random: () => 0.5,
};

const sellerOf = (index: number): string => `https://seller-${index}.example/mcp`;

interface Desk extends Pick<CountedStore, 'tripsOf'> {
  readonly create: (seller: number) => Promise<Registration>;
  readonly submit: (seller: number, taskId: string) => Promise<void>;
  readonly look: (kind: 'operation' | 'watch') => Promise<readonly Held[]>;
  readonly tasks: WatchedTasks;
}

let offsetMs = 0;

/** Round trips of a look that finds nothing due. On Redis a list of the senders, and what they have: of some hundred together. */
const LOOK = { Redis: 2, Postgres: 1, MySQL: 3 } as const;

async function deskOn({ store, tripsOf }: CountedStore): Promise<Desk> {
  await store.open();
  const registrations = registrationsOf(
    { store, baseUrl: 'https://buyer.example/webhooks', secrets: [NEWEST] },
    {
      hashes,
      randomBytes: (count) => new Uint8Array(randomBytes(count)),
      newId: () => randomUUID(),
      now: () => 0,
      sleep: async () => undefined,
    },
  );
  const tasks = (registrations as typeof registrations & WithWatchedTasks)[WATCHED_TASKS];
  const create: Desk['create'] = (seller) =>
    registrations.create({
      agentUrl: sellerOf(seller),
      taskType: 'create_media_buy',
      arguments: { budget: 1000 },
    });
  return {
    tripsOf,
    tasks,
    create,
    submit: async (seller, taskId) => {
      const registration = await create(seller);
      await registration.settle({ status: 'submitted', task_id: taskId });
    },
    look: async (kind) => (await tasks.rows.due({ kind, max: MAX_DUE, holdMs: LEASE_MS, senders: [] })).rows,
  };
}

const BACKENDS = [
  ['Redis', countedRedis],
  ['Postgres', countedPostgres],
  ['MySQL', countedMysql],
] as const;

describe.each(BACKENDS)('budget: round trips of registrations and polls, %s', (name, counted) => {
  beforeEach(() => {
    offsetMs = 0;
    // Of 64 steps one sweeps what has expired.
    vi.spyOn(Math, 'random').mockReturnValue(0.5);
    // It stands, so that nothing that is done every 10 s is due.
    vi.spyOn(performance, 'now').mockReturnValue(performance.now());
  });
  afterEach(() => void vi.restoreAllMocks());
  const newDesk = async (): Promise<Desk> => deskOn(await counted({ clockOffsetMs: () => offsetMs }));

  it('create, settle, the begin and the end of a poll: one commit each, and one read for what this process has not written', async () => {
    const { tasks, tripsOf, create, submit, look } = await newDesk();
    // The first step of a seller registers it, and makes its URL.
    await submit(0, 'task-0');
    const made: Registration[] = [];
    const created = await tripsOf(async () => made.push(await create(0)));
    const settled = await tripsOf(async () => made[0]?.settle({ status: 'submitted', task_id: 'task-1' }));
    // The time of the first poll of both.
    offsetMs = 2 * FAST_MS;
    const [row, other] = await look('watch');
    if (!row || !other) return expect.fail('two tasks are due');
    const begun: Begun[] = [];
    await beginPoll(tasks, other, PACE);
    const begin = await tripsOf(async () => begun.push(await beginPoll(tasks, row, PACE)));
    const [first] = begun;
    if (first?.kind !== 'poll') return expect.fail(`the poll was not begun: ${first?.kind}`);
    const ended: PlaceFreed[] = [];
    const end = await tripsOf(async () =>
      ended.push(await endPoll(tasks, first.held, UNCHANGED, { ...PACE, goesOn: true })),
    );
    expect(ended).toEqual([{ kept: 'kept', next: undefined }]);
    // Of the seller's URL its two rows are read, each confirmed by a commit; what this process wrote last it need not load.
    expect(created).toEqual(['commit', 'commit', 'load', 'commit']);
    expect(settled).toEqual(['load', 'commit']);
    expect(begin).toEqual(['load', 'commit']);
    expect(end).toEqual(['commit']);
  });

  it.each([3, 30])('a look for due rows where %i senders were seen', async (many) => {
    const { tripsOf, submit, look } = await newDesk();
    for (let seller = 0; seller < many; seller += 1) await submit(seller, 'task');
    const found: (readonly Held[])[] = [];
    const lookFor = (kind: 'operation' | 'watch') => async () => found.push(await look(kind));
    const idle = await tripsOf(lookFor('operation'));
    expect(idle).toHaveLength(LOOK[name]);
    // What is due is put off by a commit; on Redis each sender that has some is read, and has a commit.
    const most = Math.min(many, MAX_DUE);
    const each = (trip: string): string[] => Array.from({ length: most }, () => trip);
    const took = name === 'Redis' ? [...each('turns'), ...each('commit')] : ['commit'];
    expect(await tripsOf(lookFor('watch'))).toEqual([...idle, ...took]);
    expect(found.map(({ length }) => length)).toEqual([0, most]);
  });

  it('a page of an account: the clock, the list, and of streams with claims a step for all; operations with the first page alone', async () => {
    const { tasks, tripsOf } = await newDesk();
    const { rows } = tasks;
    for (const seller of [0, 1, 2]) {
      await rows.run(sellerOf(seller), (step) => {
        for (let nth = 0; nth < 120; nth += 1) step.save(streamRowOf(sellerOf(seller), nth));
      });
    }
    const source = { rows, hashes, tolerance: { delayMs: 0, graceMs: 0 } };
    const pages: Account[] = [];
    const pageOf = (query: AccountQuery) => async () => pages.push(await accountOf(source, query));
    const first = await tripsOf(pageOf({ limit: 300 }));
    const second = await tripsOf(pageOf({ limit: 300, after: pages[0]?.next }));
    expect(pages.map(({ streams }) => streams.length)).toEqual([300, 60]);
    expect(pages.flatMap(({ streams }) => streams.map(({ mediaBuyId }) => mediaBuyId)).toSorted()).toEqual(
      [0, 1, 2]
        .flatMap((seller) => Array.from({ length: 120 }, (_, nth) => idOf(sellerOf(seller), nth)))
        .toSorted(),
    );
    const counts = (trips: readonly string[]): Readonly<Record<string, number>> =>
      Object.fromEntries(
        Object.entries(Object.groupBy(trips, (trip) => trip)).map(([trip, all = []]) => [trip, all.length]),
      );
    expect([counts(first), counts(second)]).toEqual(PAGES[name]);
  });
});

const idOf = (sender: string, nth: number): string => `${sender} ${String(nth).padStart(3, '0')}`;

/** One of three has an event that is not handled yet. */
function streamRowOf(sender: string, nth: number): RegistrationRow {
  const mediaBuyId = idOf(sender, nth);
  const claims =
    nth % 3 === 0 ? [{ frequency: 'daily' as const, number: 20_000, key: `event ${nth}`, stage: '' }] : [];
  const value = streamText(streamOf({ mediaBuyId, claims }));
  return { kind: 'stream', sender, id: mediaBuyId, value, dueAt: null, list: 'open', expiresAt: null };
}

/** Streams that this process wrote last it need not load, but their events. On Redis each seller has its own list, and its own steps. */
const PAGES = {
  Redis: [
    { senders: 3, listed: 9, load: 3, commit: 4 },
    { senders: 1, listed: 1, load: 1, commit: 2 },
  ],
  Postgres: [
    { row: 3, load: 1, commit: 2 },
    { row: 1, load: 1, commit: 2 },
  ],
  // It names the senders that have some first: of operations and watches there are none.
  MySQL: [
    { scope: 4, row: 2, load: 1, commit: 2 },
    { scope: 2, row: 1, load: 1, commit: 2 },
  ],
} as const;
