import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Store } from '../../src/index.ts';
import { beginPoll, endPoll, type Pace } from '../../src/poll/for-tests.ts';
import { WATCHED_TASKS, type WithWatchedTasks } from '../../src/registrations/for-tests.ts';
import { SellerBusyError } from '../../src/registrations/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createMemoryState } from '../../src/stores/for-tests.ts';
import { AGENT, payloads, said } from '../receiver/setup.ts';
import { type Process, submitted, UNCHANGED, world, type World } from './kit.ts';

/** calls.md §3.3: the places of a seller, in simulated time. */

const S = 1000;
const MINUTE = 60 * S;
const FAST = 30 * S;
const LEASE = 40 * S;

/** The same numbers in [0, 1) in each run. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
}

let at: World;
beforeEach(() => {
  at = world(numbers(7));
});
afterEach(() => at.end());

/** A question, from its begin to its answer. */
interface Asked {
  readonly id: string;
  readonly from: number;
  readonly until: number;
}

/** Tasks of one seller, whose questions take so long each. @returns what was asked, as it is answered. */
async function crowd(one: Process, many: number, tookMs: () => number): Promise<Asked[]> {
  const asked: Asked[] = [];
  for (let nth = 0; nth < many; nth += 1) {
    const id = `task-${nth}`;
    await submitted(one, id);
    at.seller.answers.set(id, async ({ at: from }) => {
      await at.clock.sleep(tookMs());
      asked.push({ id, from, until: at.clock.now() });
      return { task_id: id, status: 'submitted' };
    });
  }
  return asked;
}

/** A store that gives no answer any more once its process is dead. */
function mortalStore(state: ReturnType<typeof createMemoryState>, isDead: () => boolean): Store {
  const store = memoryStore({ state });
  const { registrations: of } = store;
  if (!of) throw new Error('the memory store keeps registrations');
  const unlessDead = async <T>(call: () => Promise<T>): Promise<T> => {
    if (isDead()) throw new Error('the process is dead');
    return call();
  };
  return {
    ...store,
    registrations: {
      run: async (sender, plan) => unlessDead(() => of.run(sender, plan)),
      due: async (request) => unlessDead(() => of.due(request)),
      page: async (query) => unlessDead(() => of.page(query)),
    },
  };
}

const ids = (asked: readonly Asked[]): readonly string[] => asked.map(({ id }) => id);

const CROWDS = [
  { what: 'one place, 1 to 9 s', many: 100, processes: 1, perSeller: 1, least: 1, most: 9 },
  { what: 'four places, 1 to 19 s', many: 168, processes: 1, perSeller: 4, least: 1, most: 19 },
  { what: 'four places, 10 s, two processes', many: 168, processes: 2, perSeller: 4, least: 10, most: 10 },
] as const;

describe('a task that is called from the line in the millisecond in which another process takes its row', () => {
  it('is polled once: the process that took its row begins nothing', async () => {
    const one = await at.process();
    for (const id of ['task-0', 'task-1', 'task-2']) await submitted(one, id);
    const { [WATCHED_TASKS]: tasks } = one.registrations as unknown as WithWatchedTasks;
    const pace: Pace = {
      fastMs: FAST,
      slowMs: FAST,
      giveUpMs: 60 * MINUTE,
      silentMs: MINUTE,
      leaseMs: LEASE,
      perSeller: 2,
      random: () => 0.5,
    };
    const due = async () =>
      (await tasks.rows.due({ kind: 'watch', max: 3, holdMs: LEASE, senders: [] })).rows;
    await at.clock.pass(2 * FAST);
    const rows = await due();
    const begun = [];
    for (const row of rows) begun.push(await beginPoll(tasks, row, pace));
    const [first, second, third] = begun;
    if (first?.kind !== 'poll' || second?.kind !== 'poll') return expect.fail('two tasks are polled');
    expect(third?.kind).toBe('later');
    // The first poll leaves the task in the line to any process, and the end of the second one calls it.
    await endPoll(tasks, first.held, UNCHANGED, { ...pace, goesOn: false });
    const [taken] = await due();
    if (!taken) return expect.fail('the task in the line is due');
    const { next } = await endPoll(tasks, second.held, UNCHANGED, { ...pace, goesOn: true });
    expect(next).toMatchObject({ kind: 'poll', held: { id: taken.id } });
    expect(await beginPoll(tasks, taken, pace)).toEqual({ kind: 'lost' });
  });
});

