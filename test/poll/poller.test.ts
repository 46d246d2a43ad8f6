import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type CallSeller,
  SellerBusyError,
  SellerError,
  TaskUnknownError,
} from '../../src/registrations/index.ts';
import { Fault, type Store } from '../../src/index.ts';
import { pollMetrics } from '../../src/otel/index.ts';
import type { Poll } from '../../src/poll/index.ts';
import { watchIn } from '../../src/registrations/for-tests.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createMemoryState } from '../../src/stores/for-tests.ts';
import { AGENT, gate, payloads, said } from '../receiver/setup.ts';
import { type Process, REQUEST, submitted, world, type World } from './kit.ts';

const S = 1000;
const MINUTE = 60 * S;
const HOUR = 60 * MINUTE;
const FAST = 30 * S;
const SLOW = 120 * S;
const RESULT = { media_buy_id: 'mb-1' };

let at: World;
beforeEach(() => {
  at = world();
});
afterEach(() => at.end());

const times = (): number[] => at.seller.questions.map((question) => question.at);
const gapsOf = (all: readonly number[]): number[] =>
  all.flatMap((time, nth) => (nth === 0 ? [] : [time - (all[nth - 1] ?? 0)]));
const gaps = (): number[] => gapsOf(times());

/** Times of the questions about each task. */
function byTaskId(): Map<unknown, number[]> {
  const found = new Map<unknown, number[]>();
  for (const { at: time, args } of at.seller.questions) {
    found.set(args['task_id'], [...(found.get(args['task_id']) ?? []), time]);
  }
  return found;
}

const alarmsOf = ({ alarms }: Process, code: string) => alarms.filter((alarm) => alarm.code === code);

async function listed(
  { registrations }: Process,
  state: 'watched' | 'unresolved',
): Promise<readonly (string | undefined)[]> {
  const { operations } = await registrations.list({ state, limit: 100 });
  return operations.map(({ taskId }) => taskId);
}

const webhook = (status: 'working' | 'completed', more: object = {}): object =>
  payloads.tool(status, { task_id: 'task-1', timestamp: new Date().toISOString(), result: RESULT, ...more });

/** Until everything that needs no time has been done, the verification of a signature among it. */
async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await condition()); tries += 1) {
    if (tries > 2000) throw new Error('it has not come to pass');
    await at.clock.settled();
  }
}

it('a seller is asked with the ref of the operation, as it was called', async () => {
  const refs: (string | undefined)[] = [];
  const call: CallSeller = async (_agentUrl, _operation, _args, { ref }) => {
    refs.push(ref);
    return { status: 'submitted', task_id: 'task-1' };
  };
  const lists: CallSeller['operations'] = async (_agentUrl, { ref }) => {
    refs.push(ref);
    return ['get_task_status'];
  };
  const one = await at.process({ call: Object.assign(call, { operations: lists }) });
  const made = await one.registrations.create({ ...REQUEST, ref: 'account 7' });
  await made.call();
  await one.poller.start();
  await at.clock.pass(10 * MINUTE);
  expect(refs.length).toBeGreaterThan(2);
  expect(new Set(refs)).toEqual(new Set(['account 7']));
});

describe('how often', () => {
  it('fast while no webhook has come; the first after one interval', async () => {
    const one = await at.process();
    await submitted(one, 'task-1');
    await one.poller.start();
    await at.clock.pass(10 * MINUTE);
    expect(times()[0]).toBe(FAST);
    expect(new Set(gaps())).toEqual(new Set([FAST]));
    expect(one.seen).toEqual([]);
    expect(one.polls.at(-1)).toMatchObject({
      sender: AGENT,
      taskId: 'task-1',
      result: 'unchanged',
      status: 'submitted',
    });
  });

  it('slowly where the seller delivers webhooks, of whichever task, and fast again where it has fallen silent', async () => {
    const one = await at.process({ silentMs: HOUR });
    await submitted(one, 'task-1');
    await submitted(one, 'task-2');
    expect(said(await one.deliver(webhook('completed', { task_id: 'task-2' })))).toBe('accepted 200');
    await one.poller.start();
    await at.clock.pass(HOUR);
    expect(times()[0]).toBe(SLOW);
    expect(new Set(gaps())).toEqual(new Set([SLOW]));
    const before = times().length;
    await at.clock.pass(10 * MINUTE);
    expect(new Set(gaps().slice(before + 1))).toEqual(new Set([FAST]));
  });

  it('fast where the seller has refused to be told where to send, whatever it delivers else', async () => {
    const call: CallSeller = async (agentUrl, operation, args, how) => {
      if (operation !== 'create_media_buy') return at.seller.call(agentUrl, operation, args, how);
      return args['push_notification_config']
        ? { error: { code: 'INVALID_REQUEST', message: 'no webhooks here' } }
        : { status: 'submitted', task_id: 'task-1' };
    };
    const one = await at.process({ call });
    const made = await one.registrations.create({
      agentUrl: AGENT,
      taskType: 'create_media_buy',
      arguments: {},
    });
    await made.call();
    await submitted(one, 'task-2');
    await one.deliver(webhook('completed', { task_id: 'task-2' }));
    await one.poller.start();
    await at.clock.pass(5 * MINUTE);
    expect(new Set(gaps())).toEqual(new Set([FAST]));
  });

  it('as often as fastMs and slowMs say where they are short, too', async () => {
    const one = await at.process({ fastMs: 2 * S, slowMs: 2 * S });
    await one.poller.start();
    // It has looked, and found nothing.
    await at.clock.pass(S);
    await submitted(one, 'task-1');
    await at.clock.pass(MINUTE);
    expect(times()[0]).toBeLessThanOrEqual(5 * S);
    expect(Math.max(...gaps())).toBeLessThanOrEqual(4 * S);
  });

  it('at random up to a tenth sooner and later, so that what began together does not stay so', async () => {
    await at.end();
    let next = 0;
    const randoms = [0, 0.999, 0.5, 0.25];
    at = world(() => randoms[(next += 1) % randoms.length] ?? 0);
    const one = await at.process();
    for (let nth = 0; nth < 8; nth += 1) await submitted(one, `task-${nth}`);
    await one.poller.start();
    await at.clock.pass(20 * MINUTE);
    for (const asked of byTaskId().values()) {
      const own = gapsOf(asked);
      expect(Math.min(...own)).toBeGreaterThanOrEqual(0.9 * FAST);
      // What is due is seen at the next look.
      expect(Math.max(...own)).toBeLessThanOrEqual(1.1 * FAST + 100);
    }
    const all = [...byTaskId().values()].flatMap(gapsOf);
    expect(Math.min(...all)).toBeLessThan(0.92 * FAST);
    expect(Math.max(...all)).toBeGreaterThan(1.08 * FAST);
  });

  it.each([
    ['retry_after', 600.2, 601],
    ['retry_after_seconds', 600, 600],
    // An hour at most, as everywhere.
    ['retry_after', 1e9, 3600],
    ['pollInterval', 600_000, 600],
  ])('no sooner than %s: %d says', async (name, value, seconds) => {
    const one = await at.process();
    await submitted(one, 'task-1');
    at.seller.answers.set('task-1', () => ({ status: 'working', task_id: 'task-1', [name]: value }));
    await one.poller.start();
    await at.clock.pass(3 * HOUR);
    expect(new Set(gaps())).toEqual(new Set([seconds * 1_000]));
  });

  it('as seldom as the task itself asks for', async () => {
    const one = await at.process();
    await submitted(one, 'task-1');
    at.seller.answers.set('task-1', () => ({ status: 'working', task_id: 'task-1', retry_after: 600 }));
    await one.poller.start();
    await at.clock.pass(HOUR);
    expect(new Set(gaps())).toEqual(new Set([10 * MINUTE]));
  });
});

