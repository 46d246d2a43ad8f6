import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  bounded,
  boundedJson,
  eventsOf,
  jsonRefusedReason,
  mostValues,
  requireBounded,
} from '../../src/for-tests.ts';
import { AnswerRefusedError } from '../../src/registrations/index.ts';
import {
  answerText,
  ask,
  callsIn,
  DONE,
  type Heard,
  hostileSeller,
  type HostileSeller,
  type Say,
  sayResult,
} from './hostile-seller.ts';

const CALLERS = ['mcpCaller', 'a2aCaller'] as const;
const MAX = 16_777_216;

let seller: HostileSeller;
beforeEach(async () => {
  seller = await hostileSeller();
});
afterEach(async () => {
  await seller[Symbol.asyncDispose]();
});

const encoded =
  (encoding: string, encode: (text: string) => Buffer, result = DONE): Say =>
  (heard, res) => {
    const headers = { 'content-type': 'application/json', 'content-encoding': encoding };
    res.writeHead(200, headers).end(encode(answerText(heard, result)));
  };

/** Never ends. */
const endless =
  (headers: Record<string, string>, first: string, rest: Buffer | string, status = 200): Say =>
  (_heard, res) => {
    res.writeHead(status, headers);
    res.write(first);
    const more = (): void => {
      while (!res.destroyed && res.write(rest));
    };
    res.on('drain', more);
    more();
  };

/** 40 MiB in 40 KiB. */
const BOMB = gzipSync(Buffer.alloc(41_943_040, ' '), { level: 1 });

