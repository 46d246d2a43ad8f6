import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Alarm } from '../../src/index.ts';
import {
  AnswerRefusedError,
  type JsonObject,
  type Registrations,
  SellerBusyError,
} from '../../src/registrations/index.ts';
import { LOOK_MS, registrationsOf } from '../../src/registrations/for-tests.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createMemoryState } from '../../src/stores/for-tests.ts';
import { SILENT_LOGGER } from '../support/silent-logger.ts';
import { aborted, counted, hashes, NEWEST, SETS_LOOK_MS, withoutSets } from './kit.ts';
import { anyClient, callBy, startBy } from '../support/any-client.ts';

/* calls.md §2.5 to §2.9: what an error does to a call, by the attempts before it, and that a refused purchase is called once. */

const CALL_MS = 120_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const BUDGET = { code: 'BUDGET_TOO_LOW', message: 'at least 500', recovery: 'correctable' };
const BUSY = { code: 'RATE_LIMITED', message: 'slower', recovery: 'transient', retry_after: 4 };
const NO_PUSH = {
  code: 'INVALID_REQUEST',
  message: 'not on this operation',
  field: 'push_notification_config',
};

/** What the seller says to one attempt; an error is thrown by the client. */
type Says = object | Error;

const says = (error: object, more: object = {}): object => ({ adcp_error: error, ...more });
const lost = (): Error => new Error('socket hang up');
const BEGUN = { status: 'submitted', task_id: 'task-1' };

/** A buyer on a memory store, whose day passes while it waits. */
function world() {
  const state = createMemoryState();
  let offsetMs = 0;
  let ids = 0;
  const alarms: Alarm[] = [];
  const process = (): Registrations => {
    const made = registrationsOf(
      {
        call: anyClient,
        store: withoutSets(memoryStore({ state, clockOffsetMs: () => offsetMs })),
        baseUrl: 'https://buyer.example/webhooks',
        secrets: [NEWEST],
        callMs: CALL_MS,
        logger: SILENT_LOGGER,
        onAlarm: (alarm) => void alarms.push(alarm),
      },
      {
        hashes,
        randomBytes: counted(),
        newId: () => `id-${(ids += 1)}`,
        now: () => offsetMs,
        sleep: async (ms, signal) => {
          if (ms === SETS_LOOK_MS) return aborted(signal);
          await turn();
          // The deadline of a call: it is over before.
          if (ms > LOOK_MS || signal?.aborted) return signal?.aborted ? undefined : new Promise(() => {});
          offsetMs += ms;
        },
      },
    );
    made.observeBy?.(
      () => expect.fail('no answer here is an end'),
      () => {},
    );
    return made;
  };
  return { process, alarms, now: () => offsetMs };
}

let at: ReturnType<typeof world>;
let buyer: Registrations;
let repeating: Registrations;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'] });
  at = world();
  [buyer, repeating] = [at.process(), at.process()];
});
afterEach(async () => {
  await repeating.stop();
  vi.useRealTimers();
});

const REQUEST = {
  agentUrl: 'https://seller.example/mcp',
  taskType: 'create_media_buy',
  arguments: { budget: 1 },
};

/**
 * A day of a call: its own process makes the first attempt, others are made by another process. After what it was told to say the
 * seller would place the order.
 */
async function aDayOf(script: readonly Says[], untilMs = DAY_MS + CALL_MS) {
  const calls: JsonObject[] = [];
  const times: number[] = [];
  const call = async (_url: string, _operation: string, args: JsonObject): Promise<unknown> => {
    const said = script[calls.length] ?? { status: 'submitted', task_id: 'placed' };
    calls.push(args);
    times.push(at.now());
    if (said instanceof Error) throw said;
    return said;
  };
  const made = await buyer.create(REQUEST);
  const error: unknown = await callBy(made, call).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  void startBy(repeating, call);
  while (at.now() < untilMs) await turn();
  await repeating.stop();
  const is = await buyer.get(made);
  return {
    error,
    calls,
    gaps: times.slice(1).map((time, nth) => time - (times[nth] ?? 0)),
    keys: new Set(calls.map((args) => args['idempotency_key'])).size,
    seen: [is?.state, calls.length, at.alarms.map(({ code }) => code)] as const,
  };
}

const REFUSED = ['operation_refused'] as const;

