import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  type Alarm,
  type CallSeller,
  createRegistrations,
  type JsonObject,
  type OperationName,
  type Registrations,
  SellerBusyError,
} from '../../src/registrations/index.ts';
import type { Observe } from '../../src/index.ts';
import {
  LOOK_MS,
  type Operation,
  registrationsOf,
  type RepeaterNews,
  repeaterOf,
} from '../../src/registrations/for-tests.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createMemoryState } from '../../src/stores/for-tests.ts';
import { aborted, counted, FOREIGN, hashes, NEWEST, SETS_LOOK_MS, withoutSets } from './kit.ts';
import { anyClient, startBy } from '../support/any-client.ts';

const CALL_MS = 60_000;
const request = {
  agentUrl: 'https://seller.example/mcp',
  taskType: 'create_media_buy',
  arguments: { budget: 1 },
};

/** A receiver has them all; no answer here is an end. */
const noEnds: Observe = () => expect.fail('nothing is observed');

/** Processes on one store; time passes while one of them waits, and in no other way. */
function world() {
  const state = createMemoryState();
  const randomBytes = counted();
  let offsetMs = 0;
  let ids = 0;
  let stands = false;
  const waits: number[] = [];
  const alarms: Alarm[] = [];
  const lines: string[] = [];
  const logger = {
    debug() {},
    info() {},
    error() {},
    warn: (_fields: object, line: string) => void lines.push(line),
  };
  const process = (secret = NEWEST, baseUrl = 'https://buyer.example/webhooks'): Registrations => {
    const made = registrationsOf(
      {
        call: anyClient,
        store: withoutSets(memoryStore({ state, clockOffsetMs: () => offsetMs })),
        baseUrl,
        secrets: [secret],
        callMs: CALL_MS,
        logger,
        onAlarm: (alarm) => void alarms.push(alarm),
      },
      {
        hashes,
        randomBytes,
        newId: () => `id-${(ids += 1)}`,
        now: () => offsetMs,
        sleep: async (ms, signal) => {
          if (ms === SETS_LOOK_MS) return aborted(signal);
          await turn();
          // The deadline of a call: it is over before.
          if (ms > LOOK_MS || signal?.aborted) return signal?.aborted ? undefined : new Promise(() => {});
          waits.push(ms);
          if (!stands) offsetMs += ms;
        },
      },
    );
    made.observeBy?.(noEnds, () => {});
    return made;
  };
  return {
    process,
    waits,
    alarms,
    lines,
    pass: (ms: number) => (offsetMs += ms),
    dueAt: ({ agentUrl, operationId }: OperationName) =>
      memoryStore({ state }).registrations?.run(
        agentUrl,
        (rows) => rows.get('operation', operationId)?.dueAt,
      ),
    /** From now on: where two processes are at work, one's waiting would be time that the other's calls take. */
    stand: () => (stands = true),
  };
}

let at: ReturnType<typeof world>;
let one: Registrations;
let two: Registrations;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'] });
  at = world();
  [one, two] = [at.process(), at.process()];
});
afterEach(async () => {
  await Promise.all([one.stop(), two.stop()]);
  vi.useRealTimers();
});

/** Until so many calls have come. */
function collecting(
  count: number,
  answer: CallSeller = async () => ({ status: 'submitted', task_id: 'task-1' }),
) {
  const calls: JsonObject[] = [];
  let done = (): void => {};
  const all = new Promise<void>((resolve) => (done = resolve));
  const call: CallSeller = async (agentUrl, operation, args, options) => {
    calls.push(args);
    if (calls.length === count) done();
    return answer(agentUrl, operation, args, options);
  };
  return { call, calls, all };
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await turn();
}

