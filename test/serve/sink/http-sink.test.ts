import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ConfigError } from '../../../src/index.ts';
import { httpSink, type Sink } from '../../../src/serve/sink/for-tests.ts';
import { freePort } from '../../support/free-port.ts';
import { gate } from '../../support/gate.ts';
import { ears, HOSTILE } from '../../support/hostile-text.ts';
import { createTestCa, startHttpsServer } from '../../support/tls.ts';
import { type Deed, describeSink, LATER_MS, REASON, type Received } from './contract.ts';
import { attemptOf, changed, eventOf, faultOf, idOf, payloads, SECRET } from './kit.ts';

const event = eventOf(payloads.tool('completed'));
const OTHER_SECRET = `whsec_${Buffer.alloc(24, 2).toString('base64')}`;
/** Long enough for any machine. */
const PATIENT_MS = 120_000;

interface Options {
  readonly url?: (port: number) => string;
  readonly secrets?: readonly string[];
  readonly timeoutMs?: number;
  readonly headers?: Record<string, string>;
  readonly now?: () => number;
}

interface Given {
  readonly headers: Record<string, string>;
  readonly body: string;
  readonly request: IncomingMessage;
}

interface Bench {
  readonly sink: Sink;
  readonly port: number;
  readonly given: Given[];
  /** Connections so far. */
  readonly sockets: Socket[];
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

const sinkOf = (port: number, { url, ...more }: Options): Sink =>
  httpSink({
    url: url?.(port) ?? `http://127.0.0.1:${port}/events`,
    secrets: [SECRET],
    timeoutMs: PATIENT_MS,
    ...more,
  });

/** A backend that reads each event before it answers, and its sink. */
async function bench(
  answer: (response: ServerResponse, request: IncomingMessage) => unknown,
  options: Options = {},
): Promise<Bench> {
  const given: Given[] = [];
  const sockets: Socket[] = [];
  const listener: RequestListener = (request, response) => {
    bodyOf(request)
      .then((body) => {
        given.push({ headers: request.headers as Record<string, string>, body, request });
        return answer(response, request);
      })
      .catch(() => {});
  };
  const server = createServer(listener).listen(0, '127.0.0.1');
  server.on('connection', (socket) => sockets.push(socket));
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const sink = sinkOf(port, options);
  onTestFinished(async () => {
    server.closeAllConnections();
    await sink.close();
    server.close();
  });
  return { sink, port, given, sockets };
}

/** A backend that answers by these bytes as soon as it is written to. */
async function rawBench(answer: (socket: Socket) => unknown, options: Options = {}): Promise<Bench> {
  const sockets: Socket[] = [];
  const server = createTcpServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
    socket.once('data', () => answer(socket));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const sink = sinkOf(port, options);
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await sink.close();
    server.close();
  });
  return { sink, port, given: [], sockets };
}

const answerWith =
  (status: number, headers: Record<string, string> = {}, body = '') =>
  (response: ServerResponse): void =>
    void response.writeHead(status, headers).end(body);

const ANSWERS: Readonly<Record<Exclude<Deed, 'hang'>, (response: ServerResponse) => void>> = {
  done: answerWith(204),
  permanent: answerWith(422, {}, REASON),
  fault: answerWith(503, {}, REASON),
  later: answerWith(429, { 'retry-after': String(LATER_MS / 1000) }),
};

describeSink('a URL', async (deed, timeoutMs) => {
  const received: Received[] = [];
  const abandoned = gate();
  const { sink, given } = await bench(
    (response, request) => {
      const { headers, body } = given.at(-1) ?? expect.fail('no event');
      if (request.method !== 'POST') return response.writeHead(405).end();
      const { id, data } = JSON.parse(body) as { readonly id: string; readonly data: unknown };
      expect(headers['webhook-id']).toBe(id);
      received.push({ id, event: data });
      const does = deed(id);
      if (does !== 'hang') return ANSWERS[does](response);
      response.on('close', () => abandoned.open());
      return undefined;
    },
    { timeoutMs },
  );
  return { sink, received, abandoned: abandoned.opened };
});

