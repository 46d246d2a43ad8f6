import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isPrintable, MAX_TEXT } from '../../src/codec/for-tests.ts';
import { a2aCaller } from '../../src/registrations/a2a.ts';
import { refusalIn } from '../../src/registrations/for-tests.ts';
import { mcpCaller } from '../../src/registrations/mcp.ts';
import { submitted, world } from '../poll/kit.ts';
import {
  answerText,
  ask,
  callsIn,
  type CallerName,
  DONE,
  hostileSeller,
  type HostileSeller,
  type Say,
  sayResult,
  sayText,
} from './hostile-seller.ts';

let seller: HostileSeller;
beforeEach(async () => {
  seller = await hostileSeller();
});
afterEach(async () => {
  await seller[Symbol.asyncDispose]();
});

const json = { 'content-type': 'application/json' };
const signal = AbortSignal.timeout(60_000);
const EVIL = `\u009B31m\u001B[31m\n\u202EOK ${'x'.repeat(20_000)}`;
/** What a header can have of it. */
const LATIN = `\u009B31m${'x'.repeat(9_000)}`;

/** A seller that gives that agent card, with a URL below its own origin where none is given. */
const cardOf = (members: object): void => {
  const interfaces = [{ url: seller.url, protocolBinding: 'JSONRPC', protocolVersion: '1.0', ...members }];
  seller.instead = ({ method }, res) => {
    if (method === 'GET') res.writeHead(200, json).end(JSON.stringify({ supportedInterfaces: interfaces }));
    return method === 'GET';
  };
};
const byCard = (): Promise<unknown> =>
  a2aCaller({ allowLoopback: true })(seller.url, 'get_products', {}, { signal });

const failureOf = async (asked: Promise<unknown>): Promise<Error> => {
  const found: unknown = await asked.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(found instanceof Error)) throw new Error('the call has not failed');
  return found;
};

const errorOf = (error: object): Say =>
  sayText(({ message }) => JSON.stringify({ jsonrpc: '2.0', id: message?.id ?? 1, error }));
const redirect: Say = (_heard, res) => void res.writeHead(307, { location: `/${LATIN}` }).end();

describe.each<CallerName>(['mcpCaller', 'a2aCaller'])('the error of %s is short and printable', (name) => {
  it.each<readonly [string, Say]>([
    [
      'a content type',
      (_heard, res) => void res.writeHead(200, { 'content-type': `text/${LATIN}` }).end('x'),
    ],
    ['a JSON-RPC code that is a text', errorOf({ code: EVIL, message: EVIL })],
    ['a code that has no text', errorOf({ code: { toString: 1 }, message: EVIL })],
    ['codes in a list', errorOf({ code: [EVIL], message: EVIL })],
    ['a redirect, and another one', redirect],
    ['a page', (_heard, res) => void res.writeHead(500, { 'content-type': 'text/plain' }).end(EVIL)],
  ])('for %s', async (_what, say) => {
    seller.say = say;
    const { message } = await failureOf(ask(name, seller.url));
    expect(isPrintable(message, MAX_TEXT + 100)).toBe(true);
  });
});

describe('an agent card', () => {
  it.each<readonly [string, object]>([
    ['a long URL', { url: `https://seller.example/${'x'.repeat(100_000)}` }],
    ['another one’s words', { protocolBinding: EVIL, protocolVersion: EVIL }],
    ['a version without a text', { protocolVersion: { toString: 1 } }],
    ['a long tenant', { tenant: 'x'.repeat(5_000) }],
  ])('with %s is not called, and the error is short and printable', async (_what, members) => {
    cardOf(members);
    const { message } = await failureOf(byCard());
    expect(message).toContain('names no https URL for JSONRPC');
    expect(isPrintable(message, MAX_TEXT + 300)).toBe(true);
    expect(callsIn(seller)).toEqual([]);
  });

  it('is called at the URL as a parser writes it, which is what an error says', async () => {
    const { origin } = new URL(seller.url);
    cardOf({ url: `${origin}/%0a\u202E` });
    seller.say = sayText(() => '[]');
    const { message } = await failureOf(byCard());
    expect(message).toContain(`${origin}/%0a%E2%80%AE`);
    expect(callsIn(seller).map(({ path }) => path)).toEqual(['/%0a%E2%80%AE']);
  });
});