describe('what a poll tells', () => {
  it('an end goes to the handler once, with its result, and nobody asks again', async () => {
    const one = await at.process();
    const { operationId } = await submitted(one, 'task-1', { ref: 'order 7' });
    await one.poller.start();
    await at.clock.pass(MINUTE);
    at.seller.answers.set('task-1', () => ({
      status: 'completed',
      task_id: 'task-1',
      updated_at: new Date().toISOString(),
      result: RESULT,
    }));
    await at.clock.pass(MINUTE);
    await until(() => one.seen.length > 0);
    const asked = at.seller.questions.length;
    await at.clock.pass(HOUR);
    expect(one.seen).toHaveLength(1);
    expect(one.seen[0]?.event).toMatchObject({
      source: 'poll',
      status: 'completed',
      taskId: 'task-1',
      operationId,
      data: RESULT,
      registration: { operationId, ref: 'order 7' },
    });
    expect(at.seller.questions).toHaveLength(asked);
    expect(one.polls.at(-1)).toMatchObject({ result: 'ended', status: 'completed' });
    expect(await listed(one, 'watched')).toEqual([]);
    expect(await one.registrations.get({ agentUrl: AGENT, operationId })).toMatchObject({ state: 'ended' });
    expect(one.poller.stats()).toMatchObject({
      inFlight: 0,
      polls: { ended: 1, unchanged: asked - 1 },
      endedBefore: 0,
    });
  });

  it('with the context of the call, as a webhook has it', async () => {
    const one = await at.process();
    const context = { order: 7 };
    await submitted(one, 'task-1', { context });
    at.seller.answers.set('task-1', () => ({ status: 'completed', task_id: 'task-1', result: RESULT }));
    await one.poller.start();
    await at.clock.pass(MINUTE);
    await until(() => one.seen.length > 0);
    expect(one.seen[0]?.event).toMatchObject({ source: 'poll', context, warnings: [] });
  });

  it('no change is no event; a change of status is one, each time it comes back', async () => {
    const one = await at.process();
    await submitted(one, 'task-1');
    const statuses = ['submitted', 'working', 'working', 'input-required', 'working', 'working'];
    at.seller.answers.set('task-1', () => ({ status: statuses.shift() ?? 'working', task_id: 'task-1' }));
    await one.poller.start();
    await at.clock.pass(10 * MINUTE);
    await until(() => one.seen.length >= 3);
    expect(one.seen.map(({ event }) => event.kind === 'task' && event.status)).toEqual([
      'working',
      'input-required',
      'working',
    ]);
  });

  it('what another channel told in between is compared with, too', async () => {
    const one = await at.process();
    await submitted(one, 'task-1');
    at.seller.answers.set('task-1', () => ({ status: 'working', task_id: 'task-1' }));
    await one.poller.start();
    await at.clock.pass(FAST + S);
    await until(() => one.seen.length === 1);
    await one.deliver(
      payloads.tool('input-required', { task_id: 'task-1', timestamp: new Date().toISOString() }),
    );
    await at.clock.pass(2 * SLOW);
    await until(() => one.seen.length === 3);
    const statuses = one.seen.map(({ event }) => event.kind === 'task' && event.status);
    expect(statuses).toEqual(['working', 'input-required', 'working']);
    await at.clock.pass(HOUR);
    expect(one.seen).toHaveLength(3);
  });

  it('a status that was older than a webhook applied during the question is told by the next poll', async () => {
    const one = await at.process();
    await submitted(one, 'task-1');
    let isFirst = true;
    at.seller.answers.set('task-1', async () => {
      if (isFirst) {
        await at.clock.sleep(S);
        await one.deliver(webhook('working'));
      }
      isFirst = false;
      return { status: 'input-required', task_id: 'task-1' };
    });
    await one.poller.start();
    await at.clock.pass(FAST + 2 * S);
    await until(() => one.polls.length === 1);
    expect(one.polls[0]).toMatchObject({ result: 'unchanged' });
    await at.clock.pass(2 * SLOW);
    await until(() => one.seen.length === 2);
    expect(one.seen[1]?.event).toMatchObject({ status: 'input-required', source: 'poll' });
  });

  it('progress is an event where the seller says when it was; the same at another time is none', async () => {
    const one = await at.process();
    await submitted(one, 'task-1');
    const steps = [1, 1, 2];
    at.seller.answers.set('task-1', () => ({
      status: 'working',
      task_id: 'task-1',
      updated_at: new Date().toISOString(),
      progress: { current_step: steps.shift() ?? 2 },
    }));
    await one.poller.start();
    await at.clock.pass(10 * MINUTE);
    await until(() => one.seen.length >= 2);
    expect(one.seen.map(({ event }) => event.data)).toEqual([{ current_step: 1 }, { current_step: 2 }]);
  });

  it('completed without a result is asked again with it, else unresolved: no event without data, and a webhook still ends it', async () => {
    const one = await at.process({
      query: ({ taskId }) => ({ operation: 'status', arguments: { task_id: taskId } }),
    });
    const { operationId } = await submitted(one, 'task-1');
    at.seller.answers.set('task-1', () => ({ status: 'completed', task_id: 'task-1' }));
    await one.poller.start();
    await at.clock.pass(HOUR);
    expect(at.seller.questions.map(({ args }) => args)).toEqual([
      { task_id: 'task-1' },
      { task_id: 'task-1', include_result: true },
    ]);
    expect(one.seen).toEqual([]);
    expect(one.polls.at(-1)).toMatchObject({ result: 'unresolved', status: 'completed' });
    expect(alarmsOf(one, 'task_unresolved')).toMatchObject([
      { sender: AGENT, taskId: 'task-1', operationId },
    ]);
    expect(await listed(one, 'unresolved')).toEqual(['task-1']);
    expect(said(await one.deliver(webhook('completed', { operation_id: operationId })))).toBe('accepted 200');
    expect(one.seen).toHaveLength(1);
    await until(async () => (await listed(one, 'unresolved')).length === 0);
  });

  it('a task is given up after 30 days, and no sooner, where giveUpMs is not said', async () => {
    const DAYS_30 = 30 * 24 * HOUR;
    const before = await at.process();
    await submitted(before, 'task-1');
    await at.clock.pass(DAYS_30 - 2 * MINUTE);
    await before.poller.start();
    await at.clock.pass(MINUTE);
    expect(before.polls.length).toBeGreaterThan(0);
    expect(before.polls.filter(({ result }) => result !== 'unchanged' && result !== 'changed')).toEqual([]);
    await at.clock.pass(2 * MINUTE);
    expect(before.polls.at(-1)).toMatchObject({ result: 'unresolved' });
  });

  it('a task that is long over giveUpMs is asked about before it is given up', async () => {
    const one = await at.process({ giveUpMs: HOUR });
    await submitted(one, 'task-1');
    at.seller.answers.set('task-1', () => ({ status: 'completed', task_id: 'task-1', result: RESULT }));
    await at.clock.pass(31 * 24 * HOUR);
    await one.poller.start();
    await at.clock.pass(MINUTE);
    await until(() => one.seen.length > 0);
    expect(alarmsOf(one, 'task_unresolved')).toEqual([]);
  });

  it('the status of a result is no status of its task', async () => {
    const one = await at.process();
    await submitted(one, 'task-1');
    at.seller.answers.set('task-1', () => ({
      task_id: 'task-1',
      status: 'active',
      result: { media_buy_id: 'mb-1', status: 'canceled' },
    }));
    await one.poller.start();
    await at.clock.pass(MINUTE);
    expect(one.seen).toEqual([]);
    expect(alarmsOf(one, 'poll_failing')[0]).toMatchObject({ refusal: 'answer_invalid' });
  });

  it('a result that comes with the second question counts', async () => {
    const one = await at.process();
    await submitted(one, 'task-1');
    at.seller.answers.set('task-1', () => ({
      status: 'completed',
      task_id: 'task-1',
      ...(at.seller.questions.length > 1 && { result: RESULT }),
    }));
    await one.poller.start();
    await at.clock.pass(MINUTE);
    await until(() => one.seen.length > 0);
    expect(one.seen[0]?.event.data).toEqual(RESULT);
  });

  it('a failure is one without a result too', async () => {
    const one = await at.process();
    await submitted(one, 'task-1');
    const error = { code: 'BUDGET', message: 'too low' };
    at.seller.answers.set('task-1', () => ({ status: 'failed', task_id: 'task-1', error }));
    await one.poller.start();
    await at.clock.pass(MINUTE);
    await until(() => one.seen.length > 0);
    expect(one.seen[0]?.event).toMatchObject({ status: 'failed', data: { error } });
  });
});