describe('a seller with more tasks than it answers in time', () => {
  it.each(CROWDS)(
    'has 90 % of its places in use, and no task waits for twice its fair turn: $what',
    async ({ many, processes, perSeller, least, most }) => {
      const random = numbers(3);
      const all = await Promise.all(Array.from({ length: processes }, async () => at.process({ perSeller })));
      const [one] = all;
      if (!one) return expect.fail('one was made');
      const asked = await crowd(one, many, () => (least + (most - least) * random()) * S);
      for (const { poller } of all) await poller.start();
      const since = 10 * MINUTE;
      const until = 40 * MINUTE;
      await at.clock.pass(until);
      const inUse = asked.reduce(
        (sum, { from, until: end }) => sum + Math.max(0, Math.min(end, until) - Math.max(from, since)),
        0,
      );
      // A question that is not answered yet is not in it: so many at most.
      const openMs = perSeller * most * S;
      expect((inUse + openMs) / (perSeller * (until - since))).toBeGreaterThan(0.9);
      expect(inUse).toBeLessThanOrEqual(perSeller * (until - since));
      const fairMs = (many * ((least + most) / 2) * S) / perSeller;
      const ends = new Map<string, number>();
      let longestMs = 0;
      for (const { id, from, until: end } of [...asked].toSorted((a, b) => a.from - b.from)) {
        longestMs = Math.max(longestMs, from - (ends.get(id) ?? 0));
        ends.set(id, end);
      }
      for (const end of ends.values()) longestMs = Math.max(longestMs, until - end);
      expect(ends.size).toBe(many);
      expect(longestMs).toBeLessThan(2 * fairMs);
      expect(at.seller.most.get(AGENT)).toBe(perSeller);
    },
  );

  it('asks in the order in which tasks came', async () => {
    const one = await at.process({ perSeller: 1 });
    const asked = await crowd(one, 6, () => 10 * S);
    await one.poller.start();
    await at.clock.pass(5 * MINUTE);
    const [first = [], second = [], third = []] = [0, 6, 12].map((from) => ids(asked).slice(from, from + 6));
    expect(new Set(first).size).toBe(6);
    expect(second).toEqual(first);
    expect(third).toEqual(first);
  });

  it('passes over a task that ended in the line', async () => {
    const one = await at.process({ perSeller: 1 });
    const asked = await crowd(one, 6, () => 20 * S);
    await one.poller.start();
    // One is asked about, and five wait.
    await at.clock.pass(FAST * 1.2);
    for (const id of ['task-2', 'task-3']) {
      const body = payloads.tool('completed', {
        task_id: id,
        timestamp: new Date().toISOString(),
        result: {},
      });
      expect(said(await one.deliver(body))).toBe('accepted 200');
    }
    await at.clock.pass(4 * 20 * S);
    expect(new Set(ids(asked))).toEqual(new Set(['task-0', 'task-1', 'task-4', 'task-5']));
    await at.clock.pass(4 * 20 * S);
    // None of its places was empty meanwhile.
    expect(asked.every(({ from }, nth) => nth === 0 || from === asked[nth - 1]?.until)).toBe(true);
  });
});

describe('a process that polls a crowded seller', () => {
  it('leaves its places to another one at once where it stops', async () => {
    const [one, two] = [await at.process({ perSeller: 2 }), await at.process({ perSeller: 2 })];
    const asked = await crowd(one, 20, () => 10 * S);
    await one.poller.start();
    await at.clock.pass(2 * MINUTE);
    await two.poller.start();
    void one.poller.stop();
    await at.clock.pass(0);
    const stoppedAt = at.clock.now();
    await at.clock.pass(MINUTE);
    const later = asked.filter(({ from }) => from >= stoppedAt);
    expect(Math.min(...later.map(({ from }) => from))).toBeLessThanOrEqual(stoppedAt + 10 * S);
    expect(later.length).toBeGreaterThanOrEqual(2 * 3);
  });

  it('leaves them to another one after its lease where it dies', async () => {
    let isDead = false;
    const state = createMemoryState();
    const dead = await at.process({ perSeller: 2 }, { store: mortalStore(state, () => isDead) });
    const asked = await crowd(dead, 20, () => 10 * S);
    await dead.poller.start();
    await at.clock.pass(2 * MINUTE);
    isDead = true;
    await at.clock.pass(10 * S);
    const two = await at.process({ perSeller: 2 }, { store: memoryStore({ state }) });
    const before = asked.length;
    await two.poller.start();
    await at.clock.pass(LEASE + 20 * S);
    // From then on as if nothing had been.
    asked.length = 0;
    await at.clock.pass(10 * 10 * S);
    expect(before).toBeGreaterThan(0);
    expect(asked.length).toBeGreaterThanOrEqual(0.9 * 2 * 10);
    expect(new Set(ids(asked)).size).toBe(asked.length);
  });

  it('has others have their turn where it has no place left itself', async () => {
    const other = 'https://other.example/mcp';
    const one = await at.process({ perSeller: 4, concurrency: 4 });
    await crowd(one, 40, () => 10 * S);
    for (let nth = 0; nth < 4; nth += 1) {
      await submitted(one, `other-${nth}`, { agentUrl: other });
      at.seller.answers.set(`other-${nth}`, async () => {
        await at.clock.sleep(10 * S);
        return { status: 'submitted' };
      });
    }
    await one.poller.start();
    await at.clock.pass(20 * MINUTE);
    const all = at.seller.questions.length;
    const others = at.seller.questions.filter(({ agentUrl }) => agentUrl === other).length;
    // All that its four tasks want: each every 40 s, and what it waits for a place.
    expect(others).toBeGreaterThan(0.8 * 4 * ((20 * MINUTE) / (FAST * 1.1 + 20 * S)));
    expect(all).toBeGreaterThan(0.9 * 4 * ((20 * MINUTE - FAST) / (10 * S)));
  });
});

it('a pause that the seller asks for holds for the line too, and it goes on afterwards in its order', async () => {
  const one = await at.process({ perSeller: 1 });
  const asked = await crowd(one, 10, () => 10 * S);
  await one.poller.start();
  await at.clock.pass(MINUTE);
  let pausedAt = 0;
  const answer = at.seller.answers.get('task-5');
  at.seller.answers.set('task-5', () => {
    pausedAt = at.clock.now();
    if (answer) at.seller.answers.set('task-5', answer);
    throw new SellerBusyError(429, 120 * S);
  });
  await at.clock.pass(2 * MINUTE);
  expect(pausedAt).toBeGreaterThan(0);
  await at.clock.pass(10 * MINUTE);
  expect(at.seller.questions.filter(({ at: time }) => time > pausedAt && time < pausedAt + 120 * S)).toEqual(
    [],
  );
  const afterwards = ids(asked.filter(({ from }) => from > pausedAt));
  expect(afterwards.length).toBeGreaterThan(0.9 * ((10 * MINUTE - 120 * S - FAST) / (10 * S)));
  expect(new Set(afterwards.slice(0, 10)).size).toBe(10);
});