const nested = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`;
const inside = (value: string): Say => sayResult(`{"structuredContent":{"a":${value}},"content":[]}`);

describe.each(CALLERS)('%s', (name) => {
  it('asks for nothing encoded, and takes gzip and deflate all the same', async () => {
    for (const say of [
      encoded('gzip', gzipSync),
      encoded('GZIP', gzipSync),
      encoded('deflate', deflateSync),
      encoded('identity', (text) => Buffer.from(text)),
      sayResult(DONE),
    ]) {
      seller.say = say;
      expect(await ask(name, seller.url)).toMatchObject(
        name === 'mcpCaller' ? { n: 1 } : { structuredContent: { n: 1 } },
      );
    }
    expect(new Set(seller.heard.map(({ headers }) => headers['accept-encoding']))).toEqual(
      new Set(['identity']),
    );
  });

  it.each<readonly [string, Say, RegExp]>([
    ['of 16 MiB and a byte', inside(`"${'x'.repeat(MAX)}"`), /more than 16777216 bytes/],
    [
      'without an end',
      endless({ 'content-type': 'application/json' }, '[', Buffer.alloc(65_536, ' ')),
      /more than 16777216 bytes/,
    ],
    ['that decodes to a thousand times its bytes', encoded('gzip', () => BOMB), /more than 16777216 bytes/],
    ['in brotli', encoded('br', brotliCompressSync), /an encoding that was not requested/],
    [
      'encoded twice',
      encoded('gzip, gzip', (text) => gzipSync(gzipSync(text))),
      /an encoding that was not requested/,
    ],
    ['that is no gzip', encoded('gzip', (text) => Buffer.from(text)), /gzip cannot be decoded/],
    ['of half a gzip', encoded('gzip', (text) => gzipSync(text).subarray(0, 30)), /gzip cannot be decoded/],
    ['5,000 levels deep', inside(nested(5_000)), /nests deeper than 256 levels/],
    ['257 levels deep', inside(nested(254)), /nests deeper than 256 levels/],
    ['of 600,000 values', inside(`[${'1,'.repeat(600_000)}1]`), /more than 524288 values/],
    ['of 600,000 objects', inside(`[${'{},'.repeat(300_000)}1]`), /more than 524288 values/],
    ['with a name twice', inside('{"n":1,"n":2}'), /a name twice: "n"/],
  ])('an answer %s is refused, and was an answer', async (_what, say, message) => {
    seller.say = say;
    const asking = ask(name, seller.url);
    await expect(asking).rejects.toBeInstanceOf(AnswerRefusedError);
    await expect(asking).rejects.toThrow(message);
    expect(callsIn(seller)).toHaveLength(1);
  });

  it('one that is as deep as may be is taken, and maxAnswerBytes moves the limit', async () => {
    seller.say = inside(nested(253));
    await ask(name, seller.url);
    seller.say = inside(`"${'x'.repeat(2_000)}"`);
    await ask(name, seller.url, { maxAnswerBytes: 4_096 });
    await expect(ask(name, seller.url, { maxAnswerBytes: 1_024 })).rejects.toThrow('more than 1024 bytes');
  });

  it('a connection that breaks is no answer', async () => {
    seller.say = (_heard, res) => {
      res.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
      res.write(gzipSync('{}').subarray(0, 5), () => res.destroy());
    };
    await expect(ask(name, seller.url)).rejects.not.toBeInstanceOf(AnswerRefusedError);
  });

  it('of an error page the first 64 KiB are read, whatever its length', async () => {
    seller.say = endless({ 'content-type': 'text/plain' }, 'oops ', 'no\u001b[31m\n'.repeat(1_000), 500);
    const asking = ask(name, seller.url);
    await expect(asking).rejects.not.toBeInstanceOf(AnswerRefusedError);
    await expect(asking).rejects.toThrow(/answers HTTP 500/);
    const error = (await asking.catch((thrown: unknown) => thrown)) as Error;
    expect(error.message.length).toBeLessThan(500);
    // oxlint-disable-next-line no-control-regex -- none of the seller's may be there
    expect(error.message).not.toMatch(/[\u0000-\u001f]/);
  });

  it.each([400, 422, 499, 500])(
    'of an error with HTTP %i no more than maxAnswerBytes either',
    async (status) => {
      seller.say = (_heard, res) => {
        res.writeHead(status, { 'content-type': 'text/plain' }).end('x'.repeat(2_000));
      };
      const asking = ask(name, seller.url, { maxAnswerBytes: 1_024 });
      await expect(asking).rejects.not.toBeInstanceOf(AnswerRefusedError);
      await expect(asking).rejects.toThrow(`HTTP ${status}`);
    },
  );

  it.each([
    [65_536, 16_777_216, true],
    [65_537, 16_777_216, false],
    [1_024, 1_024, true],
    [1_025, 1_024, false],
  ])(
    'the JSON of an error, of %i bytes, with maxAnswerBytes %i: it is read: %s',
    async (bytes, most, isRead) => {
      seller.say = ({ message }, res) => {
        const error = { code: -32_000, message: 'our store is away' };
        const text = JSON.stringify({ jsonrpc: '2.0', id: message?.id, error });
        res
          .writeHead(500, { 'content-type': 'application/json' })
          .end(`${text.slice(0, -1).padEnd(bytes - 1)}}`);
      };
      const asking = ask(name, seller.url, { maxAnswerBytes: most });
      await expect(asking).rejects.toThrow(isRead ? 'our store is away' : 'HTTP 500');
    },
  );

  it('one that drips ends with timeoutMs', async () => {
    seller.say = (_heard, res) => {
      res.writeHead(200, { 'content-type': 'application/json' });
      const drip = setInterval(() => res.write(' '), 10);
      res.on('close', () => clearInterval(drip));
    };
    await expect(ask(name, seller.url, { timeoutMs: 300 })).rejects.toThrow(/timed out/i);
  });
});

describe('bounds', () => {
  it('count as many values as there are, or more, and end at the first that is too many', () => {
    const texts = ['{"a":1,"b":[1,2,{}]}', '[]', '"a,[{"', String.raw`["\",[",1]`, '[[],[[]]]', '1'];
    const count = (value: unknown): number =>
      typeof value === 'object' && value !== null
        ? Object.values(value).reduce<number>((sum, item) => sum + 1 + count(item), 0)
        : 0;
    for (const text of texts) {
      const values = count(JSON.parse(text));
      const bytes = Buffer.from(text);
      if (values > 0) expect(jsonRefusedReason(bytes, values - 1), text).toMatch(/more than/);
      // An empty object or array counts as one more.
      expect(jsonRefusedReason(bytes, values + 4), text).toBeUndefined();
      expect(() => requireBounded(JSON.parse(text), values)).not.toThrow();
      if (values > 0) expect(() => requireBounded(JSON.parse(text), values - 1)).toThrow(AnswerRefusedError);
    }
    expect(mostValues(MAX)).toBe(524_288);
  });

  it('of a value hold what it would be as JSON, cycles too', () => {
    const round: unknown[] = [];
    round.push(round);
    expect(() => requireBounded(round)).toThrow(/nests deeper than 256 levels/);
    expect(() => requireBounded(JSON.parse(nested(256)))).not.toThrow();
    expect(() => requireBounded(JSON.parse(nested(257)))).toThrow(/nests deeper/);
    const inArrays = (value: string): unknown => JSON.parse(`${'['.repeat(256)}${value}${']'.repeat(256)}`);
    for (const value of ['null', 'true', '1', '"x"'])
      expect(() => requireBounded(inArrays(value)), value).not.toThrow();
    for (const value of ['[]', '{}'])
      expect(() => requireBounded(inArrays(value)), value).toThrow(/nests deeper/);
  });

  it.each([
    ['escaped quotes', String.raw`\"`],
    ['backslashes', String.raw`\\\\`],
    ['both', String.raw`\\\"`],
  ])('find the end of a long string of %s', (_what, piece) => {
    for (let length = 0; length < 80; length += 1) {
      for (const before of ['', 'x'.repeat(31), 'x'.repeat(70)]) {
        const text = `["${before}${piece.repeat(length)}xx",[[${'1,'.repeat(5)}1]]]`;
        expect(JSON.parse(text)).toHaveLength(2);
        expect(jsonRefusedReason(Buffer.from(text), 8), text).toMatch(/more than 8 values/);
        expect(jsonRefusedReason(Buffer.from(text), 9), text).toBeUndefined();
      }
    }
  });

  it('give the event loop its turn between the steps of a large answer, and of a small one do not wait', async () => {
    const turnsOf = async (text: string): Promise<number> => {
      const waits = vi.spyOn(globalThis, 'setTimeout');
      try {
        expect(await boundedJson(Buffer.from(text), 9)).toEqual(JSON.parse(text));
        return waits.mock.calls.length;
      } finally {
        waits.mockRestore();
      }
    };
    expect(await turnsOf('{"a":[{}]}')).toBe(0);
    expect(await turnsOf(`{"a":"${'x'.repeat(65_536)}"}`)).toBe(3);
    // White space takes longer to count than to parse: each megabyte of it is a step.
    expect(await turnsOf(`{"a":${' '.repeat(4_194_304)}1}`)).toBe(7);
  });

  it('that a caller of ours has held are not walked again, whatever limit it was given', () => {
    const answer = [1, 2, 3];
    expect(() => requireBounded(answer, 2)).toThrow(AnswerRefusedError);
    expect(bounded(answer)).toBe(answer);
    expect(() => requireBounded(answer, 2)).not.toThrow();
    expect(() => requireBounded([1, 2, 3], 2)).toThrow(AnswerRefusedError);
  });

  it('text in the answer of a tool is parsed up to a megabyte, within the same bounds', async () => {
    const text = (value: string): Say =>
      sayResult(JSON.stringify({ content: [{ type: 'text', text: `{"a":${value}}` }] }));
    seller.say = text('1');
    expect(await ask('mcpCaller', seller.url)).toEqual({ a: 1 });
    seller.say = text(nested(300));
    await expect(ask('mcpCaller', seller.url)).rejects.toThrow(/nests deeper/);
    seller.say = text(`"${'x'.repeat(1_048_576)}"`);
    await expect(ask('mcpCaller', seller.url)).rejects.toThrow(/has no JSON object/);
  });
});