describe('what another channel tells', () => {
  it('a webhook that was handled ends the polls', async () => {
    const one = await at.process();
    const { operationId } = await submitted(one, 'task-1');
    await one.poller.start();
    await at.clock.pass(MINUTE);
    const asked = at.seller.questions.length;
    expect(asked).toBeGreaterThan(0);
    await one.deliver(webhook('completed', { operation_id: operationId }));
    await until(async () => (await listed(one, 'watched')).length === 0);
    await at.clock.pass(HOUR);
    expect(at.seller.questions).toHaveLength(asked);
    expect(one.seen).toHaveLength(1);
  });

  it('in mode inbox from its insertion on, while it still waits for its handler', async () => {
    const one = await at.process({}, { mode: 'inbox' }, false);
    await submitted(one, 'task-1');
    expect(said(await one.deliver(webhook('completed')))).toBe('accepted 200');
    await one.poller.start();
    await at.clock.pass(HOUR);
    expect([at.seller.questions, one.seen]).toEqual([[], []]);
    await one.receiver.start();
    await until(() => one.seen.length === 1);
    await until(async () => (await listed(one, 'watched')).length === 0);
    await at.clock.pass(HOUR);
    expect(at.seller.questions).toEqual([]);
  });

  it('a webhook that tells an end too late, after what is newer, ends nothing', async () => {
    const one = await at.process();
    await submitted(one, 'task-1');
    const early = new Date(Date.now() - MINUTE).toISOString();
    await one.deliver(webhook('working'));
    expect(said(await one.deliver(webhook('completed', { timestamp: early })))).toBe('stale 200');
    await one.poller.start();
    await at.clock.pass(5 * MINUTE);
    expect(at.seller.questions.length).toBeGreaterThan(0);
    expect(await listed(one, 'watched')).toEqual(['task-1']);
  });

  it('an inline webhook whose handler fails ends nothing: the poll makes it safe, and it is handled by itself', async () => {
    let fails = true;
    const one = await at.process(
      {},
      {
        handler: async () => {
          if (fails) throw new Error('the database is away');
        },
      },
    );
    const { operationId } = await submitted(one, 'task-1');
    expect(said(await one.deliver(webhook('completed', { operation_id: operationId })))).toBe(
      'unavailable handler_failed 503',
    );
    expect(await listed(one, 'watched')).toEqual(['task-1']);
    fails = false;
    at.seller.answers.set('task-1', () => ({ status: 'completed', task_id: 'task-1', result: RESULT }));
    await one.poller.start();
    await at.clock.pass(5 * MINUTE);
    await until(() => one.seen.length === 2);
    expect(one.seen[1]?.event).toMatchObject({ source: 'webhook', status: 'completed' });
    expect(await listed(one, 'watched')).toEqual([]);
    const asked = at.seller.questions.length;
    await at.clock.pass(HOUR);
    expect([at.seller.questions.length, one.seen.length]).toEqual([asked, 2]);
  });

  it('a late webhook whose handler fails does not make an unresolved task disappear: it is polled again', async () => {
    const one = await at.process(
      { giveUpMs: MINUTE },
      {
        handler: async () => {
          throw new Error('the database is away');
        },
      },
    );
    const { operationId } = await submitted(one, 'task-1');
    await one.poller.start();
    await at.clock.pass(5 * MINUTE);
    expect(await listed(one, 'unresolved')).toEqual(['task-1']);
    await one.deliver(webhook('completed', { operation_id: operationId }));
    expect(await listed(one, 'watched')).toEqual(['task-1']);
  });

  it('is not given up while the handler of its end runs, and ends with it', async () => {
    let release = (): void => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    const one = await at.process({}, { handler: () => held });
    const { operationId } = await submitted(one, 'task-1');
    at.seller.answers.set('task-1', () => ({ status: 'completed', task_id: 'task-1' }));
    const delivery = one.deliver(webhook('completed', { operation_id: operationId }));
    await until(() => one.seen.length === 1);
    await one.poller.start();
    await at.clock.pass(SLOW + S);
    expect(at.seller.questions.length).toBeGreaterThan(0);
    release();
    expect(said(await delivery)).toBe('accepted 200');
    await until(async () => (await listed(one, 'watched')).length === 0);
    expect(await listed(one, 'unresolved')).toEqual([]);
    expect(alarmsOf(one, 'task_unresolved')).toEqual([]);
  });

  it('a webhook before the answer of the call, whose handler fails, is polled for all the same', async () => {
    const one = await at.process(
      {},
      {
        handler: async ({ source }) => {
          if (source === 'webhook') throw new Error('the database is away');
        },
      },
    );
    const made = await one.registrations.create({
      agentUrl: AGENT,
      taskType: 'create_media_buy',
      arguments: {},
    });
    await one.deliver(webhook('completed', { operation_id: made.operationId }));
    expect(await made.settle({ status: 'submitted', task_id: 'task-1' })).toBe('known');
    expect(await listed(one, 'watched')).toEqual(['task-1']);
  });

  it('an answer that ends the call is polled by nobody', async () => {
    const one = await at.process();
    const made = await one.registrations.create({
      agentUrl: AGENT,
      taskType: 'create_media_buy',
      arguments: {},
    });
    await made.settle({ status: 'completed', task_id: 'task-1', result: RESULT });
    await until(() => one.seen.length === 1);
    await one.poller.start();
    await at.clock.pass(HOUR);
    expect(at.seller.questions).toEqual([]);
  });
});

describe('a store that fails while an answer is kept', () => {
  it('is no fault of the seller: no alarm of it, no back-off, and the task is polled after its lease', async () => {
    const store = memoryStore();
    let isAway = false;
    const failing: Store = {
      ...store,
      accept: async (request) => {
        if (isAway) throw new Fault('store_unavailable', 'the store is away');
        return store.accept(request);
      },
    };
    const one = await at.process({ callMs: 10 * S }, { store: failing });
    await submitted(one, 'task-1');
    at.seller.answers.set('task-1', () => ({ task_id: 'task-1', status: 'completed', result: RESULT }));
    isAway = true;
    await one.poller.start();
    await at.clock.pass(10 * MINUTE);
    expect(alarmsOf(one, 'poll_failing')).toEqual([]);
    // The lease, and what a look may add.
    expect(Math.max(...gaps())).toBeLessThanOrEqual(20 * S + 10 * S);
    isAway = false;
    await at.clock.pass(MINUTE);
    await until(() => one.seen.length === 1);
    expect(one.seen[0]?.event).toMatchObject({ source: 'poll', status: 'completed' });
  });
});