it('an answer that names its request by what has no text is passed over for the one that does', async () => {
  seller.say = sayText((heard) => `[{"id":{"toString":1},"result":{}},${answerText(heard, DONE)}]`);
  expect(await ask('mcpCaller', seller.url)).toEqual({ status: 'completed', n: 1 });
});

it.each(['data:{}\n\n', 'id:a\n\n', '\n'])('a stream of %j has an end', async (unit) => {
  const body = `id:a\n\n${unit.repeat(10_000)}`;
  seller.say = (_heard, res) => void res.writeHead(200, { 'content-type': 'text/event-stream' }).end(body);
  await expect(ask('mcpCaller', seller.url)).rejects.toThrow('its stream has more than 10000 events');
});

describe('of the content of a tool’s result', () => {
  const part = (text: string): { type: string; text: string } => ({ type: 'text', text });
  const late = [...Array.from({ length: 16 }, () => part('{')), part('{"adcp_error":{"code":"CONFLICT"}}')];
  const early = late.toSpliced(0, 1);

  it('the first 16 parts are looked at', async () => {
    seller.say = sayResult(JSON.stringify({ content: late }));
    await expect(ask('mcpCaller', seller.url)).rejects.toThrow('the answer has no JSON object');
    seller.say = sayResult(JSON.stringify({ content: early }));
    expect(await ask('mcpCaller', seller.url)).toEqual({ adcp_error: { code: 'CONFLICT' } });
  });

  it('the same is read that a client of the owner’s gives', () => {
    expect(refusalIn({ isError: true, content: late })?.code).toBe(undefined);
    expect(refusalIn({ isError: true, content: early })?.code).toBe('CONFLICT');
    const long = part(`"${'x'.repeat(1_048_576)}"`);
    expect(refusalIn({ isError: true, content: [long] })?.code).toBe(undefined);
    // What is too long is passed over, and what is behind it is not.
    expect(refusalIn({ isError: true, content: [long, ...early.slice(-1)] })?.code).toBe('CONFLICT');
  });
});

describe('what a seller lists', () => {
  it('of tools is kept as far as it can be operations, and no page is read beyond that', async () => {
    let pages = 0;
    seller.instead = (heard, res) => {
      if (heard.message?.method !== 'tools/list') return false;
      pages += 1;
      const tools = Array.from({ length: 300 }, (_, at) => ({ name: `tool-${pages}-${at}` }));
      tools.push({ name: 'x'.repeat(256) });
      res.writeHead(200, json).end(answerText(heard, JSON.stringify({ tools, nextCursor: `${pages}` })));
      return true;
    };
    const names = await mcpCaller({ allowLoopback: true }).operations?.(seller.url, { signal });
    expect(names).toHaveLength(1000);
    expect(names?.filter((name) => name.length > 255)).toEqual([]);
    expect(pages).toBe(4);
  });

  it('goes on where it says, unless that is too long to be sent back', async () => {
    const asked: unknown[] = [];
    const cursors = ['x'.repeat(4_096), 'x'.repeat(4_097)];
    seller.instead = (heard, res) => {
      if (heard.message?.method !== 'tools/list') return false;
      asked.push(heard.message.params);
      const tools = [{ name: `tool-${asked.length}` }];
      res.writeHead(200, json).end(answerText(heard, JSON.stringify({ tools, nextCursor: cursors.shift() })));
      return true;
    };
    const names = await mcpCaller({ allowLoopback: true }).operations?.(seller.url, { signal });
    expect(names).toEqual(['tool-1', 'tool-2']);
    expect(asked).toEqual([{}, { cursor: 'x'.repeat(4_096) }]);
  });

  it('of skills is kept as far as it can be operations', async () => {
    const skills = [
      { id: 'x'.repeat(256) },
      ...Array.from({ length: 2000 }, (_, at) => ({ id: `skill-${at}` })),
    ];
    const interfaces = [{ url: seller.url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }];
    seller.instead = (_heard, res) => {
      res.writeHead(200, json).end(JSON.stringify({ supportedInterfaces: interfaces, skills }));
      return true;
    };
    const names = await a2aCaller({ allowLoopback: true }).operations?.(seller.url, { signal });
    expect(names).toHaveLength(1000);
    expect(names?.[0]).toBe('skill-0');
  });
});