describe('the request of an HTTP sink', () => {
  it('is a POST of a CloudEvent in structured mode, with the owner’s headers', async () => {
    const { sink, given } = await bench(answerWith(200), {
      url: (port) => `http://user:p%40ss@127.0.0.1:${port}/a%20path?x=1#part`,
      headers: { 'X-Tenant': 'a' },
    });
    await sink.send(attemptOf(event));
    const [{ headers, body, request } = expect.fail('nothing came')] = given;
    expect([request.method, request.url]).toEqual(['POST', '/a%20path?x=1']);
    expect(headers).toMatchObject({
      authorization: `Basic ${Buffer.from('user:p@ss').toString('base64')}`,
      'content-type': 'application/cloudevents+json; charset=utf-8',
      'content-length': String(Buffer.byteLength(body)),
      'webhook-id': idOf(1),
      'x-tenant': 'a',
      'user-agent': 'proto-webhooks',
    });
    expect(JSON.parse(body)).toMatchObject({ specversion: '1.0', id: idOf(1), type: 'proto.task.completed' });
    expect(sink.name).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/a%20path$/);
  });

  it('is verified by the library standardwebhooks, with either of two secrets', async () => {
    const { sink, given } = await bench(answerWith(200), { secrets: [SECRET, OTHER_SECRET] });
    await sink.send(attemptOf(eventOf(payloads.tool('completed', { message: 'Größe 🦀' }))));
    const [{ headers, body } = expect.fail('nothing came')] = given;
    for (const secret of [SECRET, OTHER_SECRET]) {
      expect(new Webhook(secret).verify(body, headers)).toEqual(JSON.parse(body));
    }
    const third = new Webhook(`whsec_${Buffer.alloc(32, 3).toString('base64')}`);
    expect(() => third.verify(body, headers)).toThrow('No matching signature found');
    expect(() => new Webhook(SECRET).verify(`${body} `, headers)).toThrow('No matching signature found');
    const moved = { ...headers, 'webhook-id': idOf(2) };
    expect(() => new Webhook(SECRET).verify(body, moved)).toThrow('No matching signature found');
  });

  it('is signed anew for each attempt, by the clock that it is given', async () => {
    let now = 1_700_000_000_999;
    const { sink, given } = await bench(answerWith(200), { now: () => now });
    await sink.send(attemptOf(event));
    now += 60_000;
    await sink.send(attemptOf(event, { repeated: true }));
    expect(given.map(({ headers }) => headers['webhook-timestamp'])).toEqual(['1700000000', '1700000060']);
    expect(new Set(given.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    expect(new Set(given.map(({ headers }) => headers['webhook-signature'])).size).toBe(2);
  });

  it('has no text of a seller’s in its line or headers', async () => {
    const text = `x\r\nx-forged: ${HOSTILE}`;
    const hostile = changed(event, {
      taskId: text,
      taskType: text,
      status: text,
      timestamp: text,
      operationId: text,
    });
    const { sink, given } = await bench(answerWith(200));
    await sink.send(attemptOf(hostile));
    const [{ headers, body, request } = expect.fail('nothing came')] = given;
    expect(JSON.stringify([headers, request.rawHeaders, request.url])).not.toContain('MARK7');
    expect(new Webhook(SECRET).verify(body, headers)).toMatchObject({ data: { taskId: text } });
  });

  it('uses one connection for what comes one after the other', async () => {
    const { sink, sockets } = await bench(answerWith(200, {}, 'thank you'));
    for (let n = 0; n < 5; n += 1) await sink.send(attemptOf(event));
    expect(sockets).toHaveLength(1);
  });

  it('is made once more on a new connection where the sink had closed the one that was kept', async () => {
    const { sink, sockets, given } = await bench((response, { socket }) => {
      // As where an idle connection's end and the next event meet.
      if (given.filter(({ request }) => request.socket === socket).length > 1) socket.resetAndDestroy();
      else response.end();
    });
    await sink.send(attemptOf(event));
    await sink.send(attemptOf(event));
    expect([sockets.length, given.length]).toEqual([2, 3]);
    const told = given.map(({ body }) => (JSON.parse(body) as { readonly repeated: boolean }).repeated);
    expect(told).toEqual([false, false, true]);
  });

  it('is not made again on another connection where it was given up', async () => {
    const stop = new AbortController();
    const { sink, given } = await bench((response) => {
      if (given.length === 2) stop.abort(new Error('it stops'));
      else response.end();
    });
    const send = (n: number, more = {}): Promise<void> =>
      sink.send({ ...attemptOf(event), id: idOf(n), ...more });
    await send(1);
    await expect(send(2, { signal: stop.signal })).rejects.toThrow();
    // Behind another one, on a connection that is made later.
    await send(3);
    await send(4);
    expect(given.map(({ headers }) => headers['webhook-id'])).toEqual([1, 2, 3, 4].map(idOf));
  });

  it('is not made a second time where a new connection is closed', async () => {
    const { sink, sockets } = await bench((_, { socket }) => socket.resetAndDestroy());
    expect((await faultOf(sink.send(attemptOf(event)))).message).toMatch(/ECONNRESET|socket hang up/);
    expect(sockets).toHaveLength(1);
  });
});

describe('the answer of an HTTP sink', () => {
  it.each([200, 201, 202, 204, 206, 299])('%i is done', async (status) => {
    // What else it says makes no difference.
    const { sink } = await bench(answerWith(status, { 'webhook-reject': 'permanent' }));
    await sink.send(attemptOf(event));
  });

  it.each<readonly [number, string | undefined]>([
    [422, undefined],
    ...[300, 302, 307, 400, 401, 403, 404, 408, 409, 410, 425, 429, 499, 500, 502, 503, 504, 599].flatMap(
      (status) => ['permanent', ' Permanent '].map((reject) => [status, reject] as const),
    ),
  ])('%i with Webhook-Reject %s makes the event DEAD', async (status, reject) => {
    const { sink } = await bench(
      answerWith(status, reject === undefined ? {} : { 'webhook-reject': reject }),
    );
    expect(await faultOf(sink.send(attemptOf(event)))).toMatchObject({
      code: 'permanent_error',
      message: `the sink answered ${status}`,
    });
  });

  it.each([
    300, 301, 302, 303, 304, 307, 308, 400, 401, 402, 403, 404, 405, 408, 409, 410, 411, 413, 415, 425, 426,
    429, 431, 451, 499, 500, 501, 502, 503, 504, 505, 511, 599,
  ])('%i is a fault', async (status) => {
    const { sink } = await bench(answerWith(status, { 'webhook-reject': 'transient' }));
    expect(await faultOf(sink.send(attemptOf(event)))).toMatchObject({
      code: 'sink_fault',
      message: `the sink answered ${status}`,
      retryAfterMs: undefined,
    });
  });

  it.each([301, 302, 303, 307, 308])('%i is not followed', async (status) => {
    const elsewhere = await bench(answerWith(200));
    const { sink } = await bench(answerWith(status, { location: `http://127.0.0.1:${elsewhere.port}/` }));
    await faultOf(sink.send(attemptOf(event)));
    expect(elsewhere.sockets).toEqual([]);
  });

  const NOW = Date.UTC(2026, 0, 1);
  it.each<readonly [string, number | undefined]>([
    ['0', undefined],
    ['7', 7_000],
    ['Thu, 01 Jan 2026 00:00:09 GMT', 9_000],
    ['Wed, 31 Dec 2025 00:00:09 GMT', undefined],
    ['soon', undefined],
    ['-5', undefined],
    ['1e3', undefined],
    ['9'.repeat(400), Infinity],
  ])('Retry-After %s puts the next attempt off by %s ms', async (retryAfter, retryAfterMs) => {
    const { sink } = await bench(answerWith(503, { 'retry-after': retryAfter }), { now: () => NOW });
    expect(await faultOf(sink.send(attemptOf(event)))).toMatchObject({ retryAfterMs });
  });

  it('is shown by its first 200 characters, printable', async () => {
    const heard = ears();
    for (const body of [HOSTILE, `${'é'.repeat(10)}${HOSTILE}`, 'x'.repeat(60_000)]) {
      const { sink } = await bench(answerWith(500, { 'content-type': 'text/html' }, body));
      const { message } = await faultOf(sink.send(attemptOf(event)));
      heard.hear(message);
      expect(message.length).toBeLessThanOrEqual('the sink answered 500: '.length + 200);
    }
    heard.expectClean(2);
  });

  it.each([
    [200, undefined],
    [500, 'the sink answered 500: xxx'],
  ])('%i with a body without end counts, and no more of it is read', async (status, message) => {
    const written = { bytes: 0 };
    const closed = gate();
    const { sink } = await bench(async (response) => {
      response.writeHead(status);
      response.on('close', () => closed.open());
      const chunk = Buffer.alloc(16_384, 'x');
      while (!response.destroyed) {
        written.bytes += chunk.length;
        if (!response.write(chunk)) await Promise.race([once(response, 'drain'), closed.opened]);
      }
    });
    const sent = sink.send(attemptOf(event));
    if (message === undefined) await sent;
    else expect((await faultOf(sent)).message).toContain(message);
    await closed.opened;
    // What is on the way fills the buffers of both ends.
    expect(written.bytes).toBeLessThan(64 * 1024 * 1024);
  });

  it.each([
    [204, 200, undefined],
    [503, 503, 'the sink answered 503: begun'],
  ])('counts from its status on, where its body does not end (%#)', async (_, status, message) => {
    const { sink, sockets } = await bench((response) => void response.writeHead(status).write('begun'), {
      timeoutMs: 50,
    });
    const sent = sink.send(attemptOf(event));
    if (message === undefined) await sent;
    else expect((await faultOf(sent)).message).toBe(message);
    await expect.poll(() => sockets.every(({ destroyed }) => destroyed)).toBe(true);
  });

  it('counts where its connection breaks in its body', async () => {
    const { sink } = await rawBench((socket) =>
      socket.end('HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nbegun'),
    );
    await sink.send(attemptOf(event));
  });

  it.each<readonly [string, (socket: Socket) => unknown, RegExp]>([
    ['is not HTTP', (socket) => socket.end('SSH-2.0-OpenSSH\r\n'), /HTTP/],
    [
      'ends in its headers',
      (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-le'),
      /hang up|ECONNRESET|HTTP/,
    ],
    ['never comes: the connection is closed', (socket) => socket.end(), /hang up|ECONNRESET/],
    [
      'has headers without end',
      (socket) => socket.write(`HTTP/1.1 200 OK\r\n${`x: ${'y'.repeat(1_000)}\r\n`.repeat(1_000)}`),
      /Header overflow/i,
    ],
    [
      'switches to another protocol',
      (socket) =>
        socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n'),
      /hang up|closed without an answer/,
    ],
    [
      'is smuggled by two lengths',
      (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n'),
      /./,
    ],
  ])('is a fault where it %s', async (_, answer, message) => {
    const { sink } = await rawBench(answer);
    const error = await faultOf(sink.send(attemptOf(event)));
    expect(error).toMatchObject({ code: 'sink_fault' });
    expect(error.message).toMatch(message);
  });

  it('may come behind informational ones, and too many of them are no answer', async () => {
    const interim = 'HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n';
    const { sink } = await rawBench((socket) =>
      socket.end(`${interim.repeat(5)}HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n`),
    );
    await sink.send(attemptOf(event));
    const endless = await rawBench(
      (socket) => {
        const timer = setInterval(() => socket.write(interim), 1);
        socket.on('close', () => clearInterval(timer));
      },
      { timeoutMs: 50 },
    );
    expect((await faultOf(endless.sink.send(attemptOf(event)))).message).toBe('no answer within 50 ms');
  });

  it('does not come where the event is never read', async () => {
    const { sink } = await rawBench((socket) => socket.pause(), { timeoutMs: 50 });
    const large = changed(event, { message: 'x'.repeat(8_000_000) });
    expect((await faultOf(sink.send(attemptOf(large)))).message).toBe('no answer within 50 ms');
  });

  it('does not come from a port that nobody listens on, or a name that is none', async () => {
    const port = await freePort();
    for (const host of ['127.0.0.1', 'localhost']) {
      const sink = sinkOf(port, { url: () => `http://${host}:${port}/` });
      expect((await faultOf(sink.send(attemptOf(event)))).message).toContain('ECONNREFUSED');
      await expect(sink.check(new AbortController().signal)).rejects.toThrow('ECONNREFUSED');
    }
    const nowhere = sinkOf(port, { url: () => 'http://sink.invalid/' });
    expect((await faultOf(nowhere.send(attemptOf(event)))).message).toMatch(/sink\.invalid/);
  });
});

describe('an HTTP sink', () => {
  it('asks by OPTIONS whether it is there, and takes any answer for a yes', async () => {
    for (const status of [200, 204, 401, 404, 405, 500]) {
      const { sink, given } = await bench(answerWith(status));
      await sink.check(new AbortController().signal);
      expect(given.map(({ request, body }) => [request.method, body])).toEqual([['OPTIONS', '']]);
    }
    const { sink } = await bench(() => {}, { timeoutMs: 20 });
    await expect(sink.check(new AbortController().signal)).rejects.toThrow('no answer within 20 ms');
  });

  it.each<readonly [string, Parameters<typeof httpSink>[0], string]>([
    ['url', { url: 'backend:3000', secrets: [SECRET], timeoutMs: 1 }, 'url: is backend:'],
    ['url', { url: '/events', secrets: [SECRET], timeoutMs: 1 }, 'url: is no URL.'],
    [
      'url',
      { url: 'http://a%ZZ@127.0.0.1/', secrets: [SECRET], timeoutMs: 1 },
      'url: has a name or password',
    ],
    ['secrets', { url: 'http://127.0.0.1/', secrets: [], timeoutMs: 1 }, 'secrets: there are 0.'],
    [
      'secrets',
      { url: 'http://127.0.0.1/', secrets: [SECRET, SECRET, SECRET], timeoutMs: 1 },
      'secrets: there are 3.',
    ],
    ...[
      ['hunter2', 'does not begin with'],
      ['whsec_hunter2!', 'is not base64'],
      ['whsec_aHVudGVyMg==', 'has 7 bytes'],
      [`whsec_${Buffer.alloc(65, 1).toString('base64')}`, 'has 65 bytes'],
    ].map(
      ([secret = '', why = '']) =>
        ['secret', { url: 'http://127.0.0.1/', secrets: [secret], timeoutMs: 1 }, `secret: ${why}`] as const,
    ),
    ...['content-type', 'Webhook-Id', 'HOST', 'transfer-encoding'].map(
      (name) =>
        [
          'headers',
          { url: 'http://127.0.0.1/', secrets: [SECRET], timeoutMs: 1, headers: { [name]: 'x' } },
          `headers: ${name} is set by the sink itself.`,
        ] as const,
    ),
    [
      'headers',
      { url: 'http://127.0.0.1/', secrets: [SECRET], timeoutMs: 1, headers: { 'x-a': 'b\r\nc: d' } },
      'headers: "x-a" cannot be sent.',
    ],
    [
      'headers',
      { url: 'http://127.0.0.1/', secrets: [SECRET], timeoutMs: 1, headers: { 'a b': 'c' } },
      'headers: "a b" cannot be sent.',
    ],
  ])('refuses a wrong %s: %j', (_, options, message) => {
    expect(() => httpSink(options)).toThrow(ConfigError);
    expect(() => httpSink(options)).toThrow(message);
    expect(() => httpSink(options)).not.toThrow(/hunter2|aHVudGVyMg/);
  });

  it('has a fault at a certificate that nobody vouches for', async () => {
    const ca = await createTestCa();
    const identity = await ca.issue(['127.0.0.1']);
    const { port } = await startHttpsServer(identity, (_, response) => void response.end());
    const sink = sinkOf(port, { url: () => `https://127.0.0.1:${port}/` });
    expect((await faultOf(sink.send(attemptOf(event)))).message).toMatch(/certificate/);
  });
});