describe('a poller that dies once its answer is observed', () => {
  it('loses no transition that comes after what a webhook told meanwhile, and tells none twice', async () => {
    const state = createMemoryState();
    const store = memoryStore({ state });
    const rows = store.registrations ?? expect.fail('memory has them');
    let dies = true;
    const dying: Store = {
      ...store,
      registrations: {
        ...rows,
        run: (sender, plan) =>
          rows.run(sender, (step, now) =>
            plan(
              {
                ...step,
                save: (row) => {
                  if (dies && row.kind === 'watch' && watchIn(row).changes === 1) throw new Error('dead');
                  step.save(row);
                },
              },
              now,
            ),
          ),
      },
    };
    const one = await at.process({ callMs: 5 * S }, { store: dying });
    await submitted(one, 'task-1');
    const answers = (status: string) => () => ({ task_id: 'task-1', status });
    at.seller.answers.set('task-1', answers('input-required'));
    await one.poller.start();
    await at.clock.pass(FAST);
    await until(() => one.seen.length === 1);
    // Asked again after the lease: told already.
    await at.clock.pass(20 * S);
    await one.deliver(webhook('working', { result: undefined }));
    dies = false;
    await at.clock.pass(2 * MINUTE);
    const told = one.seen.map(({ event }) => event.kind === 'task' && event.status);
    expect(told).toEqual(['input-required', 'working', 'input-required']);
  });
});

describe('forget', () => {
  it('while a task of the seller is asked about leaves nothing of the seller', async () => {
    const store = memoryStore();
    const one = await at.process({}, { store });
    await submitted(one, 'task-1');
    const asked = gate();
    const answered = gate();
    at.seller.answers.set('task-1', async () => {
      asked.open();
      await answered.opened;
      return { task_id: 'task-1', status: 'working' };
    });
    await one.poller.start();
    await at.clock.pass(FAST);
    await asked.opened;
    await one.registrations.forget(AGENT);
    answered.open();
    await until(() => one.polls.length === 1);
    for (const kind of ['operation', 'watch', 'route'] as const) {
      expect(await store.registrations?.page({ kind, sender: AGENT, limit: 10 })).toEqual({ rows: [] });
    }
  });
});

describe('a seller that does not answer', () => {
  it('is asked less and less often, up to half an hour, and as before once it answers', async () => {
    const one = await at.process();
    await submitted(one, 'task-1');
    let isAway = true;
    at.seller.answers.set('task-1', () => {
      if (isAway) throw new Error('socket hang up');
      return { status: 'submitted', task_id: 'task-1' };
    });
    await one.poller.start();
    await at.clock.pass(4 * HOUR);
    expect(gaps().slice(0, 7)).toEqual([2, 4, 8, 16, 32, 60, 60].map((times_) => times_ * FAST));
    expect(alarmsOf(one, 'poll_failing').length).toBeGreaterThan(0);
    expect(one.polls.at(-1)).toMatchObject({ result: 'failed', error: 'socket hang up' });
    isAway = false;
    await at.clock.pass(HOUR);
    expect(gaps().at(-1)).toBe(FAST);
  });

  it('and asks for a pause, has it: for all of its tasks, by all processes', async () => {
    const one = await at.process();
    const two = await at.process();
    for (const task of ['task-1', 'task-2', 'task-3']) await submitted(one, task);
    let isBusy = true;
    const answer = (): unknown => {
      if (isBusy) throw new SellerBusyError(429, 10 * MINUTE);
      return { status: 'submitted' };
    };
    for (const task of ['task-1', 'task-2', 'task-3']) at.seller.answers.set(task, answer);
    await one.poller.start();
    await two.poller.start();
    await at.clock.pass(9 * MINUTE);
    const first = at.seller.questions.length;
    expect(first).toBeLessThanOrEqual(3);
    expect(times().every((time) => time <= FAST + 10 * S)).toBe(true);
    isBusy = false;
    await at.clock.pass(3 * MINUTE);
    expect(Math.min(...times().slice(first))).toBeGreaterThanOrEqual(10 * MINUTE);
    expect(at.seller.questions.length).toBeGreaterThan(first);
    expect([...one.polls, ...two.polls][0]).toMatchObject({ result: 'busy' });
  });

  it('a pause without a length is one, too, of all its tasks; five in a row are an alarm', async () => {
    const one = await at.process();
    for (let nth = 0; nth < 20; nth += 1) {
      await submitted(one, `task-${nth}`);
      at.seller.answers.set(`task-${nth}`, () => {
        throw new SellerBusyError(429, undefined);
      });
    }
    await one.poller.start();
    await at.clock.pass(2 * FAST - S);
    // As many as are asked at once.
    expect(at.seller.questions).toHaveLength(4);
    await at.clock.pass(8 * HOUR);
    expect(alarmsOf(one, 'poll_failing')[0]).toMatchObject({ refusal: 'busy' });
  });

  it('a pause without a length does not take another one back', async () => {
    const one = await at.process();
    for (const task of ['task-1', 'task-2']) await submitted(one, task);
    at.seller.answers.set('task-1', () => {
      throw new SellerBusyError(429, 30 * MINUTE);
    });
    at.seller.answers.set('task-2', () => {
      throw new SellerBusyError(429, undefined);
    });
    await one.poller.start();
    await at.clock.pass(25 * MINUTE);
    expect(at.seller.questions.length).toBeLessThanOrEqual(2);
  });

  it.each([1e306, Number.MAX_SAFE_INTEGER, Number.NaN, -5])(
    'a pause of %d ms is a day at most, or none',
    async (ms) => {
      const one = await at.process();
      await submitted(one, 'task-1');
      at.seller.answers.set('task-1', () => {
        throw new SellerBusyError(429, ms);
      });
      await one.poller.start();
      await at.clock.pass(26 * HOUR);
      expect(one.polls.length).toBeGreaterThanOrEqual(2);
      expect(one.polls.every(({ result }) => result === 'busy')).toBe(true);
    },
  );

  it('an error that says when to come again is such a pause', async () => {
    const one = await at.process();
    await submitted(one, 'task-1');
    at.seller.answers.set('task-1', () => ({
      error: { code: 'RATE_LIMITED', message: 'slower', retry_after: 900 },
    }));
    await one.poller.start();
    await at.clock.pass(HOUR);
    expect(Math.min(...gaps())).toBeGreaterThanOrEqual(15 * MINUTE);
  });

  it('and does not know the task: an alarm, once, and never a failure of the task', async () => {
    const one = await at.process();
    const { operationId } = await submitted(one, 'task-1');
    at.seller.answers.set('task-1', () => {
      throw new TaskUnknownError('no such task');
    });
    await one.poller.start();
    await at.clock.pass(HOUR);
    expect(at.seller.questions.length).toBeGreaterThan(3);
    expect(alarmsOf(one, 'task_unknown')).toMatchObject([
      {
        sender: AGENT,
        taskId: 'task-1',
        operationId,
        message:
          'The seller does not know the task: no such task. This does not say how the task ended: it is polled again, ever less often.',
      },
    ]);
    expect(one.seen).toEqual([]);
    expect(await listed(one, 'watched')).toEqual(['task-1']);
  });

  it('and refuses the credentials is an alarm, and asked again', async () => {
    const one = await at.process();
    await submitted(one, 'task-1');
    at.seller.answers.set('task-1', () => {
      throw new SellerError('AUTH_INVALID', 'expired');
    });
    await one.poller.start();
    await at.clock.pass(5 * MINUTE);
    expect(alarmsOf(one, 'poll_failing')[0]).toMatchObject({ sender: AGENT, refusal: 'AUTH_INVALID' });
    expect(at.seller.questions.length).toBeGreaterThan(1);
  });

  it('and does not know the task, in an answer: the alarm says so once, in its words', async () => {
    const one = await at.process();
    await submitted(one, 'task-1');
    at.seller.answers.set('task-1', () => ({ error: { code: 'TASK_NOT_FOUND', message: 'no' } }));
    await one.poller.start();
    await at.clock.pass(FAST);
    expect(alarmsOf(one, 'task_unknown')[0]?.message).toBe(
      'The seller answers TASK_NOT_FOUND: no. This does not say how the task ended: it is polled again, ever less often.',
    );
  });

  it.each([
    ['a text', 'completed', 'has no status of a task.'],
    ['nothing', undefined, 'has no status of a task.'],
    ['null', null, 'has no status of a task.'],
    ['a list', [{ status: 'completed', task_id: 'task-1', result: RESULT }], 'has no status of a task.'],
    ['a status that nobody knows', { status: 'active', task_id: 'task-1' }, 'has no status of a task.'],
    [
      'such a status beside a result with one',
      { status: 'active', result: { status: 'completed', task_id: 'task-1' } },
      'has no status of a task.',
    ],
    [
      'a task without a status beside a result with one',
      { task_id: 'task-1', result: { status: 'completed' } },
      'has no status of a task.',
    ],
    [
      'another task',
      { status: 'completed', task_id: 'task-2', result: RESULT },
      'is of another task (task-2). Tell the seller.',
    ],
    [
      'another task of an agent',
      { id: 'task-2', status: { state: 'completed' } },
      'is of another task (task-2). Tell the seller.',
    ],
    [
      'a status update of another task',
      { id: 'task-1', taskId: 'task-2', status: { state: 'failed' } },
      'is of another task (task-2). Tell the seller.',
    ],
  ])('and gives %s has told nothing', async (_what, answer, says) => {
    const one = await at.process();
    await submitted(one, 'task-1');
    at.seller.answers.set('task-1', () => answer);
    await one.poller.start();
    await at.clock.pass(2 * MINUTE);
    expect(one.seen).toEqual([]);
    expect(alarmsOf(one, 'poll_failing')[0]).toMatchObject({ refusal: 'answer_invalid' });
    expect(one.polls[0]).toMatchObject({ result: 'refused' });
    expect(one.polls[0]?.error).toContain(`The answer ${says}`);
  });

  it.each([
    [
      'a task that it does not know',
      { errors: [{ code: 'TASK_NOT_FOUND', message: 'gone' }] },
      'task_unknown',
      'gone',
    ],
    [
      'the same, by a tool that failed',
      { isError: true, structuredContent: { adcp_error: { code: 'NOT_FOUND', message: 'gone' } } },
      'task_unknown',
      'gone',
    ],
    [
      'a refusal',
      { errors: [{ code: 'AUTH_INVALID', message: 'expired' }] },
      'poll_failing',
      'AUTH_INVALID: expired',
    ],
    ['a fault', { adcp_error: { code: 'DOWN', message: 'our\nstore' } }, 'poll_failing', 'DOWN: our?store'],
    ['a fault in words', { error: 'our store' }, 'poll_failing', 'no status of a task (our store)'],
    [
      'a failed tool',
      { isError: true, content: [{ type: 'text', text: 'out of memory' }] },
      'poll_failing',
      'the operation failed: out of memory',
    ],
  ] as const)('and reports %s is told so in its alarm', async (_what, answer, code, said) => {
    const one = await at.process();
    await submitted(one, 'task-1');
    at.seller.answers.set('task-1', () => answer);
    await one.poller.start();
    await at.clock.pass(2 * HOUR);
    expect(alarmsOf(one, code)[0]?.message).toContain(said);
    expect(one.polls[0]?.error).toContain(said);
    expect(one.seen).toEqual([]);
  });

  it('whose failed tool has no such operation is asked by the older one', async () => {
    const one = await at.process();
    await submitted(one, 'task-1');
    at.seller.answers.set('task-1', ({ operation }) =>
      operation === 'tasks/get'
        ? { task_id: 'task-1', status: 'completed', result: RESULT }
        : { isError: true, content: [{ type: 'text', text: `Unknown tool: ${operation}` }] },
    );
    await one.poller.start();
    await at.clock.pass(MINUTE);
    await until(() => one.seen.length === 1);
  });

  it('for giveUpMs: an alarm, unresolved, polled no more, and still open for a webhook', async () => {
    const one = await at.process({ giveUpMs: HOUR });
    const { operationId } = await submitted(one, 'task-1');
    await one.poller.start();
    await at.clock.pass(2 * HOUR);
    // Asked once more when the time is over.
    expect(Math.max(...times())).toBeGreaterThanOrEqual(HOUR);
    expect(Math.max(...times())).toBeLessThanOrEqual(HOUR + FAST);
    expect(alarmsOf(one, 'task_unresolved')).toHaveLength(1);
    expect(one.polls.at(-1)).toMatchObject({ result: 'unresolved' });
    expect(await one.registrations.get({ agentUrl: AGENT, operationId })).toMatchObject({ state: 'open' });
    await one.deliver(webhook('completed'));
    expect(one.seen[0]?.event.registration).toMatchObject({ operationId });
  });
});