describe('start', () => {
  it('calls for a process that died, byte for byte, once, and settles it', async () => {
    const dead = await one.create(request);
    const { call, calls, all } = collecting(1);
    void startBy(two, call);
    await all;
    await until(async () => (await one.get(dead))?.state === 'open');
    expect(calls).toEqual([dead.toolArguments]);
    // Long enough for many more looks.
    const looks = at.waits.length;
    await until(async () => at.waits.length > looks + 20);
    expect(calls).toHaveLength(1);
  });

  it('in two processes: each operation is called by one', async () => {
    const made = await Promise.all(Array.from({ length: 25 }, () => one.create(request)));
    const { call, calls, all } = collecting(25);
    at.pass(CALL_MS);
    at.stand();
    void startBy(one, call);
    void startBy(two, call);
    await all;
    await until(async () => (await one.list({ state: 'open', limit: 100 })).operations.length === 25);
    expect(new Set(calls.map((args) => args['idempotency_key'])).size).toBe(25);
    expect(calls).toHaveLength(made.length);
  });

  it('goes on where a call fails, and calls again under the same key', async () => {
    const made = await one.create(request);
    let failures = 2;
    const { call, calls, all } = collecting(3, async () => {
      if ((failures -= 1) >= 0) throw new Error('socket hang up');
      return { status: 'submitted', task_id: 'task-1' };
    });
    void startBy(two, call);
    await all;
    await until(async () => (await one.get(made))?.state === 'open');
    expect(calls).toEqual([made.toolArguments, made.toolArguments, made.toolArguments]);
    const line = 'A call is repeated later: it was not answered. socket hang up';
    expect([at.lines, at.alarms]).toEqual([[line, line], []]);
  });

  it('waits as long as a busy seller asks for', async () => {
    await one.create(request);
    const calledAt: number[] = [];
    const { call, all } = collecting(3, async () => {
      calledAt.push(at.pass(0));
      throw new SellerBusyError(429, 10 * CALL_MS);
    });
    void startBy(two, call);
    await all;
    const gaps = calledAt.slice(1).map((time, nth) => time - (calledAt[nth] ?? 0));
    for (const gap of gaps) {
      expect(gap).toBeGreaterThanOrEqual(10 * CALL_MS);
      expect(gap).toBeLessThanOrEqual(10 * CALL_MS + LOOK_MS);
    }
  });

  it.each([NaN, -1, CALL_MS + 0.5])(
    'a pause of %s ms, which no row can keep, costs no call and no message',
    async (ms) => {
      const made = await one.create(request);
      const { call, all } = collecting(2, async () => {
        throw new SellerBusyError(429, ms);
      });
      void startBy(two, call);
      await all;
      await two.stop();
      expect((await one.get(made))?.state).toBe('calling');
      // The last call may have been stopped.
      expect(at.lines[0]).toContain('The seller answers 429');
      expect(await at.dueAt(made)).toSatisfy(Number.isSafeInteger);
    },
  );

  it('of a seller that refuses it is an alarm, and orphaned: an attempt before may have been done', async () => {
    const made = await one.create(request);
    const { call } = collecting(1, async () => ({ error: { code: 'INVALID_REQUEST', message: 'a budget' } }));
    void startBy(two, call);
    await until(async () => at.alarms.length > 0);
    const { agentUrl: sender, operationId } = made;
    expect(at.alarms).toMatchObject([
      { code: 'operation_refused', sender, operationId, refusal: 'INVALID_REQUEST' },
    ]);
    expect((await one.get(made))?.state).toBe('orphaned');
  });

  it('of a seller that refuses the credentials is an alarm, and goes on: the call before may have been done', async () => {
    const made = await one.create(request);
    let refusals = 2;
    const { call, calls, all } = collecting(3, async () =>
      (refusals -= 1) >= 0
        ? { error: { code: 'AUTH_INVALID', message: 'expired' } }
        : { status: 'submitted', task_id: 'task-1' },
    );
    void startBy(two, call);
    await all;
    await until(async () => (await one.get(made))?.state === 'open');
    expect(calls).toEqual([made.toolArguments, made.toolArguments, made.toolArguments]);
    const [alarm] = at.alarms;
    expect(alarm).toMatchObject({ code: 'operation_refused', refusal: 'AUTH_INVALID' });
    expect(alarm?.message).toContain('it is repeated');
  });

  it('of a seller that has had a call by this key, and says that it was another one: orphaned, with an alarm', async () => {
    const made = await one.create(request);
    const { call } = collecting(1, async () => ({
      error: { code: 'IDEMPOTENCY_CONFLICT', message: 'other arguments' },
    }));
    void startBy(two, call);
    await until(async () => at.alarms.length > 0);
    const { agentUrl: sender, operationId } = made;
    expect(at.alarms).toMatchObject([{ code: 'operation_orphaned', sender, operationId }]);
    expect(at.alarms[0]?.message).toContain('IDEMPOTENCY_CONFLICT: other arguments');
    expect((await one.get(made))?.state).toBe('orphaned');
  });

  it('calls at the same URL where baseUrl is another one by now', async () => {
    const dead = await one.create(request);
    const moved = at.process(NEWEST, 'https://new.buyer.example/hooks');
    const { call, calls, all } = collecting(1);
    void startBy(moved, call);
    await all;
    await moved.stop();
    expect(calls).toEqual([dead.toolArguments]);
    const anew = await moved.create(request);
    expect(JSON.stringify(anew.toolArguments)).toContain('https://new.buyer.example/hooks/');
  });

  it('needs a receiver: an answer that ends its call would reach no handler', async () => {
    const alone = createRegistrations({
      call: anyClient,
      store: memoryStore(),
      baseUrl: 'https://buyer.example/webhooks',
      secrets: [NEWEST],
    });
    await expect(alone.start()).rejects.toThrow(/start: no receiver of this process/);
  });

  it('a refusal that comes after the answer of another process is no alarm', async () => {
    const made = await one.create(request);
    const { call, all } = collecting(1, async () => {
      await made.settle({ status: 'submitted', task_id: 'task-1' });
      return { error: { code: 'IDEMPOTENCY_CONFLICT', message: 'late' } };
    });
    void startBy(two, call);
    await all;
    const looks = at.waits.length;
    await until(async () => at.waits.length > looks + 2);
    expect(at.alarms).toEqual([]);
    expect((await one.get(made))?.state).toBe('open');
  });

  it('tells of what it cannot call: a request key that is over, a secret that is missing', async () => {
    const made = await one.create({ ...request, requestKeyMs: CALL_MS });
    const kept = await at.process(FOREIGN).create({ ...request, agentUrl: 'https://foreign.example/mcp' });
    const { call, calls } = collecting(1);
    void startBy(two, call);
    await until(async () => at.alarms.length > 0 && at.lines.length > 1);
    await two.stop();
    expect(calls).toEqual([]);
    const { agentUrl: sender, operationId, taskType } = { ...request, ...made };
    const message =
      'It is unknown whether create_media_buy was done: the call was not answered, and cannot be repeated. Ask the seller.';
    expect(at.alarms).toMatchObject([{ code: 'operation_orphaned', sender, operationId, taskType, message }]);
    expect(at.lines).toContainEqual(expect.stringContaining('an unknown secret'));
    expect((await one.get(kept))?.state).toBe('calling');
  });

  it('does not call what was settled in time, and looks no more often than it has to', async () => {
    const made = await one.create(request);
    await made.settle({ status: 'submitted', task_id: 'task-1' });
    const { call, calls } = collecting(1);
    void startBy(two, call);
    await until(async () => at.waits.length > 10);
    expect(calls).toEqual([]);
    expect(new Set(at.waits)).toEqual(new Set([LOOK_MS]));
  });
});

