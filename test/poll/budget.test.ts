import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Store } from '../../src/index.ts';
import type { StoreRegistrations } from '../../src/stores/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createMemoryState } from '../../src/stores/for-tests.ts';
import { AGENT } from '../receiver/setup.ts';
import { submitted, world, type World } from './kit.ts';

const FAST = 30_000;

/** A store, and the names of what was asked of it. */
function counted(): { readonly store: Store; readonly calls: string[] } {
  const store = memoryStore({ state: createMemoryState() });
  const calls: string[] = [];
  const { registrations: of } = store;
  if (!of) throw new Error('the memory store keeps registrations');
  const registrations: StoreRegistrations = {
    run: (sender, plan) => {
      calls.push('run');
      return of.run(sender, plan);
    },
    due: (request) => {
      calls.push('due');
      return of.due(request);
    },
    page: (query) => {
      calls.push('page');
      return of.page(query);
    },
  };
  const accept: Store['accept'] = (request) => {
    calls.push('accept');
    return store.accept(request);
  };
  return { store: { ...store, registrations, accept }, calls };
}

const of = (calls: readonly string[], name: string): number => calls.filter((call) => call === name).length;

describe('budget: what a watched task costs', () => {
  let at: World;
  beforeEach(() => {
    at = world();
  });
  afterEach(() => at.end());

  it('two steps of the store a poll that tells nothing new, and one look for all that are due together', async () => {
    const { store, calls } = counted();
    const one = await at.process({ perSeller: 10 }, { store });
    for (let nth = 0; nth < 10; nth += 1) await submitted(one, `task-${nth}`);
    await at.clock.pass(FAST);
    await one.poller.start();
    await at.clock.settled();
    calls.length = 0;
    const before = at.seller.questions.length;
    // Ten tasks, each five times.
    await at.clock.pass(5 * FAST);
    const polls = at.seller.questions.length - before;
    expect(polls).toBe(50);
    expect(of(calls, 'run')).toBe(2 * polls);
    expect(of(calls, 'accept')).toBe(0);
    // Each 10 s, and once more at each time that something is due.
    expect(of(calls, 'due')).toBeLessThanOrEqual(5 * 4);
  });

  it('one accept more where it tells something new', async () => {
    const { store, calls } = counted();
    const one = await at.process({}, { store });
    await submitted(one, 'task-1');
    await at.clock.pass(FAST);
    calls.length = 0;
    at.seller.answers.set('task-1', () => ({ status: 'working', task_id: 'task-1' }));
    await one.poller.start();
    await at.clock.pass(0);
    await at.clock.settled();
    expect(of(calls, 'accept')).toBe(1);
  });

  it('nothing of the process while it is not due, however many are watched', async () => {
    const { store, calls } = counted();
    const one = await at.process({}, { store });
    for (let nth = 0; nth < 200; nth += 1) await submitted(one, `task-${nth}`);
    await one.poller.start();
    // Their first times are set.
    await at.clock.pass(1000);
    calls.length = 0;
    await at.clock.pass(FAST - 2000);
    expect(one.poller.stats().inFlight).toBe(0);
    expect(new Set(calls)).toEqual(new Set(['due']));
    expect(calls.length).toBeLessThanOrEqual(4);
  });

  it('few steps of the store for tasks that wait for their seller', async () => {
    const { store, calls } = counted();
    const one = await at.process({ perSeller: 2 }, { store });
    for (let nth = 0; nth < 100; nth += 1) {
      await submitted(one, `task-${nth}`);
      at.seller.answers.set(`task-${nth}`, async () => {
        await at.clock.sleep(15_000);
        return { status: 'submitted' };
      });
    }
    await one.poller.start();
    await at.clock.pass(5 * FAST);
    calls.length = 0;
    const before = at.seller.questions.length;
    await at.clock.pass(20 * FAST);
    const polls = at.seller.questions.length - before;
    expect(polls).toBeGreaterThan(50);
    // One into the line, and one that ends a poll and begins the next; a look for each that comes due.
    expect(of(calls, 'run')).toBeLessThanOrEqual(2.5 * polls);
    expect(of(calls, 'due')).toBeLessThanOrEqual(1.5 * polls);
  });

  it('a row that does not grow with its polls, and one of its seller', async () => {
    const { store } = counted();
    const one = await at.process({ perSeller: 4 }, { store });
    for (let nth = 0; nth < 20; nth += 1) await submitted(one, `task-${nth}`);
    await one.poller.start();
    await at.clock.pass(40 * FAST);
    const watches = await store.registrations?.page({ kind: 'watch', sender: AGENT, limit: 100 });
    expect(watches?.rows).toHaveLength(20);
    for (const { value } of watches?.rows ?? []) expect(value.length).toBeLessThan(400);
    const seller = await store.registrations?.run(AGENT, (rows) => rows.get('route', 'seller'));
    expect(seller?.value.length).toBeLessThan(150);
  });
});