describe('a task is found in an answer (calls.md §1)', () => {
  const toolTask = { task_id: 'task-1', status: 'completed', result: RESULT };
  const agentTask = (ids: object) => ({
    ...ids,
    status: { state: 'completed' },
    artifacts: [{ artifactId: 'a', parts: [{ kind: 'data', data: RESULT }] }],
  });
  it.each<readonly [string, object]>([
    ['as it is', toolTask],
    ['without its id', { status: 'completed', result: RESULT }],
    ['in task', { task: toolTask }],
    ['in result', { result: toolTask }],
    ['in task, beside a result', { task: toolTask, result: { ...toolTask, status: 'failed' } }],
    ['in result, beside a task that is none', { task: { name: 't' }, result: toolTask }],
    ['of an agent', agentTask({ id: 'task-1' })],
    ['of an agent, in task', { task: agentTask({ id: 'task-1' }) }],
    ['of an agent, in result', { result: agentTask({ id: 'task-1' }) }],
    ['as a status update', agentTask({ taskId: 'task-1' })],
    ['as a status update with an id of its own', agentTask({ id: 'update-7', taskId: 'task-1' })],
  ])('%s', async (_how, answer) => {
    const one = await at.process();
    await submitted(one, 'task-1');
    at.seller.answers.set('task-1', () => answer);
    await one.poller.start();
    await at.clock.pass(MINUTE);
    await until(() => one.seen.length > 0);
    expect(one.seen[0]?.event).toMatchObject({ status: 'completed', data: RESULT });
    expect(alarmsOf(one, 'poll_failing')).toEqual([]);
  });
});

describe('a task that was given up', () => {
  it('is polled again where it is adopted', async () => {
    const one = await at.process({ giveUpMs: MINUTE });
    await submitted(one, 'task-1');
    await one.poller.start();
    await at.clock.pass(5 * MINUTE);
    expect(await listed(one, 'unresolved')).toEqual(['task-1']);
    at.seller.answers.set('task-1', () => ({ status: 'completed', task_id: 'task-1', result: RESULT }));
    const adopted = { agentUrl: AGENT, taskId: 'task-1', taskType: 'create_media_buy' };
    expect(await one.registrations.adopt(adopted)).toMatchObject({ taskId: 'task-1' });
    expect(await listed(one, 'watched')).toEqual(['task-1']);
    await at.clock.pass(2 * MINUTE);
    await until(() => one.seen.length === 1);
  });
});