describe('stop', () => {
  it('tells the call that runs, waits for it, and begins none', async () => {
    await one.create(request);
    await one.create({ ...request, agentUrl: 'https://other.example/mcp' });
    let ended = 0;
    const { call, all } = collecting(2, (_agentUrl, _operation, _args, { signal }) => {
      return new Promise((_resolve, reject) => {
        signal?.addEventListener('abort', () => {
          ended += 1;
          reject(new Error('stopped'));
        });
      });
    });
    void startBy(two, call);
    await all;
    await two.stop();
    expect(ended).toBe(2);
    expect((await one.list({ state: 'calling', limit: 9 })).operations).toHaveLength(2);
  });

  it('is over at once where nothing was started', async () => {
    await one.stop();
    expect(at.waits).toEqual([]);
  });

  it('may be followed by a start, ten times, and what is due is called in each of them', async () => {
    for (let round = 0; round < 10; round += 1) {
      const registration = await one.create(request);
      const { call, all } = collecting(1);
      await startBy(two, call);
      await startBy(two, call);
      at.pass(CALL_MS);
      await all;
      await Promise.all([two.stop(), two.stop()]);
      expect((await two.get(registration))?.state).toBe('open');
    }
  });

  it('that comes during a start, or before the one that follows it, is decided by the last call', async () => {
    const { call, calls } = collecting(1);
    void startBy(two, call);
    await two.stop();
    await one.create(request);
    at.pass(CALL_MS);
    expect(calls).toEqual([]);
    void two.stop();
    const { call: again, all } = collecting(1);
    await startBy(two, again);
    await all;
  });
});

