import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  agentRequest,
  type Operation,
  type Operations,
  operationsOf,
  operationToken,
  routesOf,
  secretsOf,
  toolArguments,
} from '../../src/registrations/for-tests.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createMemoryState } from '../../src/stores/for-tests.ts';
import type { StoreRegistrations } from '../../src/stores/index.ts';
import { counted, FOREIGN, hashes, NEWEST, OLDER, WHOLE } from './kit.ts';

const SELLER = 'https://seller.example/mcp';
const OTHER = 'https://other.example/mcp';
const CALL_MS = 60_000;
const DAY_MS = 86_400_000;
const RETENTION_MS = 30 * DAY_MS;
const MAX_OPEN = 120;

const request = {
  agentUrl: SELLER,
  taskType: 'create_media_buy',
  arguments: { budget: 1000, packages: [{ id: 'p1' }] },
  context: { trace: 't-1' },
  ref: 'order 7',
} as const;

/** Processes on one store, whose clock the test moves. */
function world() {
  const state = createMemoryState();
  const randomBytes = counted();
  let offsetMs = 0;
  let ids = 0;
  let afterDue = async (): Promise<void> => {};
  let beforeWatches: (() => Promise<void>) | undefined;
  let writing = Promise.resolve();
  const process = (...given: string[]): Operations => {
    const { registrations: stored } = memoryStore({ state, clockOffsetMs: () => offsetMs });
    if (!stored) return expect.fail('memory has them');
    const registrations: StoreRegistrations = {
      ...stored,
      due: async (query) => {
        const found = await stored.due(query);
        await afterDue();
        return found;
      },
      page: async (query) => {
        const then = query.kind === 'watch' ? beforeWatches : undefined;
        if (then) beforeWatches = undefined;
        await then?.();
        return stored.page(query);
      },
    };
    const secrets = secretsOf(given.length > 0 ? given : [NEWEST, OLDER], hashes);
    const parts = { registrations, secrets, hashes, randomBytes };
    const routes = routesOf({
      ...parts,
      baseUrls: ['https://buyer.example/webhooks'],
      allowLoopback: false,
      now: () => 0,
      sleep: async () => {},
    });
    const newId = (): string => `0000000${(ids += 1)}-0000-4000-8000-000000000000`.slice(-36);
    return operationsOf({
      ...parts,
      registrations: {
        ...registrations,
        run: async (sender, plan) => {
          await writing;
          return registrations.run(sender, plan);
        },
      },
      routes,
      newId,
      callMs: CALL_MS,
      retentionMs: RETENTION_MS,
      maxOpen: MAX_OPEN,
      now: () => 0,
    });
  };
  return {
    state,
    process,
    pass: (ms: number) => (offsetMs += ms),
    afterDue: (then: () => Promise<void>) => (afterDue = then),
    beforeWatches: (then: () => Promise<void>) => (beforeWatches = then),
    /** Operations are written, and changed, once what it returns was called. */
    holdWriting: () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      writing = promise;
      return resolve;
    },
  };
}

let at: ReturnType<typeof world>;
let one: Operations;
let two: Operations;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'] });
  at = world();
  [one, two] = [at.process(), at.process()];
});

afterEach(() => {
  vi.useRealTimers();
});

/** What is on the wire, over both transports. */
const wire = ({ call }: Operation): string =>
  JSON.stringify([toolArguments(call), agentRequest(call, '0.3'), agentRequest(call, '1.0')]);

/** All that the store keeps, as text. */
const kept = (): string =>
  JSON.stringify(
    [...at.state.senders.values()].map(({ registrations }) => [...registrations.operation.rows.values()]),
  );

