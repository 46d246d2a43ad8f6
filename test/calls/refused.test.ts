import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  type Alarm,
  AnswerRefusedError,
  type CallSeller,
  createRegistrations,
  type Registrations,
} from '../../src/registrations/index.ts';
import { Fault } from '../../src/index.ts';
import { a2aCaller } from '../../src/registrations/a2a.ts';
import { mcpCaller } from '../../src/registrations/mcp.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { submitted, world } from '../poll/kit.ts';
import { testReceiver } from '../receiver/setup.ts';
import { NEWEST } from '../registrations/kit.ts';
import { callsIn, hostileSeller, type HostileSeller, sayResult } from './hostile-seller.ts';
import { anyClient, callBy } from '../support/any-client.ts';

const deep = (levels: number): unknown => {
  let value: unknown = 1;
  for (let level = 0; level < levels; level += 1) value = [value];
  return value;
};

const silent = { debug() {}, info() {}, warn() {}, error() {} };

describe('the answer of a call', () => {
  let seller: HostileSeller;
  let registrations: Registrations;
  let alarms: Alarm[];
  beforeEach(async () => {
    seller = await hostileSeller();
    alarms = [];
    const store = memoryStore();
    registrations = createRegistrations({
      call: anyClient,
      store,
      baseUrl: 'https://buyer.example/webhooks',
      secrets: [NEWEST],
      allowLoopback: true,
      logger: silent,
      onAlarm: (alarm) => void alarms.push(alarm),
    });
    const { receiver } = await testReceiver({ store, registrations, allowLoopback: true });
    await receiver.ready();
  });
  afterEach(async () => {
    await seller[Symbol.asyncDispose]();
  });
  const create = (): ReturnType<Registrations['create']> =>
    registrations.create({ agentUrl: seller.url, taskType: 'get_products', arguments: {}, ref: 'r-1' });

  it('that is refused is told of, and the third one ends it as orphaned, with the reason', async () => {
    seller.say = sayResult(`{"structuredContent":{"a":${'['.repeat(300)}${']'.repeat(300)}}}`);
    const made = await create();
    const call = mcpCaller({ allowLoopback: true });
    for (const state of ['calling', 'calling', 'orphaned']) {
      await expect(callBy(made, call)).rejects.toBeInstanceOf(AnswerRefusedError);
      expect(await registrations.get(made)).toMatchObject({ state });
    }
    const sender = seller.url;
    const { operationId } = made;
    const said = (what: string): unknown =>
      expect.stringMatching(
        new RegExp(`nests deeper than 256 levels.*It is unknown whether get_products was done. ${what}$`),
      );
    expect(alarms).toMatchObject([
      {
        code: 'answer_refused',
        sender,
        operationId,
        ref: 'r-1',
        refusals: 1,
        message: said('It is called again: 1 of at most 3 calls.'),
      },
      { code: 'answer_refused', refusals: 2, message: said('It is called again: 2 of at most 3 calls.') },
      { code: 'answer_refused', refusals: 3, message: said('It is not called again.') },
      {
        code: 'operation_orphaned',
        sender,
        operationId,
        ref: 'r-1',
        message:
          'It is unknown whether get_products was done: the answers of 3 calls were refused, the last one because it nests deeper than 256 levels. Ask the seller.',
      },
    ]);
    expect(await registrations.get(made)).toMatchObject({ reason: 'it nests deeper than 256 levels' });
    expect(callsIn(seller)).toHaveLength(3);
    // Nobody calls it again by itself; a webhook that tells of it settles it, and the reason is gone.
    await made.settle({ status: 'submitted', task_id: 't-1' });
    const settled = await registrations.get(made);
    expect(settled).toMatchObject({ state: 'open', taskId: 't-1' });
    expect(settled).not.toHaveProperty('reason');
  });

  it.each<readonly [string, CallSeller, string]>([
    ['the opening of a session', mcpCaller({ allowLoopback: true }), 'the session with'],
    ['the agent card', a2aCaller({ allowLoopback: true }), 'the agent card'],
  ])('is none where %s is refused: the call was not made, and is made later', async (_what, call, words) => {
    const made = await create();
    seller.instead = ({ method, message }, res) => {
      if (message?.method !== 'initialize' && method !== 'GET') return false;
      const deepResult = `{"jsonrpc":"2.0","id":${message?.id ?? 1},"result":${'['.repeat(300)}${']'.repeat(300)}}`;
      res.writeHead(200, { 'content-type': 'application/json' }).end(deepResult);
      return true;
    };
    for (let times = 0; times < 4; times += 1) {
      const asking = callBy(made, call);
      await expect(asking).rejects.toThrow(`The call was not made: ${words}`);
      await expect(asking).rejects.toThrow('is refused, it nests deeper than 256 levels.');
      await expect(asking).rejects.not.toBeInstanceOf(AnswerRefusedError);
    }
    expect(callsIn(seller)).toEqual([]);
    expect(alarms).toEqual([]);
    expect(await registrations.get(made)).toMatchObject({ state: 'calling' });
    seller.instead = ({ method }, res) => {
      const interfaces = [{ url: seller.url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }];
      if (method === 'GET') res.writeHead(200).end(JSON.stringify({ supportedInterfaces: interfaces }));
      return method === 'GET';
    };
    seller.say = sayResult(
      '{"structuredContent":{"status":"submitted","task_id":"t-1"},"task":{"id":"t-1","contextId":"c","status":{"state":"TASK_STATE_SUBMITTED"}}}',
    );
    await callBy(made, call);
    expect(await registrations.get(made)).toMatchObject({ state: 'open', taskId: 't-1' });
  });

  it.each<readonly [string, unknown, RegExp]>([
    ['5,000 levels deep', { status: 'completed', result: deep(5_000) }, /nests deeper than 256/],
    ['in a circle', Object.assign([], { 0: 0 }), /./],
    [
      'of more than the receiver keeps',
      { status: 'completed', result: { a: 'x'.repeat(1_100_000) } },
      /over maxBodyBytes/,
    ],
    ['with what JSON does not have', { status: 'completed', result: { a: 1n } }, /result|data.* is a bigint/],
  ])('of a client that gives one %s: it is the fault of the answer', async (what, answer, message) => {
    const made = await create();
    const given: unknown = what === 'in a circle' ? circle() : answer;
    const asking = callBy(made, async () => given);
    await expect(asking).rejects.toBeInstanceOf(AnswerRefusedError);
    await expect(asking).rejects.toThrow(message);
    expect(alarms.map(({ code }) => code)).toEqual(['answer_refused']);
    await expect(made.settle(given)).rejects.toBeInstanceOf(AnswerRefusedError);
    expect(alarms).toHaveLength(2);
  });

  it('a connection that fails, and a store that does, are not', async () => {
    const made = await create();
    const failing: CallSeller = async () => {
      throw new TypeError('fetch failed');
    };
    await expect(callBy(made, failing)).rejects.toThrow('fetch failed');
    const faulty: CallSeller = async () => {
      throw new Fault('store_unavailable', 'away');
    };
    await expect(callBy(made, faulty)).rejects.toThrow('away');
    expect(alarms).toEqual([]);
    expect(await registrations.get(made)).toMatchObject({ state: 'calling' });
  });
});