describe('several processes', () => {
  it('a task is polled by one at a time, and a seller by no more at once than it is said', async () => {
    at.seller.takesMs = 3 * S;
    const processes = await Promise.all([
      at.process({ perSeller: 2 }),
      at.process({ perSeller: 2 }),
      at.process({ perSeller: 2 }),
    ]);
    const [one] = processes;
    if (!one) return expect.fail('three were made');
    for (let nth = 0; nth < 12; nth += 1) await submitted(one, `task-${nth}`);
    for (const { poller } of processes) await poller.start();
    await at.clock.pass(10 * MINUTE);
    expect(at.seller.most.get(AGENT)).toBe(2);
    const byTask = byTaskId();
    expect(byTask.size).toBe(12);
    for (const questions of byTask.values()) {
      expect(Math.min(...gapsOf(questions))).toBeGreaterThanOrEqual(3 * S);
    }
  });

  it('what a process that died has begun another one asks, after a lease and not before', async () => {
    const dead = await at.process({ callMs: 20 * S });
    await submitted(dead, 'task-1');
    at.seller.answers.set('task-1', () => new Promise(() => {}));
    await dead.poller.start();
    await at.clock.pass(FAST);
    expect(times()).toEqual([FAST]);
    at.seller.answers.delete('task-1');
    const other = await at.process({ callMs: 20 * S });
    await other.poller.start();
    await at.clock.pass(2 * MINUTE);
    expect(times()[1]).toBeGreaterThanOrEqual(FAST + 40 * S);
    expect(times()[1]).toBeLessThanOrEqual(FAST + 40 * S + 10 * S);
  });

  it('a seller that hangs, with many tasks, takes nothing from another', async () => {
    const quick = 'https://quick.example/mcp';
    const one = await at.process({ perSeller: 2, concurrency: 8 });
    const two = await at.process({ perSeller: 2, concurrency: 8 });
    for (let nth = 0; nth < 40; nth += 1) {
      const slow = `slow-${nth}`;
      await submitted(one, slow);
      at.seller.answers.set(slow, async () => {
        await at.clock.sleep(15 * S);
        return { status: 'submitted', task_id: slow };
      });
    }
    for (let nth = 0; nth < 10; nth += 1) await submitted(one, `quick-${nth}`, { agentUrl: quick });
    await one.poller.start();
    await two.poller.start();
    await at.clock.pass(10 * MINUTE);
    const asked = at.seller.questions.filter(({ agentUrl }) => agentUrl === quick);
    // Ten tasks, each at least every 33 s and what a look may add.
    expect(asked.length).toBeGreaterThanOrEqual(10 * Math.floor((10 * MINUTE) / (1.1 * FAST + 10 * S)));
    expect(at.seller.most.get(AGENT)).toBeLessThanOrEqual(2);
    // Two at once, 15 s each: none of its places is empty for long.
    const slow = at.seller.questions.length - asked.length;
    expect(slow).toBeGreaterThanOrEqual(0.8 * 2 * ((10 * MINUTE) / (15 * S)));
  });
});

describe('a seller with more tasks than it answers in time', () => {
  it('each has its turn before any has it twice more than another', async () => {
    const one = await at.process({ perSeller: 1 });
    at.seller.takesMs = S;
    for (let nth = 0; nth < 200; nth += 1) await submitted(one, `task-${nth}`);
    await one.poller.start();
    await at.clock.pass(HOUR);
    const polls = [...byTaskId().values()].map(({ length }) => length);
    expect(polls).toHaveLength(200);
    expect(Math.max(...polls) - Math.min(...polls)).toBeLessThanOrEqual(2);
    // Nearly as many as it can answer.
    expect(at.seller.questions.length).toBeGreaterThan((0.8 * HOUR) / S);
  });

  it('and one that is always answered 429 does not hold up the others', async () => {
    const one = await at.process();
    for (let nth = 0; nth < 20; nth += 1) await submitted(one, `task-${nth}`);
    at.seller.answers.set('task-0', () => {
      throw new SellerBusyError(429, undefined);
    });
    await one.poller.start();
    await at.clock.pass(6 * HOUR);
    const polls = [...byTaskId()].flatMap(([id, { length }]) => (id === 'task-0' ? [] : [length]));
    expect(polls).toHaveLength(19);
    // Half of what they would have without it, at least.
    expect(Math.min(...polls)).toBeGreaterThan((0.5 * 6 * HOUR) / FAST);
  });
});

describe('stop', () => {
  it('tells the question that runs, begins none, and leaves the task to another process at once', async () => {
    const one = await at.process();
    await submitted(one, 'task-1');
    at.seller.takesMs = 10 * S;
    await one.poller.start();
    await at.clock.pass(FAST + S);
    expect(one.poller.stats().inFlight).toBe(1);
    await one.poller.stop();
    expect(one.poller.stats()).toMatchObject({ inFlight: 0, polls: { failed: 0 } });
    const other = await at.process();
    at.seller.takesMs = 0;
    await other.poller.start();
    await at.clock.pass(0);
    await at.clock.pass(100);
    expect(times()).toHaveLength(2);
  });
});

describe('the question', () => {
  it('is get_task_status with the result, and the account of the call', async () => {
    const one = await at.process();
    await submitted(one, 'task-1', { arguments: { account: { account_id: 'acc-1' }, budget: 1 } });
    await one.poller.start();
    await at.clock.pass(MINUTE);
    expect(at.seller.questions[0]).toMatchObject({
      agentUrl: AGENT,
      operation: 'get_task_status',
      args: { task_id: 'task-1', include_result: true, account: { account_id: 'acc-1' } },
    });
  });

  it('is tasks/get where the seller does not have that, from then on alone', async () => {
    const one = await at.process();
    await submitted(one, 'task-1');
    at.seller.answers.set('task-1', ({ operation }) => {
      if (operation !== 'tasks/get') throw new Error('MCP error -32602: Tool get_task_status not found');
      return { status: 'working', task_id: 'task-1' };
    });
    await one.poller.start();
    await at.clock.pass(2 * MINUTE);
    expect(at.seller.questions.map(({ operation }) => operation).slice(0, 4)).toEqual([
      'get_task_status',
      'tasks/get',
      'tasks/get',
      'tasks/get',
    ]);
    expect(one.polls[0]).toMatchObject({ result: 'changed', status: 'working' });
  });

  it('is the newer one again where the older is gone', async () => {
    const one = await at.process();
    await submitted(one, 'task-1');
    let has = 'tasks/get';
    at.seller.answers.set('task-1', ({ operation }) => {
      if (operation !== has) throw new Error(`Tool ${operation} not found`);
      return { status: 'working', task_id: 'task-1' };
    });
    await one.poller.start();
    await at.clock.pass(MINUTE);
    has = 'get_task_status';
    await at.clock.pass(5 * MINUTE);
    expect(one.polls.at(-1)).toMatchObject({ result: 'unchanged' });
  });

  it('of a seller that has it by no name is an alarm', async () => {
    const one = await at.process();
    await submitted(one, 'task-1', { edition: '3.2' });
    at.seller.answers.set('task-1', ({ operation }) => {
      throw new Error(`MCP error -32602: Tool ${operation} not found`);
    });
    await one.poller.start();
    await at.clock.pass(FAST + S);
    expect(at.seller.questions.map(({ operation }) => operation)).toEqual([
      'get_task_status',
      'tasks/get',
      'tasks_get',
      'get_task',
    ]);
    expect(alarmsOf(one, 'poll_failing')[0]).toMatchObject({ refusal: 'no-operation' });
  });

  it('of the agent transport is its own, and its task is read as such', async () => {
    const call = Object.assign(at.seller.call, { transport: 'agent' as const });
    const one = await at.process({ call });
    await submitted(one, 'task-1');
    at.seller.answers.set('task-1', () => ({
      kind: 'task',
      id: 'task-1',
      contextId: 'c',
      status: { state: 'TASK_STATE_COMPLETED', timestamp: new Date().toISOString() },
      artifacts: [{ artifactId: 'a', parts: [{ kind: 'data', data: RESULT }] }],
    }));
    await one.poller.start();
    await at.clock.pass(MINUTE);
    await until(() => one.seen.length > 0);
    expect(at.seller.questions[0]).toMatchObject({ operation: 'tasks/get', args: { id: 'task-1' } });
    expect(one.seen[0]?.event).toMatchObject({ status: 'completed', data: RESULT });
  });
});