describe('create', () => {
  it('is durable before it resolves, and says what is to be sent', async () => {
    const made = await one.create(request);
    expect(await two.get(made)).toEqual({
      agentUrl: SELLER,
      operationId: made.operationId,
      taskType: 'create_media_buy',
      state: 'calling',
      ref: 'order 7',
      context: { trace: 't-1' },
      createdAt: expect.any(Number) as number,
    });
    expect(toolArguments(made.call)).toEqual({
      ...request.arguments,
      context: request.context,
      idempotency_key: made.call.requestKey,
      push_notification_config: {
        url: expect.stringMatching(/^https:\/\/buyer\.example\/webhooks\/[\w-]{48}$/) as string,
        operation_id: made.operationId,
      },
    });
    expect(made.call.requestKey).not.toBe(made.operationId);
  });

  it('keeps the arguments encrypted, until the seller has answered', async () => {
    const made = await one.create({ ...request, arguments: { marker: 'what-nobody-may-read' } });
    expect(kept()).not.toContain('what-nobody-may-read');
    expect(kept()).toContain('sealed');
    await one.settle(made, { status: 'submitted', taskId: 'task-1' });
    expect(kept()).not.toContain('sealed');
  });

  it('asks for legacy authentication and a token where it is told to, and keeps the token nowhere', async () => {
    const made = await one.create({ ...request, scheme: 'HMAC-SHA256', token: true });
    const token = operationToken(secretsOf([NEWEST], hashes).newest, hashes, made.operationId);
    expect(made.call.destination).toMatchObject({
      token,
      authentication: { scheme: 'HMAC-SHA256', credentials: expect.stringMatching(/^[\w-]{43}$/) as string },
    });
    expect(kept()).not.toContain(token);
  });

  it.each([
    [{ taskType: '' }, 'request_invalid'],
    [{ taskType: 'a b' }, 'request_invalid'],
    [{ arguments: { at: new Date(0) } }, 'request_invalid'],
    [{ arguments: { a: 'x'.repeat(256 * 1024) } }, 'request_too_large'],
    [{ arguments: { push_notification_config: {} } }, 'request_invalid'],
    [{ context: { a: 'x'.repeat(16 * 1024) } }, 'request_too_large'],
    [{ ref: 'x'.repeat(1025) }, 'request_too_large'],
  ])('refuses %j before anything is kept', async (wrong, code) => {
    await expect(one.create({ ...request, ...wrong } as typeof request)).rejects.toMatchObject({ code });
    expect(at.state.senders.size).toBe(0);
  });

  it('is of one seller: another one sees nothing of it, nor ends it', async () => {
    const made = await one.create(request);
    const { operationId } = made;
    const others = { agentUrl: OTHER, operationId };
    expect(await one.get(others)).toBeUndefined();
    expect(await one.settle(others, { status: 'completed' })).toBe('absent');
    expect(await one.refuse({ ...made, ...others })).toBeUndefined();
    expect((await one.get({ agentUrl: SELLER, operationId }))?.state).toBe('calling');
  });
});