function circle(): unknown {
  const round: Record<string, unknown> = { status: 'completed' };
  round['result'] = { round };
  return round;
}

/** The items, and how many times they were read. */
function counted(items: unknown[]): { readonly list: unknown; readonly reads: () => number } {
  let reads = 0;
  const list = new Proxy(items, {
    get: (target, name, receiver): unknown => {
      if (typeof name === 'string' && /^\d+$/.test(name)) reads += 1;
      return Reflect.get(target, name, receiver);
    },
  });
  return { list, reads: () => reads };
}

describe('the work for an answer', () => {
  /** What one poll is answered with, and the lengths of the texts that are made and parsed for it. */
  const polled = async (result: unknown): Promise<readonly number[]> => {
    const buyer = world();
    const lengths: number[] = [];
    const { stringify, parse } = JSON;
    try {
      buyer.seller.answers.set('t-1', () => ({ task_id: 't-1', status: 'completed', result }));
      const one = await buyer.process({}, {}, false);
      await submitted(one, 't-1');
      vi.spyOn(JSON, 'stringify').mockImplementation((...given: unknown[]): string => {
        const text = stringify(...(given as Parameters<typeof stringify>));
        lengths.push(text?.length ?? 0);
        return text;
      });
      vi.spyOn(JSON, 'parse').mockImplementation((text: string, reviver): unknown => {
        lengths.push(text.length);
        return parse(text, reviver);
      });
      await one.poller.start();
      for (let step = 0; step < 60 && one.polls.length === 0; step += 1) await buyer.clock.pass(15_000);
      expect(one.polls).toHaveLength(1);
      return lengths;
    } finally {
      vi.restoreAllMocks();
      await buyer.end();
    }
  };

  it('is one look at what is kept a step, and no more', async () => {
    const items = 10_000;
    const { list, reads } = counted(Array.from({ length: items }, () => 1));
    const lengths = await polled({ list });
    // Its bounds, whether it is too long and its hash; whether it is too long, its text and whether that keeps it.
    expect(reads()).toBeLessThanOrEqual(6 * items + 10);
    // The event's text, which is parsed where the event is read.
    expect(lengths.filter((length) => length > items)).toHaveLength(2);
  });

  it('is no text of what is too long to be kept', async () => {
    const { list, reads } = counted(Array.from({ length: 100_000 }, () => 'x'.repeat(100)));
    const lengths = await polled({ list, long: '\uD800'.repeat(2_000_000) });
    expect(Math.max(...lengths)).toBeLessThan(10_000);
    // Its bounds, and as far as it is kept.
    expect(reads()).toBeLessThanOrEqual(111_000);
  });
});