describe('a call that takes too long', () => {
  it('is told to stop, before another process makes it too', async () => {
    const deadlines: (() => void)[] = [];
    const news: RepeaterNews[] = [];
    let reason: unknown;
    let looks = 0;
    const operation = { agentUrl: 'https://seller.example', operationId: 'id' } as Operation;
    const repeater = repeaterOf({
      due: async () => ({ operations: (looks += 1) === 1 ? [operation] : [], orphaned: [], failed: [] }),
      make: (_operation, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject((reason = signal.reason)));
        }),
      tell: async (one) => void news.push(one),
      sleep: async (ms, signal) => {
        const over = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
        if (ms !== 45_000) return over;
        return Promise.race([over, new Promise<void>((resolve) => deadlines.push(resolve))]);
      },
      deadlineMs: 45_000,
    });
    const stopping = new AbortController();
    const running = repeater.run(stopping.signal);
    await until(async () => deadlines.length === 1);
    expect(news).toEqual([]);
    deadlines[0]?.();
    await until(async () => news.length === 1);
    expect(reason).toMatchObject({ name: 'TimeoutError' });
    expect(news).toEqual([{ kind: 'failed', operation, error: reason }]);
    stopping.abort();
    await running;
  });

  it('and does not hold up the others, or the end, where it does not heed that', async () => {
    const made: string[] = [];
    const deadlines: (() => void)[] = [];
    const operations = ['a', 'b'].map(
      (operationId) => ({ agentUrl: 'https://seller.example', operationId }) as Operation,
    );
    const repeater = repeaterOf({
      due: async () => ({ operations: operations.splice(0, 1), orphaned: [], failed: [] }),
      make: async ({ operationId }) => {
        made.push(operationId);
        if (operationId === 'a') await new Promise(() => {});
      },
      tell: async () => {},
      sleep: async (ms, signal) => {
        const over = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
        if (ms !== 45_000) return turn();
        return Promise.race([over, new Promise<void>((resolve) => deadlines.push(resolve))]);
      },
      deadlineMs: 45_000,
    });
    const stopping = new AbortController();
    const running = repeater.run(stopping.signal);
    await until(async () => deadlines.length === 1);
    deadlines[0]?.();
    await until(async () => made.includes('b'));
    stopping.abort();
    await running;
  });

  it('and a store that cannot be asked is told of, and asked again', async () => {
    const news: RepeaterNews[] = [];
    const waits: number[] = [];
    const repeater = repeaterOf({
      due: () => Promise.reject(new Error('away')),
      make: async () => {},
      tell: async (one) => void news.push(one),
      sleep: async (ms) => {
        await turn();
        waits.push(ms);
      },
      deadlineMs: 1,
    });
    const stopping = new AbortController();
    const running = repeater.run(stopping.signal);
    await until(async () => waits.length >= 3);
    stopping.abort();
    await running;
    expect(news[0]).toMatchObject({ kind: 'store', error: { message: 'away' } });
    expect(new Set(waits)).toEqual(new Set([LOOK_MS]));
  });
});