describe('timeoutMs', () => {
  it.each(['initialize', 'notifications/initialized', 'tools/call', 'tools/list'])(
    'holds for all of a call and of a list: %s, which is not answered, takes what the others have left',
    async (silent) => {
      let left: (() => void) | undefined;
      const gone = new Promise<void>((resolve) => (left = resolve));
      seller.instead = (heard, res) => {
        if (heard.message?.method !== silent) return false;
        res.on('close', () => left?.());
        return true;
      };
      const call = mcpCaller({ allowLoopback: true, timeoutMs: 200 });
      const asked = (): Promise<unknown> | undefined =>
        silent === 'tools/list'
          ? call.operations?.(seller.url, { signal })
          : call(seller.url, 'get_products', {}, { signal });
      const isHeard = (): boolean => seller.heard.some(({ message }) => message?.method === silent);
      // Once more where the machine was so slow that the time was over before it came to that.
      while (!isHeard()) await expect(asked()).rejects.toThrow('the call timed out: no answer within 200 ms');
      await gone;
    },
  );

  it('ends a list whose pages never end', async () => {
    seller.instead = (heard, res) => {
      if (heard.message?.method !== 'tools/list') return false;
      setTimeout(() => res.writeHead(200, json).end(answerText(heard, '{"tools":[],"nextCursor":"x"}')), 100);
      return true;
    };
    const call = mcpCaller({ allowLoopback: true, timeoutMs: 500 });
    await expect(call.operations?.(seller.url, { signal })).rejects.toThrow('timed out');
    expect(seller.heard.filter(({ message }) => message?.method === 'tools/list').length).toBeLessThan(8);
  });
});

it('a Task that goes on under an id which is too long to be kept is asked about under its own', async () => {
  const buyer = world();
  try {
    const one = await buyer.process({
      call: Object.assign(buyer.seller.call, { transport: 'agent' as const }),
    });
    const made = await submitted(one, 't-1');
    const data = { status: 'working', task_id: 'x'.repeat(MAX_TEXT + 1) };
    buyer.seller.answers.set('t-1', () => ({
      kind: 'task',
      id: 't-1',
      status: { state: 'completed' },
      artifacts: [{ artifactId: 'a', parts: [{ kind: 'data', data }] }],
    }));
    await one.poller.start();
    for (let step = 0; step < 20 && buyer.seller.questions.length < 2; step += 1)
      await buyer.clock.pass(15_000);
    expect(new Set(buyer.seller.questions.map(({ args }) => args['id']))).toEqual(new Set(['t-1']));
    expect(await one.registrations.get(made)).toMatchObject({ state: 'open', taskId: 't-1' });
    expect(one.alarms).toContainEqual(
      expect.objectContaining({ code: 'poll_failing', refusal: 'answer_invalid' }),
    );
  } finally {
    await buyer.end();
  }
});

describe('tasks that take the place of one another', () => {
  const goesOn = (id: string, next: string): object => ({
    kind: 'task',
    id,
    status: { state: 'completed' },
    artifacts: [{ artifactId: 'a', parts: [{ kind: 'data', data: { status: 'working', task_id: next } }] }],
  });

  it.each<readonly [string, (at: number) => string]>([
    ['without end', (at) => `t-${at}`],
    ['and go back to the first', (at) => `t-${at % 2}`],
  ])('%s are one task to giveUpMs: the operation is open until then, and told of', async (_what, idOf) => {
    const buyer = world();
    try {
      const one = await buyer.process({
        call: Object.assign(buyer.seller.call, { transport: 'agent' as const }),
        giveUpMs: 300_000,
      });
      const made = await submitted(one, 't-0');
      for (let at = 0; at < 60; at += 1)
        buyer.seller.answers.set(idOf(at), () => goesOn(idOf(at), idOf(at + 1)));
      await one.poller.start();
      for (let step = 0; step < 10; step += 1) await buyer.clock.pass(15_000);
      expect(await one.registrations.get(made)).toMatchObject({ state: 'open', status: 'working' });
      expect(buyer.seller.questions.length).toBeGreaterThan(3);
      for (let step = 0; step < 30; step += 1) await buyer.clock.pass(15_000);
      expect(one.alarms.filter(({ code }) => code === 'task_unresolved')).toHaveLength(1);
      const asked = buyer.seller.questions.length;
      for (let step = 0; step < 10; step += 1) await buyer.clock.pass(15_000);
      expect(buyer.seller.questions).toHaveLength(asked);
    } finally {
      await buyer.end();
    }
  });
});