describe('a caller that dies', () => {
  it.each([{}, { token: true, scheme: 'Bearer' }, { context: undefined, ref: undefined }])(
    'is followed by another process, which makes the same call byte for byte: %j',
    async (more) => {
      const { context: _context, ref: _ref, ...bare } = request;
      const made = await one.create('context' in more ? bare : ({ ...request, ...more } as typeof request));
      expect((await two.due(9, [])).operations).toEqual([]);
      at.pass(CALL_MS);
      const { operations, orphaned, failed } = await two.due(9, []);
      expect(operations.map(wire)).toEqual([wire(made)]);
      expect([orphaned, failed]).toEqual([[], []]);
      // The next one only when this one has had its time.
      expect((await one.due(9, [])).operations).toEqual([]);
      at.pass(CALL_MS);
      expect((await one.due(9, [])).operations.map(wire)).toEqual([wire(made)]);
      expect(await two.settle(made, { status: 'working', taskId: 'task-1' })).toBe('settled');
      at.pass(CALL_MS);
      expect((await one.due(9, [])).operations).toEqual([]);
    },
  );

  it('is followed by one that has a newer secret in front', async () => {
    const made = await at.process(OLDER).create({ ...request, token: true });
    at.pass(CALL_MS);
    expect((await one.due(9, [])).operations.map(wire)).toEqual([wire(made)]);
  });

  it('of several that look at once by one', async () => {
    for (let n = 0; n < 5; n += 1) await one.create(request);
    at.pass(CALL_MS);
    const came = await Promise.all([one, two, one, two].map((process) => process.due(9, [])));
    const given = came.flatMap(({ operations }) => operations.map(({ operationId }) => operationId));
    expect([given.length, new Set(given).size]).toEqual([5, 5]);
  });

  it('where a secret is missing: it comes again, with the reason', async () => {
    const made = await one.create(request);
    const without = at.process(FOREIGN);
    at.pass(CALL_MS);
    expect(await without.due(9, [])).toMatchObject({
      operations: [],
      orphaned: [],
      failed: [{ operationId: made.operationId, error: { code: 'secret_missing' } }],
    });
    at.pass(CALL_MS);
    expect((await one.due(9, [])).operations.map(wire)).toEqual([wire(made)]);
  });

  it.each([
    [DAY_MS, DAY_MS],
    [0, CALL_MS],
  ])(
    'and a request key of %i ms that is over: orphaned, once, and never called again',
    async (requestKeyMs, ms) => {
      const made = await one.create({ ...request, requestKeyMs });
      at.pass(ms);
      const { operations, orphaned } = await two.due(9, []);
      expect(operations).toEqual([]);
      expect(orphaned).toMatchObject([{ operationId: made.operationId, state: 'orphaned', ref: 'order 7' }]);
      at.pass(DAY_MS);
      expect(await two.due(9, [])).toEqual({ operations: [], orphaned: [], failed: [] });
      expect((await one.list({ state: 'orphaned', limit: 9 })).operations).toEqual(orphaned);
      // A late answer is welcome all the same.
      expect(await one.settle(made, { status: 'submitted', taskId: 'task-1' })).toBe('settled');
      expect((await one.list({ state: 'orphaned', limit: 9 })).operations).toEqual([]);
    },
  );

  it('and orphaned, is known for its time', async () => {
    const made = await one.create({ ...request, requestKeyMs: 0 });
    at.pass(CALL_MS);
    await two.due(9, []);
    // Nobody calls it any more.
    expect(kept()).not.toContain('sealed');
    at.pass(RETENTION_MS - 1);
    expect(await one.get(made)).toMatchObject({ state: 'orphaned' });
    at.pass(1);
    expect(await one.get(made)).toBeUndefined();
  });

  it('and what it had kept is no longer readable: orphaned', async () => {
    const made = await one.create(request);
    const rows = at.state.senders.get(SELLER)?.registrations.operation;
    const row = rows?.rows.get(made.operationId) ?? expect.fail('a row');
    const value = row.value
      .replace(/("sealed":"[\w-]{40})[\w-]/, '$1_')
      .replace(/("sealed":"[\w-]{44})[\w-]/, '$1-');
    expect(value).not.toBe(row.value);
    const { registrations } = memoryStore({ state: at.state });
    await registrations?.run(SELLER, (saving) => saving.save({ ...row, value }));
    at.pass(CALL_MS);
    expect((await two.due(9, [])).orphaned).toMatchObject([{ operationId: made.operationId }]);
  });
});

describe('create', () => {
  it.each([Number.NaN, Infinity, -1, '5'])('refuses requestKeyMs %s', async (requestKeyMs) => {
    const creating = one.create({ ...request, requestKeyMs: requestKeyMs as number });
    await expect(creating).rejects.toMatchObject({ code: 'request_invalid' });
  });
});

describe('rewrap', () => {
  it('encrypts arguments under the newest secret, and counts the tokens of older ones', async () => {
    const before = at.process(OLDER);
    const [plain, withToken] = [
      await before.create(request),
      await before.create({ ...request, token: true }),
    ];
    const settled = await before.create({ ...request, agentUrl: OTHER });
    await before.settle(settled, { status: 'submitted', taskId: 'task-1' });
    expect(await one.rewrap()).toEqual({ rewrapped: 2, needed: 1, ...WHOLE });
    expect(await one.rewrap()).toEqual({ rewrapped: 0, needed: 1, ...WHOLE });
    at.pass(CALL_MS);
    const { operations } = await two.due(9, []);
    expect(operations.map(wire).toSorted()).toEqual([plain, withToken].map(wire).toSorted());
    for (const { operationId, agentUrl } of [plain, withToken]) {
      await one.settle({ agentUrl, operationId }, { status: 'completed' });
    }
    expect(await one.rewrap()).toEqual({ rewrapped: 0, needed: 0, ...WHOLE });
  });

  it('leaves alone what is settled meanwhile', async () => {
    const made = await at.process(OLDER).create(request);
    const rewrapping = one.rewrap();
    await two.settle(made, { status: 'submitted', taskId: 'task-1' });
    await rewrapping;
    expect(await one.get(made)).toMatchObject({ state: 'open', taskId: 'task-1' });
  });
});

describe('maxOpen', () => {
  it('holds for those that are created at once, too', async () => {
    const results = await Promise.allSettled(Array.from({ length: 2 * MAX_OPEN }, () => one.create(request)));
    const created = results.filter(({ status }) => status === 'fulfilled').length;
    expect((await one.list({ state: 'calling', limit: 1000 })).operations).toHaveLength(created);
    expect(created).toBe(MAX_OPEN);
  });

  it('holds for those that the store has not written yet, too', async () => {
    const write = at.holdWriting();
    let refused = 0;
    const creating = Array.from({ length: 2 * MAX_OPEN }, async () =>
      one.create(request).catch(() => (refused += 1)),
    );
    await expect.poll(() => refused).toBe(MAX_OPEN);
    write();
    await Promise.all(creating);
    expect(refused).toBe(MAX_OPEN);
    expect((await one.list({ state: 'calling', limit: 1000 })).operations).toHaveLength(MAX_OPEN);
  });

  it('operations of a seller that have not ended are as many as it says; what ends makes room', async () => {
    const made: Operation[] = [];
    for (let n = 0; n < MAX_OPEN; n += 1) made.push(await one.create(request));
    const more = one.create(request);
    await expect(more).rejects.toMatchObject({ code: 'too_many_open' });
    await expect(more).rejects.toThrow(`${MAX_OPEN} operations of ${SELLER}`);
    await one.create({ ...request, agentUrl: OTHER });
    const [first] = made;
    if (!first) return expect.fail('one was made');
    await one.settle(first, { status: 'completed' });
    await one.create(request);
    await expect(one.create(request)).rejects.toMatchObject({ code: 'too_many_open' });
  });
});

describe('settle', () => {
  it('opens a task, and ends it; what comes again is known', async () => {
    const made = await one.create(request);
    const settle = (
      status: 'submitted' | 'working' | 'completed' | 'failed',
      taskId?: string,
    ): Promise<string> => two.settle(made, { status, ...(taskId !== undefined && { taskId }) });
    expect(await settle('submitted', 'task-1')).toBe('settled');
    expect(await two.get(made)).toMatchObject({ state: 'open', taskId: 'task-1', status: 'submitted' });
    expect(await settle('working', 'task-1')).toBe('known');
    expect(await settle('completed', 'task-1')).toBe('settled');
    expect(await settle('failed', 'task-1')).toBe('known');
    expect(await two.get(made)).toMatchObject({ state: 'ended', status: 'completed' });
  });

  it('by a terminal first answer, which has no task', async () => {
    const made = await one.create(request);
    expect(await one.settle(made, { status: 'rejected' })).toBe('settled');
    const seen = await one.get(made);
    expect(seen).toMatchObject({ state: 'ended', status: 'rejected' });
    expect(seen).not.toHaveProperty('taskId');
    at.pass(RETENTION_MS);
    expect(await one.get(made)).toBeUndefined();
  });

  it.each(['working', 'completed'] as const)(
    'by the task of the answer, though an event has named another one (%s); both are polled',
    async (status) => {
      const made = await one.create(request);
      const told = { agentUrl: SELLER, operationId: made.operationId };
      await one.find({ ...told, taskId: 'task-of-an-event', status });
      expect(await two.settle(made, { status: 'submitted', taskId: 'task-1' })).toBe('other-task');
      expect(await one.get(made)).toMatchObject({ state: 'open', taskId: 'task-1', status: 'submitted' });
      const watched = await one.list({ state: 'watched', limit: 10 });
      expect(watched.operations.map(({ operationId }) => operationId)).toEqual([
        made.operationId,
        made.operationId,
      ]);
      const ofOther = { ...told, taskId: 'task-of-an-event', status: 'completed' } as const;
      expect(await one.find(ofOther)).toMatchObject({ isMismatch: true });
      expect((await one.get(made))?.state).toBe('open');
      expect(await one.find({ ...ofOther, taskId: 'task-1' })).toMatchObject({ isMismatch: false });
      expect((await one.get(made))?.state).toBe('ended');
    },
  );

  it('without a task, takes the one that an event brings, and polls it', async () => {
    const made = await one.create(request);
    await one.settle(made, { status: 'submitted' });
    expect((await one.list({ state: 'watched', limit: 10 })).operations).toEqual([]);
    await two.find({
      agentUrl: SELLER,
      operationId: made.operationId,
      taskId: 'task-1',
      status: 'working',
    });
    expect(await one.get(made)).toMatchObject({ state: 'open', taskId: 'task-1' });
    expect((await one.list({ state: 'watched', limit: 10 })).operations).toMatchObject([
      { operationId: made.operationId },
    ]);
  });
});

describe('refuse', () => {
  it('makes the same call once more, without the registration and under a new key, durable', async () => {
    const made = await one.create({ ...request, token: true });
    const again = (await one.refuse(made)) ?? expect.fail('once more');
    expect(again.call.destination).toBeUndefined();
    expect(again.call.requestKey).not.toBe(made.call.requestKey);
    const { destination: _none, ...call } = made.call;
    expect(again).toMatchObject({ agentUrl: SELLER, operationId: made.operationId, isRepeat: false });
    expect(again.call).toEqual({ ...call, requestKey: again.call.requestKey });
    // As it is repeated where its caller dies now.
    at.pass(CALL_MS);
    expect((await two.due(9, [])).operations).toEqual([
      { ...again, isRepeat: true, heldUntil: again.heldUntil + CALL_MS },
    ]);
    expect(await one.settle(made, { status: 'submitted', taskId: 'task-1' })).toBe('settled');
    expect(await one.refuse(made)).toBeUndefined();
    expect((await one.get(made))?.state).toBe('open');
  });

  it('a second time: it is the caller’s error', async () => {
    const made = await one.create(request);
    const again = (await one.refuse(made)) ?? expect.fail('once more');
    expect(await two.refuse(again)).toBeUndefined();
    expect(await two.reject(again, 'refused')).toBe('refused');
    expect((await one.get(made))?.state).toBe('refused');
    expect(kept()).not.toContain('sealed');
    at.pass(CALL_MS);
    expect((await two.due(9, [])).operations).toEqual([]);
  });

  it('a call that was refused, and that the seller does after all, is settled by what it tells', async () => {
    const made = await one.create(request);
    await one.reject(made, 'refused');
    expect((await one.get(made))?.state).toBe('refused');
    const told = {
      agentUrl: SELLER,
      operationId: made.operationId,
      taskId: 'task-1',
      status: 'working',
    } as const;
    await two.find(told);
    expect(await one.get(made)).toMatchObject({ state: 'open', taskId: 'task-1' });
    expect((await one.list({ state: 'watched', limit: 10 })).operations).toHaveLength(1);
  });

  it('while another process gives the call up is under no new key: it may have been done', async () => {
    const made = await one.create({ ...request, requestKeyMs: CALL_MS });
    at.pass(2 * CALL_MS);
    const late = at.process(NEWEST);
    at.afterDue(async () => {
      expect(await two.refuse(made)).toBeUndefined();
    });
    const { operationId } = made;
    expect(await late.due(9, [])).toMatchObject({ operations: [], orphaned: [{ operationId }] });
    expect((await one.get(made))?.state).toBe('orphaned');
  });

  it.each(['refuse', 'reject'] as const)(
    '%s of a call that another process has replaced changes nothing: what the seller does with the new one is its answer',
    async (refused) => {
      const made = await one.create(request);
      at.pass(CALL_MS);
      const [same = expect.fail('due')] = (await two.due(9, [])).operations;
      expect(same).toEqual({ ...made, isRepeat: true, heldUntil: same.heldUntil });
      // Who does not hold it goes on by no new key: the other one may be calling.
      expect(await one.refuse(made)).toBeUndefined();
      expect(await two.refuse(same)).toBeDefined();
      expect(await one[refused](made, 'refused')).toBeUndefined();
      expect((await one.get(made))?.state).toBe('calling');
      expect(await one.settle(made, { status: 'submitted', taskId: 'task-1' })).toBe('settled');
    },
  );

  it('of a call that another process holds by now is no proof that nothing was done: orphaned', async () => {
    const made = await one.create(request);
    at.pass(CALL_MS);
    expect((await two.due(9, [])).operations).toHaveLength(1);
    expect(await one.reject(made, 'refused')).toBe('orphaned');
    expect((await one.get(made))?.state).toBe('orphaned');
  });

  it('an answered attempt is known to the next process, and to none after that', async () => {
    const made = await one.create(request);
    await one.postpone(made, { ms: 4000, isAnswered: true });
    at.pass(3999);
    expect((await two.due(9, [])).operations).toEqual([]);
    at.pass(1);
    expect((await two.due(9, [])).operations).toMatchObject([{ isRepeat: false }]);
    // That one died, and may have called.
    at.pass(CALL_MS);
    expect((await two.due(9, [])).operations).toMatchObject([{ isRepeat: true }]);
  });

  it('pauses that a seller asks for again and again are no shorter than a call may take', async () => {
    let held = await one.create(request);
    for (const ms of [1000, 1000, 1000, CALL_MS, CALL_MS]) {
      held = (await one.postpone(held, { ms: 1000, isAnswered: false })) ?? expect.fail('held');
      at.pass(ms - 1);
      expect((await two.due(9, [])).operations).toEqual([]);
      at.pass(1);
      [held = expect.fail('due')] = (await two.due(9, [])).operations;
    }
  });

  it('counts the life of the new key from then on', async () => {
    const made = await one.create(request);
    at.pass(DAY_MS - 1);
    await one.refuse(made);
    at.pass(CALL_MS);
    expect((await two.due(9, [])).operations).toHaveLength(1);
  });
});

describe('list and forget', () => {
  it('lists by state and seller, page by page', async () => {
    const made: Operation[] = [];
    for (const agentUrl of [SELLER, OTHER]) {
      for (let n = 0; n < 3; n += 1) made.push(await one.create({ ...request, agentUrl }));
    }
    await one.settle(made[0] ?? expect.fail(), { status: 'working', taskId: 't' });
    const all = async (query: Partial<Parameters<Operations['list']>[0]>): Promise<string[]> => {
      const found: string[] = [];
      for (let after: string | undefined; ;) {
        const page = await two.list({ limit: 2, ...query, ...(after !== undefined && { after }) });
        found.push(...page.operations.map(({ operationId }) => operationId));
        if (page.next === undefined) return found.toSorted();
        after = page.next;
      }
    };
    const ids = (some: readonly Operation[]): string[] =>
      some.map(({ operationId }) => operationId).toSorted();
    expect(await all({})).toEqual(ids(made));
    expect(await all({ agentUrl: OTHER })).toEqual(ids(made.slice(3)));
    expect(await all({ state: 'calling' })).toEqual(ids(made.slice(1)));
    expect(await all({ state: 'open' })).toEqual(ids(made.slice(0, 1)));
    await two.forget(SELLER);
    expect(await all({})).toEqual(ids(made.slice(3)));
    at.pass(CALL_MS);
    expect((await one.due(9, [])).operations.map(({ agentUrl }) => agentUrl)).toEqual([OTHER, OTHER, OTHER]);
    await two.forget(SELLER);
  });
});

describe('two operations of one task', () => {
  it('the task stays the first one’s; the second is told, and is known by its own id', async () => {
    const [first, second] = [await one.create(request), await one.create(request)];
    const answer = { status: 'submitted', taskId: 'task-1' } as const;
    expect(await one.settle(first, answer)).toBe('settled');
    expect(await two.settle(second, answer)).toBe('task-taken');
    expect(await one.get(second)).toMatchObject({ state: 'open', taskId: 'task-1' });
    const task = { agentUrl: SELLER, taskId: 'task-1' };
    const isOf = (operationId: string) => ({ operation: { operationId }, isMismatch: false });
    const completed = { ...task, status: 'completed' } as const;
    expect(await two.find(completed)).toMatchObject(isOf(first.operationId));
    expect((await one.get(second))?.state).toBe('open');
    // By name, and the end of it takes nothing over either.
    const named = { ...completed, operationId: second.operationId };
    expect(await two.find(named)).toMatchObject(isOf(second.operationId));
    expect((await one.get(second))?.state).toBe('ended');
    expect(await two.find(task)).toMatchObject(isOf(first.operationId));
  });

  it('the second ends with the task, though no event names it', async () => {
    const [first, second] = [await one.create(request), await one.create(request)];
    // An event that came before an answer has given the task away.
    const told = { agentUrl: SELLER, taskId: 'task-1' };
    await one.find({ ...told, operationId: first.operationId, status: 'working' });
    expect(await two.settle(second, { status: 'submitted', taskId: 'task-1' })).toBe('task-taken');
    await one.find({ ...told, status: 'completed' });
    await two.endWatch(SELLER, 'task-1');
    expect((await one.get(first))?.state).toBe('ended');
    expect((await one.get(second))?.state).toBe('ended');
  });

  it('a task that takes the place of the one before is the operation’s a hundred times', async () => {
    const { operationId } = await one.create(request);
    const told = { agentUrl: SELLER, operationId, status: 'submitted' } as const;
    await one.find({ ...told, taskId: 'task-0' });
    for (let n = 1; n <= 102; n += 1) {
      const found = await two.find({ ...told, taskId: `task-${n}`, callTaskId: `task-${n - 1}` });
      expect([n, found?.isMismatch]).toEqual([n, n > 100]);
    }
    expect(await one.get({ agentUrl: SELLER, operationId })).toMatchObject({
      state: 'open',
      taskId: 'task-100',
    });
    const { operations } = await one.list({ state: 'watched', limit: 10 });
    expect(operations.map(({ taskId }) => taskId)).toEqual(['task-100']);
  });

  it('a task that its operation has no more is taken by the answer that names it', async () => {
    const [first, second] = [await one.create(request), await one.create(request)];
    const told = { agentUrl: SELLER, operationId: first.operationId, taskId: 'task-1' };
    await one.find({ ...told, status: 'working' });
    await one.settle(first, { status: 'submitted', taskId: 'task-2' });
    expect(await two.settle(second, { status: 'submitted', taskId: 'task-1' })).toBe('settled');
    expect(await two.find({ agentUrl: SELLER, taskId: 'task-1' })).toMatchObject({
      operation: { operationId: second.operationId },
      isMismatch: false,
    });
  });

  it('an answer that names a task which has ended opens nothing', async () => {
    const made = await one.create(request);
    const told = { agentUrl: SELLER, operationId: made.operationId, taskId: 'task-1' };
    await one.find({ ...told, status: 'completed' });
    await one.endWatch(SELLER, 'task-1');
    await one.settle(made, { status: 'submitted', taskId: 'task-2' });
    expect(await two.settle(made, { status: 'submitted', taskId: 'task-1' })).toBe('other-task');
    expect(await one.get(made)).toMatchObject({ state: 'ended', taskId: 'task-1' });
    // The other one is polled to its end all the same.
    expect((await one.list({ state: 'watched', limit: 9 })).operations).toHaveLength(1);
  });

  it('an event of its former task is not the operation’s, though it names none', async () => {
    const made = await one.create(request);
    const told = { agentUrl: SELLER, operationId: made.operationId, taskId: 'task-1' };
    await one.find({ ...told, status: 'working' });
    await one.settle(made, { status: 'submitted', taskId: 'task-2' });
    const former = { agentUrl: SELLER, taskId: 'task-1', status: 'completed' } as const;
    expect(await two.find(former)).toMatchObject({ isMismatch: true });
    await two.endWatch(SELLER, 'task-1');
    expect(await one.get(made)).toMatchObject({ state: 'open', taskId: 'task-2' });
  });

  it('an end that names no task leaves the task of the operation polled', async () => {
    const made = await one.create(request);
    await one.settle(made, { status: 'submitted', taskId: 'task-1' });
    expect(await two.settle(made, { status: 'completed' })).toBe('settled');
    expect(await one.get(made)).toMatchObject({ state: 'ended', taskId: 'task-1' });
    expect((await one.list({ state: 'watched', limit: 9 })).operations).toHaveLength(1);
  });

  it('the task that an event ends under another operation’s name is not left open', async () => {
    const [first, second] = [await one.create(request), await one.create(request)];
    await one.settle(first, { status: 'submitted', taskId: 'task-1' });
    await one.settle(second, { status: 'submitted', taskId: 'task-2' });
    const told = { agentUrl: SELLER, operationId: second.operationId, taskId: 'task-1' };
    expect(await two.find({ ...told, status: 'completed' })).toMatchObject({ isMismatch: true });
    await two.endWatch(SELLER, 'task-1');
    expect((await one.get(first))?.state).toBe('ended');
    expect((await one.get(second))?.state).toBe('open');
  });
});

describe('get', () => {
  it('has no member for what was not given', async () => {
    const { agentUrl, taskType, arguments: given } = request;
    const made = await one.create({ agentUrl, taskType, arguments: given });
    expect(Object.keys((await one.get(made)) ?? {}).toSorted()).toEqual([
      'agentUrl',
      'createdAt',
      'operationId',
      'state',
      'taskType',
    ]);
  });
});

describe('find', () => {
  const task = { agentUrl: SELLER, taskId: 'task-1' };
  const open = async (): Promise<Operation> => {
    const made = await one.create(request);
    await one.settle(made, { status: 'submitted', taskId: 'task-1' });
    return made;
  };

  it('by the id, and by the task from its answer on; not of another seller', async () => {
    const made = await one.create(request);
    expect(await two.find(task)).toBeUndefined();
    await one.settle(made, { status: 'submitted', taskId: 'task-1' });
    const { agentUrl, operationId } = made;
    for (const told of [task, { agentUrl, operationId }, { ...task, operationId }]) {
      expect(await two.find(told)).toMatchObject({
        operation: { operationId, ref: 'order 7' },
        isMismatch: false,
      });
      expect(await two.find({ ...told, agentUrl: OTHER })).toBeUndefined();
    }
  });

  it('of a task whose name no backend could keep', async () => {
    const taskId = `\0\ud800${'x'.repeat(5000)}`;
    const made = await one.create(request);
    await one.settle(made, { status: 'submitted', taskId });
    const { operationId } = made;
    expect(await one.find({ agentUrl: SELLER, taskId })).toMatchObject({ operation: { operationId } });
  });

  it.each(['submitted', 'completed'] as const)(
    'settles a call that has no answer yet: %s',
    async (status) => {
      const made = await one.create(request);
      await one.find({ ...task, operationId: made.operationId, status });
      expect(await one.get(made)).toMatchObject({
        state: status === 'completed' ? 'ended' : 'open',
        taskId: 'task-1',
        status,
      });
      expect(kept()).not.toContain('sealed');
      at.pass(2 * CALL_MS);
      expect((await two.due(10, [])).operations).toEqual([]);
    },
  );

  it('settles a call by a task_id that is too long to be kept', async () => {
    const made = await one.create(request);
    await one.find({ ...made, taskId: 'x'.repeat(4097), status: 'working' });
    const seen = await one.get(made);
    expect([seen?.state, seen?.taskId]).toEqual(['open', undefined]);
  });

  it('settles one that was given up, too', async () => {
    const made = await one.create({ ...request, requestKeyMs: 0 });
    at.pass(2 * CALL_MS);
    expect((await one.due(10, [])).orphaned).toHaveLength(1);
    await one.find({ ...task, operationId: made.operationId, status: 'working' });
    expect((await one.get(made))?.state).toBe('open');
  });

  it('without a status it settles nothing', async () => {
    const made = await one.create(request);
    await one.find({ ...task, operationId: made.operationId });
    expect((await one.get(made))?.state).toBe('calling');
  });

  it('is known for the retention after the last event, half of it at least, by both names', async () => {
    const { agentUrl, operationId } = await open();
    await one.find({ ...task, status: 'completed' });
    for (let times = 0; times < 4; times += 1) {
      at.pass(RETENTION_MS * 0.6);
      expect(await two.find({ agentUrl, operationId, status: 'completed' })).toBeDefined();
    }
    at.pass(RETENTION_MS * 0.6);
    expect(await two.find(task)).toBeDefined();
    at.pass(RETENTION_MS);
    expect(await two.find(task)).toBeUndefined();
    expect(await two.find({ agentUrl, operationId })).toBeUndefined();
  });

  it('so is the media buy of one that stays open, while its reports come', async () => {
    const made = await one.create(request);
    await one.settle(made, { status: 'submitted', taskId: 'task-1', mediaBuyId: 'mb-1' });
    const report = { agentUrl: SELLER, mediaBuyId: 'mb-1' };
    for (let months = 0; months < 6; months += 1) {
      at.pass(RETENTION_MS * 0.6);
      expect(await two.find(report)).toMatchObject({ operation: { operationId: made.operationId } });
    }
  });

  it('forget leaves the task of what is registered while it runs', async () => {
    const old = await open();
    let made: Operation | undefined;
    at.beforeWatches(async () => {
      made = await two.create(request);
      await two.settle(made, { status: 'submitted', taskId: 'task-2' });
    });
    await one.forget(SELLER);
    expect(await one.get(old)).toBeUndefined();
    expect((await one.get(made ?? expect.fail()))?.state).toBe('open');
    expect((await one.list({ state: 'watched', limit: 9 })).operations).toMatchObject([
      { operationId: made?.operationId },
    ]);
  });

  it('forget takes it by both names', async () => {
    const { agentUrl, operationId } = await open();
    await one.forget(SELLER);
    expect(await two.find(task)).toBeUndefined();
    expect(await two.find({ agentUrl, operationId })).toBeUndefined();
  });
});