describe('the names of the question (calls.md §3.1)', () => {
  /** A client that knows what the seller lists, and how often it was asked for that. */
  const listing = (names: readonly string[] | Error, transport: 'tool' | 'agent' = 'tool') => {
    const lists: string[] = [];
    const operations = async (agentUrl: string): Promise<readonly string[]> => {
      lists.push(agentUrl);
      if (names instanceof Error) throw names;
      return names;
    };
    return { lists, call: Object.assign(at.seller.call, { operations, transport }) };
  };
  const asked = (): string[] => at.seller.questions.map(({ operation }) => operation);

  it.each(['get_task_status', 'tasks/get', 'tasks_get', 'get_task'])(
    '%s is asked where the seller lists it, in every edition, and its list is read once',
    async (name) => {
      const { call, lists } = listing(['create_media_buy', name]);
      const one = await at.process({ call });
      await submitted(one, 'task-1', { edition: '3.2' });
      await one.poller.start();
      await at.clock.pass(5 * MINUTE);
      expect(new Set(asked())).toEqual(new Set([name]));
      expect(asked().length).toBeGreaterThan(3);
      expect(lists).toEqual([AGENT]);
    },
  );

  it('a list that cannot be had costs no poll', async () => {
    const { call, lists } = listing(new Error('MCP error -32601: Method not found'));
    const one = await at.process({ call });
    await submitted(one, 'task-1');
    await one.poller.start();
    await at.clock.pass(2 * MINUTE);
    expect(new Set(asked())).toEqual(new Set(['get_task_status']));
    expect(lists.length).toBeGreaterThan(0);
  });

  it('a list is read again where the seller does not have what it has listed', async () => {
    const { call, lists } = listing(['get_task']);
    const one = await at.process({ call });
    await submitted(one, 'task-1');
    at.seller.answers.set('task-1', () => {
      throw new Error('MCP error -32602: Tool get_task not found');
    });
    await one.poller.start();
    await at.clock.pass(5 * MINUTE);
    expect(lists.length).toBeGreaterThan(1);
  });

  it.each([
    ['3.0', ['tasks/get', 'get_task_status']],
    ['3.2', ['get_task_status']],
  ] as const)('of an agent in edition %s a skill is asked: %j', async (edition, names) => {
    const { call } = listing(['get_task_status'], 'agent');
    const one = await at.process({ call });
    await submitted(one, 'work-1', { edition });
    at.seller.answers.set('work-1', ({ operation }) => {
      if (operation === 'tasks/get') throw new TaskUnknownError('no such task');
      // A question that is a skill has a Task of its own.
      return {
        kind: 'task',
        id: 'question-1',
        status: { state: 'completed' },
        artifacts: [
          { artifactId: 'a', parts: [{ data: { task_id: 'work-1', status: 'completed', result: RESULT } }] },
        ],
      };
    });
    await one.poller.start();
    await at.clock.pass(MINUTE);
    await until(() => one.seen.length > 0);
    expect(asked()).toEqual(names);
    expect(one.seen[0]?.event).toMatchObject({ taskId: 'work-1', status: 'completed', data: RESULT });
  });
});

describe('a call that is over while its work goes on (calls.md §1.5)', () => {
  const task = (id: string, state: string, data?: object): object => ({
    kind: 'task',
    id,
    contextId: 'c',
    status: { state, timestamp: new Date().toISOString() },
    ...(data && { artifacts: [{ artifactId: 'a', parts: [{ kind: 'data', data }] }] }),
  });
  const BEGUN = { status: 'submitted', task_id: 'work-1' };
  const agent = () => Object.assign(at.seller.call, { transport: 'agent' as const });
  const ids = (): unknown[] => at.seller.questions.map(({ args }) => args['id']);

  it('by a poll: the inner task is polled from then on, and the other one is not', async () => {
    const one = await at.process({ call: agent() });
    const made = await one.registrations.create({ ...REQUEST });
    await made.settle(task('call-1', 'working'));
    at.seller.answers.set('call-1', () => task('call-1', 'completed', BEGUN));
    at.seller.answers.set('work-1', () => task('work-1', 'completed', RESULT));
    await one.poller.start();
    await at.clock.pass(FAST + S);
    expect(await one.registrations.get(made)).toMatchObject({ state: 'open', taskId: 'work-1' });
    expect(one.seen.map(({ event }) => event)).toMatchObject([
      { taskId: 'work-1', status: 'submitted', source: 'poll', warnings: [] },
    ]);
    await at.clock.pass(2 * MINUTE);
    await until(() => one.seen.length === 2);
    expect(one.seen[1]?.event).toMatchObject({ taskId: 'work-1', status: 'completed', data: RESULT });
    expect(ids()).toEqual(['call-1', 'work-1']);
    expect(await one.registrations.get(made)).toMatchObject({ state: 'ended', status: 'completed' });
  });

  it('by a webhook: likewise', async () => {
    const one = await at.process({ call: agent() });
    const made = await one.registrations.create({ ...REQUEST });
    await made.settle(task('call-1', 'working'));
    const { operationId } = made;
    const over = { ...task('call-1', 'completed', BEGUN), metadata: { operation_id: operationId } };
    expect(said(await one.deliver(over))).toBe('accepted 200');
    expect(await one.registrations.get(made)).toMatchObject({ state: 'open', taskId: 'work-1' });
    expect(await listed(one, 'watched')).toEqual(['work-1']);
    expect(one.seen.map(({ event }) => event)).toMatchObject([
      { taskId: 'work-1', status: 'submitted', warnings: [{ code: 'derived_idempotency_key' }] },
    ]);
    // What ended by it is told once, whoever tells it.
    await one.deliver({ ...task('work-1', 'completed', RESULT), metadata: { operation_id: operationId } });
    at.seller.answers.set('work-1', () => task('work-1', 'completed', RESULT));
    await one.poller.start();
    await at.clock.pass(5 * MINUTE);
    expect(one.seen).toHaveLength(2);
    expect(await one.registrations.get(made)).toMatchObject({ state: 'ended', status: 'completed' });
  });

  it('by the answer, after a webhook of the call: likewise', async () => {
    const one = await at.process({ call: agent() });
    const made = await one.registrations.create({ ...REQUEST });
    const { operationId } = made;
    await one.deliver({ ...task('call-1', 'working'), metadata: { operation_id: operationId } });
    expect(await one.registrations.get(made)).toMatchObject({ state: 'open', taskId: 'call-1' });
    expect(await made.settle(task('call-1', 'completed', BEGUN))).toBe('settled');
    expect(await listed(one, 'watched')).toEqual(['work-1']);
  });

  it('says nothing of an operation that has ended', async () => {
    const one = await at.process({ call: agent() });
    const made = await one.registrations.create({ ...REQUEST });
    await made.settle(task('call-1', 'working'));
    const named = { metadata: { operation_id: made.operationId } };
    await one.deliver({ ...task('call-1', 'completed', RESULT), ...named });
    await one.deliver({ ...task('call-1', 'completed', BEGUN), ...named });
    expect(await one.registrations.get(made)).toMatchObject({ state: 'ended', taskId: 'call-1' });
    expect(await listed(one, 'watched')).toEqual([]);
  });
});