describe('the answer to a poll', () => {
  it.each<readonly [string, unknown, RegExp]>([
    ['5,000 levels deep', { status: 'working', progress: deep(5_000) }, /nests deeper/],
    ['over maxBodyBytes', { status: 'completed', result: { a: 'x'.repeat(1_100_000) } }, /over maxBodyBytes/],
    ['with what JSON does not have', { status: 'completed', result: { a: undefined, b: 1n } }, /./],
  ])('%s is refused, told of, and asked for again later and later', async (_what, answer, message) => {
    const lines: string[] = [];
    const buyer = world();
    try {
      buyer.seller.answers.set('t-1', (question) => ({
        task_id: question.args['task_id'],
        ...(answer as object),
      }));
      const logger = { ...silent, warn: (_fields: object, line: string) => void lines.push(line) };
      const one = await buyer.process({}, { logger });
      await submitted(one, 't-1');
      await one.poller.start();
      for (let step = 0; step < 60 && buyer.seller.questions.length < 4; step += 1)
        await buyer.clock.pass(15_000);
      const refused = one.alarms.filter(({ code }) => code === 'answer_refused');
      expect(refused.length).toBeGreaterThan(0);
      expect(refused[0]?.message).toMatch(message);
      expect(one.alarms.filter(({ code }) => code === 'poll_failing')).toEqual([]);
      const [first = 0, second = 0, third = 0, fourth = 0] = buyer.seller.questions.map(({ at }) => at);
      expect(third - second).toBeGreaterThan(second - first);
      expect(fourth - third).toBeGreaterThan(third - second);
      expect(lines.filter((line) => line.includes('store failed'))).toEqual([]);
    } finally {
      await buyer.end();
    }
  });
});