describe('a simulated day of a purchase', () => {
  it.each([
    ['refused at once', [says(BUDGET)], 'refused', 1, []],
    ['refused in words of no protocol', [says({ code: 'NO_WAY', message: 'm' })], 'refused', 1, REFUSED],
    ['refused for good by its recovery', [says({ recovery: 'terminal', message: 'm' })], 'refused', 1, []],
    ['refused for the credentials', [says({ code: 'AUTH_INVALID', message: 'm' })], 'refused', 1, []],
    ['refused after a pause', [says(BUSY), says(BUDGET)], 'refused', 2, REFUSED],
    ['refused after two pauses', [says(BUSY), says(BUSY), says(BUDGET)], 'refused', 3, REFUSED],
    ['refused after 429', [new SellerBusyError(429, 4000), says(BUDGET)], 'refused', 2, REFUSED],
    ['refused after 503', [new SellerBusyError(503, 4000), says(BUDGET)], 'orphaned', 2, REFUSED],
    ['refused after no answer', [lost(), says(BUDGET)], 'orphaned', 2, REFUSED],
    [
      'refused after an answer that was refused',
      [new AnswerRefusedError('it is too deep'), says(BUDGET)],
      'orphaned',
      2,
      ['answer_refused', ...REFUSED],
    ],
    ['refused after no answer and a pause', [lost(), says(BUSY), says(BUDGET)], 'orphaned', 3, REFUSED],
    ['refused after a pause and no answer', [says(BUSY), lost(), says(BUDGET)], 'orphaned', 3, REFUSED],
    [
      'refused while another attempt is under way',
      [says({ code: 'IDEMPOTENCY_IN_FLIGHT', message: 'm', retry_after: 1 }), says(BUDGET)],
      'orphaned',
      2,
      REFUSED,
    ],
    [
      'another one by the same key',
      [lost(), says({ code: 'IDEMPOTENCY_CONFLICT', message: 'm' })],
      'orphaned',
      2,
      ['operation_orphaned'],
    ],
    [
      'refused for the credentials after no answer',
      [lost(), says({ code: 'AUTH_MISSING', message: 'm' }), BEGUN],
      'open',
      3,
      REFUSED,
    ],
    ['unknown after no answer', [lost(), says({ code: 'NO_WAY', message: 'm' })], 'orphaned', 2, REFUSED],
    ['refused, and made all the same', [says(BUDGET, { media_buy_id: 'mb-1' })], 'orphaned', 1, REFUSED],
    ['refused in a field of its own', [says({ ...NO_PUSH, field: 'packages[0]' })], 'refused', 1, []],
    [
      'refused for its reporting_webhook',
      [says({ ...NO_PUSH, field: 'reporting_webhook.url' })],
      'refused',
      1,
      [],
    ],
    ['refused with and without the registration', [says(NO_PUSH), says(BUDGET)], 'refused', 2, []],
    ['the registration refused after no answer', [lost(), says(NO_PUSH)], 'orphaned', 2, REFUSED],
    ['not answered twice', [lost(), { error: { code: -32_603, message: 'm' } }, BEGUN], 'open', 3, []],
    ['nothing of a result, then begun', [{}, BEGUN], 'open', 2, []],
  ] as const)('%s', async (_name, script, state, count, alarms) => {
    expect((await aDayOf(script)).seen).toEqual([state, count, alarms]);
  });

  it('the caller is given what the seller says', async () => {
    const { error } = await aDayOf(
      [says({ ...BUDGET, field: 'budget', details: { minimum: 500 } })],
      CALL_MS,
    );
    expect(error).toMatchObject({
      name: 'SellerError',
      code: 'BUDGET_TOO_LOW',
      recovery: 'correctable',
      field: 'budget',
      details: { minimum: 500 },
    });
  });

  it('a pause is as long as the seller asks for, by the same key', async () => {
    const { gaps, keys } = await aDayOf([says(BUSY), says({ ...BUSY, retry_after: 900 }), BEGUN], HOUR_MS);
    expect(keys).toBe(1);
    for (const [nth, ms] of [4000, 900_000].entries()) {
      expect(gaps[nth]).toBeGreaterThanOrEqual(ms);
      expect(gaps[nth]).toBeLessThanOrEqual(ms + LOOK_MS);
    }
  });

  it('without a pause of its own a transient error is repeated as often as any', async () => {
    const { gaps } = await aDayOf([says({ code: 'SERVICE_UNAVAILABLE', message: 'm' }), BEGUN], HOUR_MS);
    expect(gaps[0]).toBeGreaterThanOrEqual(CALL_MS);
  });

  it.each([
    { message: 'no webhooks on this operation' },
    { message: 'create_media_buy is synchronous only' },
    { message: 'm', field: 'configuration.pushNotificationConfig' },
    { message: 'operation_id is missing' },
    { message: 'm', issues: [{ pointer: '/push_notification_config/url', message: 'm' }] },
  ])('the registration is refused by %j: once more without it, under another key', async (said) => {
    const { calls, keys, seen } = await aDayOf([says({ code: 'INVALID_REQUEST', ...said }), BEGUN], CALL_MS);
    expect([keys, seen]).toEqual([2, ['open', 2, []]]);
    expect(calls.map((args) => 'push_notification_config' in args)).toEqual([true, false]);
  });
});