describe('an error in the place of an answer (calls.md §2.8)', () => {
  it.each([
    ['RATE_LIMITED', 4, 'busy'],
    ['RATE_LIMITED', undefined, 'busy'],
    ['SERVICE_UNAVAILABLE', 4, 'busy'],
    ['SERVICE_UNAVAILABLE', undefined, 'failed'],
    ['NEW_CODE', 4, 'busy'],
    ['NEW_CODE', undefined, 'failed'],
    ['AUTH_MISSING', undefined, 'refused'],
    ['PERMISSION_DENIED', 4, 'refused'],
  ])('%s with retry_after %s is %s', async (code, seconds, result) => {
    const one = await at.process({ fastMs: S, slowMs: S });
    await submitted(one, 'task-1');
    at.seller.answers.set('task-1', () => ({
      adcp_error: { code, message: 'm', retry_after: seconds ?? null },
    }));
    await one.poller.start();
    await at.clock.pass(30 * S);
    expect(one.polls[0]).toMatchObject({ result });
    expect(one.seen).toEqual([]);
    if (result === 'busy' && seconds !== undefined) {
      expect(Math.min(...gaps())).toBeGreaterThanOrEqual(seconds * S);
      expect(gaps()[0]).toBeLessThanOrEqual(2 * seconds * S);
    }
  });

  it.each([
    ['that passes, in words of an operation that is not there', 'SERVICE_UNAVAILABLE', 'busy'],
    ['of an unknown code, in such words', 'NEW_CODE', 'busy'],
    ['that does not pass', 'PERMISSION_DENIED', 'refused'],
    ['of a task that is not known', 'TASK_NOT_FOUND', 'unknown'],
  ])(
    'an error %s is not followed by a question before its retry_after is over',
    async (_what, code, result) => {
      const one = await at.process({ fastMs: S, slowMs: S });
      await submitted(one, 'task-1');
      await submitted(one, 'task-2');
      const error = { code, message: 'the operation is not available', retry_after: 900 };
      at.seller.answers.set('task-1', () => ({ adcp_error: error }));
      at.seller.answers.set('task-2', () => ({ adcp_error: error }));
      await one.poller.start();
      await at.clock.pass(30 * MINUTE);
      expect(one.polls[0]).toMatchObject({ result });
      const first = at.seller.questions[0]?.at ?? expect.fail('not asked');
      const within = at.seller.questions.filter((question) => question.at < first + 15 * MINUTE);
      // Two questions were under way already when the first answer came.
      expect(within.length).toBeLessThanOrEqual(2);
      expect(new Set(within.map((question) => question.args['task_id'])).size).toBe(within.length);
      expect(at.seller.questions.length).toBeGreaterThan(within.length);
    },
  );

  it.each([
    ['rate limited', { adcp_error: { code: 'RATE_LIMITED', message: 'm', retry_after: 4 } }],
    ['rate limited, in errors', { errors: [{ code: 'RATE_LIMITED', message: 'm' }] }],
    ['a transient error', { error: { code: 'DOWN', message: 'm', recovery: 'transient' } }],
    ['an unknown task', { errors: [{ code: 'TASK_NOT_FOUND', message: 'm' }] }],
    ['refused credentials', { error: { code: 'AUTH_INVALID', message: 'm' } }],
    ['still working', { status: 'working', adcp_error: { code: 'RATE_LIMITED', message: 'm' } }],
    ['completed', { status: 'completed', adcp_error: { code: 'RATE_LIMITED', message: 'm' } }],
    ['a failed tool', { adcp_error: { code: 'INVALID_REQUEST', message: 'm' } }],
  ])('a status that names no task, beside an error, is the question’s: %s', async (what, members) => {
    const one = await at.process();
    await submitted(one, 'task-1');
    const failed = { status: 'failed', ...members };
    const isTool = what === 'a failed tool';
    at.seller.answers.set('task-1', () => (isTool ? { isError: true, structuredContent: failed } : failed));
    await one.poller.start();
    await at.clock.pass(10 * MINUTE);
    expect(one.seen).toEqual([]);
    expect(one.polls.length).toBeGreaterThan(0);
    expect(await listed(one, 'watched')).toEqual(['task-1']);
  });

  it('null members are none', async () => {
    const one = await at.process();
    await submitted(one, 'task-1');
    at.seller.answers.set('task-1', () => ({
      task_id: 'task-1',
      status: 'completed',
      error: null,
      adcp_error: null,
      errors: null,
      progress: null,
      completed_at: null,
      updated_at: null,
      result: RESULT,
    }));
    await one.poller.start();
    await at.clock.pass(MINUTE);
    await until(() => one.seen.length > 0);
    expect(one.seen[0]?.event).toMatchObject({ status: 'completed', data: RESULT });
  });
});

describe('a completion without data (calls.md §1.6)', () => {
  it('by webhook or answer is no end: the task is polled on, and a later end counts', async () => {
    const one = await at.process();
    const told = await submitted(one, 'task-1');
    await one.deliver(webhook('completed', { operation_id: told.operationId, result: null }));
    const answered = await one.registrations.create({ ...REQUEST });
    await answered.settle({ status: 'completed', task_id: 'task-2' });
    await until(() => one.seen.length === 2);
    for (const { event } of one.seen) {
      expect(event).toMatchObject({ kind: 'other', status: 'completed' });
      expect(event.warnings.map(({ code }) => code)).toContain('completed_without_data');
    }
    expect(await one.registrations.get(told)).toMatchObject({ state: 'open' });
    expect(await one.registrations.get(answered)).toMatchObject({ state: 'open', taskId: 'task-2' });
    for (const task_id of ['task-1', 'task-2'])
      at.seller.answers.set(task_id, () => ({ status: 'completed', task_id, result: RESULT }));
    await one.poller.start();
    await at.clock.pass(5 * MINUTE);
    await until(() => one.seen.length === 4);
    expect(one.seen.slice(2).map(({ event }) => event)).toMatchObject([
      { kind: 'task', status: 'completed', data: RESULT },
      { kind: 'task', status: 'completed', data: RESULT },
    ]);
    expect(await one.registrations.get(told)).toMatchObject({ state: 'ended' });
  });
});

describe('mistakes of its owner', () => {
  const misconfigured: readonly (readonly [string, object, string])[] = [
    [
      'a transport that there is none of',
      { call: Object.assign(async () => ({}), { transport: () => 'mcp' }) },
      'call.transport: "mcp" is not one of tool, agent.',
    ],
    ['a query that is a name', { query: () => 'get' }, 'query: give { operation, arguments }'],
    ['a query that is a promise', { query: async () => undefined }, 'query: give { operation, arguments }'],
    [
      'a query without arguments',
      { query: () => ({ operation: 'get' }) },
      'query: give { operation, arguments }',
    ],
    [
      'a query without an operation',
      { query: () => ({ operation: '', arguments: {} }) },
      'query: give { operation, arguments }',
    ],
  ];
  it.each(misconfigured)(
    '%s: nobody is asked, and an alarm says what to give',
    async (_what, options, says) => {
      const one = await at.process(options);
      await submitted(one, 'task-1');
      await one.poller.start();
      await at.clock.pass(FAST);
      expect(times()).toEqual([]);
      expect(one.polls[0]).toMatchObject({
        result: 'refused',
        error: expect.stringContaining(says) as string,
      });
      expect(alarmsOf(one, 'poll_failing')).toMatchObject([
        { refusal: 'misconfigured', message: expect.stringContaining(says) as string },
      ]);
    },
  );

  const hooks: readonly (readonly [string, (poll: Poll) => unknown, string])[] = [
    [
      'throws',
      () => {
        throw new Error('no gauge');
      },
      'onPoll failed: no gauge',
    ],
    ['rejects', async () => Promise.reject(new Error('no gauge')), 'onPoll failed: no gauge'],
    ['gives a function', () => () => undefined, 'onPoll failed: it returned a function'],
    ['is pollMetrics itself', pollMetrics as never, 'Pass what it returns: onPoll: pollMetrics().'],
  ];
  it.each(hooks)(
    'an onPoll that %s changes no poll, and is told once a minute',
    async (_what, onPoll, says) => {
      const lines: string[] = [];
      const logger = {
        debug: () => undefined,
        info: () => undefined,
        warn: (_fields: object, message: string) => void lines.push(message),
        error: () => undefined,
      };
      const one = await at.process({ onPoll, fastMs: 20 * S }, { logger });
      await submitted(one, 'task-1');
      await one.poller.start();
      await at.clock.pass(2 * MINUTE);
      expect(times()).toHaveLength(6);
      const told = lines.filter((line) => line.startsWith('onPoll'));
      expect(told).toHaveLength(2);
      expect(told[0]).toContain(says);
    },
  );
});