const PING = '{"jsonrpc":"2.0","id":"p","method":"ping"}';
const stream =
  (events: (heard: Heard) => string, end = true): Say =>
  (heard, res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
    res.write(events(heard));
    if (end) res.end();
  };

describe('an event stream', () => {
  it('gives the answer, whatever stands around it, and is closed then', async () => {
    let closed = false;
    seller.say = (heard, res) => {
      res.on('close', () => (closed = true));
      stream(
        (is) =>
          `: hello\r\nevent: other\r\ndata: {"jsonrpc":"2.0","id":${is.message?.id},"result":{"structuredContent":{"n":9}}}\r\n\r\n` +
          `data: {"jsonrpc":"2.0","method":"notifications/progress"}\n\ndata:\n\nid\n\n` +
          `data: {"jsonrpc":"2.0","id":77,"result":{}}\n\n` +
          `event: message\rid: 1\rdata: {"jsonrpc":"2.0",\rdata: "id":${is.message?.id},"result":${DONE}}\r\r` +
          `data: {"jsonrpc":"2.0","id":${is.message?.id},"result":{}}\n\n`,
        false,
      )(heard, res);
    };
    expect(await ask('mcpCaller', seller.url)).toEqual({ status: 'completed', n: 1 });
    await expect.poll(() => closed).toBe(true);
  });

  it('is read alike wherever a line end is cut, the one of an empty line too', async () => {
    const texts = ['data: é\r\n\n', 'data: é\r\r\n', 'data: é\n\r\n', 'data: é\r\n\r\n', 'data: é\r\r'];
    const pieces = async function* (text: string): AsyncGenerator<Uint8Array> {
      for (const byte of Buffer.from(text)) yield Buffer.of(byte);
    };
    for (const text of texts) {
      const events: unknown[] = [];
      for await (const event of eventsOf(pieces(text), { lines: 9 })) events.push(event);
      expect(events, JSON.stringify(text)).toEqual([{ data: 'é' }]);
    }
  });

  it('in pieces of one byte is the same', async () => {
    seller.say = (heard, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      const bytes = Buffer.from(
        `id: ü\r\n\r\ndata: ${answerText(heard, DONE.replace('"n":1', '"n":"é"'))}\r\n\r\n`,
      );
      void (async () => {
        for (const byte of bytes) await new Promise((next) => res.write(Buffer.of(byte), next));
        res.end();
      })();
    };
    expect(await ask('mcpCaller', seller.url)).toEqual({ status: 'completed', n: 'é' });
  });

  it('of pings answers ten', async () => {
    seller.say = (heard, res) => {
      if (heard.message?.method === 'tools/call')
        stream((is) => `data: ${PING}\n\n`.repeat(50) + `data: ${answerText(is, DONE)}\n\n`)(heard, res);
      else res.writeHead(202).end();
    };
    const pongs = (): number => seller.heard.filter(({ message }) => message && !message.method).length;
    await ask('mcpCaller', seller.url);
    expect(pongs()).toBeLessThanOrEqual(10);
  });

  it('of a ping sends no id back that is long', async () => {
    const ids = ['x'.repeat(4_096), 'y'.repeat(4_097), { a: 1 }, 7];
    const pings = ids.map((id) => `data: ${JSON.stringify({ jsonrpc: '2.0', id, method: 'ping' })}\n\n`);
    const pongs = (): unknown[] =>
      seller.heard.flatMap(({ message }) => (message && !message.method ? message.id : []));
    // The answer comes once what goes back has: it would else be too late for it.
    seller.say = (heard, res) => {
      if (heard.message?.method !== 'tools/call') {
        res.writeHead(202).end();
        return;
      }
      stream(() => pings.join(''), false)(heard, res);
      seller.instead = (_pong, pong) => {
        pong.writeHead(202).end();
        if ([ids[0], 7].every((id) => pongs().includes(id))) res.end(`data: ${answerText(heard, DONE)}\n\n`);
        return true;
      };
    };
    await ask('mcpCaller', seller.url);
    expect(new Set(pongs())).toEqual(new Set([ids[0], 7]));
  });

  it.each<readonly [string, Say, RegExp]>([
    [
      'without an end',
      endless({ 'content-type': 'text/event-stream' }, '', `:${'x'.repeat(65_535)}\n`),
      /more than 16777216 bytes/,
    ],
    ['of 524,289 lines', stream(() => '\n'.repeat(524_289)), /its stream has too many lines/],
    [
      'of one line without an end',
      endless({ 'content-type': 'text/event-stream' }, 'data: "', 'x'.repeat(65_536)),
      /more than 16777216 bytes/,
    ],
    ['with an event 300 levels deep', stream(() => `data: ${nested(300)}\n\n`), /nests deeper/],
    [
      'with an event of 600,000 values',
      stream(() => `data: [${'1,'.repeat(600_000)}1]\n\n`),
      /more than 524288 values/,
    ],
  ])('%s is refused', async (_what, say, message) => {
    seller.say = say;
    const asking = ask('mcpCaller', seller.url);
    await expect(asking).rejects.toBeInstanceOf(AnswerRefusedError);
    await expect(asking).rejects.toThrow(message);
  });

  it('that ends without an answer is an error at once', async () => {
    seller.say = stream(() => 'data: {}\n\n');
    await expect(ask('mcpCaller', seller.url)).rejects.toThrow(/ends its stream without an answer/);
  });
});