describe('an attempt of its owner that is not answered, while another process repeats the call', () => {
  /** Its owner is told to wait, and tries again. @returns that second attempt. */
  async function toldToWait() {
    const made = await buyer.create(REQUEST);
    const script: Says[] = [says(BUSY), lost()];
    const call = async (): Promise<unknown> => {
      const said = script.shift();
      if (said instanceof Error) throw said;
      return said;
    };
    await expect(callBy(made, call)).rejects.toMatchObject({ code: 'RATE_LIMITED' });
    return { made, again: () => expect(callBy(made, call)).rejects.toThrow('socket hang up') };
  }
  const LATER = says({ ...BUSY, retry_after: 60 });

  it.each(['while that process waits', 'while that process is calling'])(
    'leaves it unknown whether it was done, also if it comes %s and a refusal follows',
    async (when) => {
      const { made, again } = await toldToWait();
      let calls = 0;
      const waiting: (() => void)[] = [];
      void startBy(repeating, async () => {
        calls += 1;
        if (calls > 1) return says(BUDGET);
        return new Promise<object>((resolve) => waiting.push(() => resolve(LATER)));
      });
      while (waiting.length === 0) await turn();
      if (when === 'while that process is calling') await again();
      waiting[0]?.();
      // It writes down for how long it waits.
      for (let turns = 0; turns < 2; turns += 1) await turn();
      expect(calls).toBe(1);
      if (when === 'while that process waits') await again();
      while ((await buyer.get(made))?.state === 'calling') await turn();
      expect((await buyer.get(made))?.state).toBe('orphaned');
    },
  );
});

it('an attempt that is under way may be done: the error of another one refuses nothing', async () => {
  const made = await buyer.create(REQUEST);
  let end = (): void => {};
  const first = callBy(made, () => new Promise((_resolve, reject) => (end = () => reject(lost()))));
  const second = callBy(made, async () => says(BUDGET));
  await expect(second).rejects.toMatchObject({ code: 'BUDGET_TOO_LOW' });
  expect((await buyer.get(made))?.state).toBe('orphaned');
  end();
  await expect(first).rejects.toThrow('socket');
});

it('by hand an error is a refusal too, unless a call of it was not answered', async () => {
  const one = await buyer.create(REQUEST);
  await expect(one.settle(says(BUDGET))).rejects.toMatchObject({ code: 'BUDGET_TOO_LOW' });
  expect((await buyer.get(one))?.state).toBe('refused');
  const two = await buyer.create(REQUEST);
  await expect(callBy(two, () => Promise.reject(lost()))).rejects.toThrow('socket');
  await expect(two.settle(says(BUDGET))).rejects.toMatchObject({ code: 'BUDGET_TOO_LOW' });
  expect((await buyer.get(two))?.state).toBe('orphaned');
});

describe('an answer that is not taken', () => {
  /** Calls twice by the same registration, with what the seller says to each. */
  async function twice(first: unknown) {
    const script = [first, says(BUDGET)];
    const made = await buyer.create(REQUEST);
    const call = async (): Promise<unknown> => script.shift();
    await expect(callBy(made, call)).rejects.toThrow(/it is unknown whether|refused/);
    await expect(callBy(made, call)).rejects.toMatchObject({ code: 'BUDGET_TOO_LOW' });
    return [(await buyer.get(made))?.state, ...at.alarms.map(({ code }) => code)];
  }

  it.each([
    ['an error that does not say what it is', { error: 'boom' }],
    ['nothing of a result', {}],
    ['a status of nothing', { status: 'pending_approval' }],
  ])('may have been done: %s, then a refusal', async (_name, first) => {
    expect(await twice(first)).toEqual(['orphaned', 'operation_refused']);
  });

  it('may have been done: one that is too deep, then a refusal', async () => {
    let deep: object = {};
    for (let levels = 300; levels > 0; levels -= 1) deep = { deep };
    expect(await twice(deep)).toEqual(['orphaned', 'answer_refused', 'operation_refused']);
  });

  it('may have been done: one that cannot be read, then a refusal', async () => {
    const unreadable = {
      get status(): string {
        throw new TypeError('no status');
      },
    };
    expect(await twice(unreadable)).toEqual(['orphaned', 'answer_refused', 'operation_refused']);
  });

  it('may have been done: settled by hand too', async () => {
    const made = await buyer.create(REQUEST);
    await expect(made.settle({ error: 'boom' })).rejects.toThrow('it is unknown whether');
    await expect(made.settle(says(BUDGET))).rejects.toMatchObject({ code: 'BUDGET_TOO_LOW' });
    expect((await buyer.get(made))?.state).toBe('orphaned');
  });
});
