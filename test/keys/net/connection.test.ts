import { connect, createServer, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { connectAny, type Dial, nodeFetch, plainFailure } from '../../../src/keys/for-tests.ts';
import { limited } from '../../../src/for-tests.ts';
import { createTestNetwork, OTHER_PUBLIC, PUBLIC } from '../../support/network.ts';
import { listening } from '../../support/tls.ts';
import { latch } from '../key-server.ts';
import { called, CAP, fetched, HOST, httpsBench, modules, rawBench, textOf } from './bench.ts';

const LIVE = PUBLIC;
const DEAD = '8.8.4.4';
const REFUSING = OTHER_PUBLIC;

/** A live address, and others that do not answer at all or refuse, each by a real socket. */
async function world(): Promise<{
  dial: Dial;
  dialled: readonly string[];
  open: () => number;
  pending: () => number;
}> {
  const server = await listening(createServer((socket) => socket.resume()));
  const gone = await listening(createServer());
  await gone.close();
  const network = createTestNetwork({}, { [LIVE]: server.port, [REFUSING]: gone.port });
  const dialled: string[] = [];
  let pending = 0;
  const dial: Dial = (address, port) => {
    dialled.push(address);
    if (address !== DEAD) return network.dial(address, port);
    // A lookup that never calls back: the socket stays on its way without end.
    const socket = connect({ host: 'nowhere.example', port, lookup: () => undefined });
    pending += 1;
    socket.once('close', () => {
      pending -= 1;
    });
    onTestFinished(() => {
      socket.destroy();
    });
    return { socket, peerAddress: () => address };
  };
  return { dial, dialled, open: server.open, pending: () => pending };
}

/** The time after which another address is tried beside one that has not answered does not pass. */
function noTimePasses(): void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
}

const never = (): AbortSignal => new AbortController().signal;

test('the first address that answers is taken, and no other is tried', async () => {
  const { dial, dialled } = await world();
  noTimePasses();
  const socket = await connectAny([LIVE, DEAD, REFUSING], 443, dial, never());
  expect(socket.remoteAddress).toBe('127.0.0.1');
  expect(dialled).toEqual([LIVE]);
  socket.destroy();
});

test('after one that refuses the next is tried', async () => {
  const { dial, dialled } = await world();
  noTimePasses();
  const socket = await connectAny([REFUSING, LIVE], 443, dial, never());
  expect(dialled).toEqual([REFUSING, LIVE]);
  socket.destroy();
});

test('beside one that does not answer the next is tried, and the silent one is given up', async () => {
  const { dial, dialled, pending } = await world();
  const socket = await connectAny([DEAD, LIVE], 443, dial, never());
  expect(dialled).toEqual([DEAD, LIVE]);
  expect(socket.destroyed).toBe(false);
  await expect.poll(pending).toBe(0);
  socket.destroy();
});

test('an address that connects to another peer is skipped, and the next is tried', async () => {
  const { dial, dialled } = await world();
  const lying: Dial = (address, port) =>
    dialled.length === 0 ? { ...dial(address, port), peerAddress: () => '10.0.0.1' } : dial(address, port);
  const socket = await connectAny([LIVE, LIVE], 443, lying, never());
  expect(dialled).toEqual([LIVE, LIVE]);
  socket.destroy();
});

test('of two connections at the same moment one is kept', async () => {
  const sockets: Socket[] = [];
  const dial: Dial = (address, port) => {
    const socket = connect({ host: 'held.example', port, lookup: () => undefined });
    sockets.push(socket);
    // Runtimes differ in whether they let one connection be heard of before the next one is.
    if (sockets.length === 2) setImmediate(() => sockets.map((each) => each.emit('connect')));
    return { socket, peerAddress: () => address };
  };
  const socket = await connectAny([DEAD, LIVE], 443, dial, never());
  await expect.poll(() => sockets.filter(({ destroyed }) => !destroyed)).toEqual([socket]);
  socket.destroy();
});

test('when all fail the first failure is the reason', async () => {
  const { dial } = await world();
  await expect(connectAny([REFUSING, '9.9.9.9'], 443, dial, never())).rejects.toThrow(
    'ECONNREFUSED 127.0.0.1',
  );
});

test('a connection with an unknown peer is refused', async () => {
  const { dial, open } = await world();
  const blind: Dial = (address, port) => ({ ...dial(address, port), peerAddress: () => undefined });
  await expect(connectAny([LIVE], 443, blind, never())).rejects.toThrow('went to nowhere');
  await expect.poll(open).toBe(0);
});

test.each([
  ['the second is of the other', [1, 2, 3, 4, 5], [LIVE]],
  ['so is the fourth', [1, 2, 3, 4, 5], ['9.9.9.9', LIVE]],
])('address families are tried alternately: %s', async (_what, ipv6, ipv4) => {
  const { dial, dialled } = await world();
  noTimePasses();
  const addresses = [...ipv6.map((last) => `2606:4700::${last}`), ...ipv4];
  const socket = await connectAny(addresses, 443, dial, never());
  expect(dialled.slice(0, 2)).toEqual(['2606:4700::1', ipv4[0]]);
  expect(dialled.at(-1)).toBe(LIVE);
  socket.destroy();
});

test('of thousands of addresses four are tried', async () => {
  const { dial, dialled } = await world();
  const many = Array.from({ length: 5000 }, () => REFUSING);
  await expect(connectAny(many, 443, dial, never())).rejects.toThrow('ECONNREFUSED');
  expect(dialled).toHaveLength(4);
});

test('the time for connecting ends all attempts', async () => {
  const { dial, dialled, pending } = await world();
  const limit = { ms: 100, reason: 'no connection within 100 ms' };
  const attempt = limited(
    limit,
    never(),
    async (signal) => await connectAny([DEAD, LIVE], 443, dial, signal),
  );
  await expect(attempt).rejects.toThrow('no connection within 100 ms');
  expect(dialled).toEqual([DEAD]);
  await expect.poll(pending).toBe(0);
});

test('an aborted signal begins no attempt', async () => {
  const { dial, pending } = await world();
  const signal = AbortSignal.abort(new Error('stopped'));
  await expect(connectAny([DEAD, DEAD, DEAD], 443, dial, signal)).rejects.toThrow('stopped');
  await expect.poll(pending).toBe(0);
});

const CLOSED = 'the connection was closed before the whole answer had come';

test('two fetches, two connections: none is kept', async () => {
  const bench = await httpsBench((_req, res) => {
    res.setHeader('connection', 'keep-alive').end('{}');
  });
  await fetched(bench.transport);
  await fetched(bench.transport);
  expect(bench.server.connections()).toBe(2);
  await bench.server.idle();
  expect(bench.server.open()).toBe(0);
});

test.each([301, 302, 303, 307, 308])('a redirect is handed back and not followed: %i', async (status) => {
  const paths: (string | undefined)[] = [];
  const bench = await httpsBench((req, res) => {
    paths.push(req.url);
    res.writeHead(status, { location: '/elsewhere' }).end();
  });
  const response = await called(bench.transport);
  expect(response.status).toBe(status);
  expect(response.headers.get('location')).toBe('/elsewhere');
  expect(await fetched(bench.transport)).toEqual({
    ok: false,
    reason: `answered with a redirect (${status})`,
  });
  expect(paths).toEqual(['/doc', '/doc']);
});

test('gzip is refused, and not decoded either', async () => {
  const zipped = gzipSync('{}');
  const bench = await httpsBench((_req, res) => {
    res.setHeader('content-encoding', 'gzip').end(zipped);
  });
  expect(await fetched(bench.transport)).toEqual({ ok: false, reason: 'content-encoding gzip' });
  const response = await called(bench.transport);
  expect(Buffer.from(await response.arrayBuffer())).toEqual(zipped);
  await bench.server.idle();
});

test('a document of exactly the cap is read, one byte more is not', async () => {
  const bench = await httpsBench((req, res) => {
    res.end('x'.repeat(req.url === '/fits' ? CAP : CAP + 1));
  });
  expect(textOf(await fetched(bench.transport, `https://${HOST}/fits`))).toHaveLength(CAP);
  expect(await fetched(bench.transport, `https://${HOST}/over`)).toEqual({
    ok: false,
    reason: `more than ${CAP} bytes`,
  });
  await bench.server.idle();
});

test('an endless body is cut off at the cap, and its connection ended', async () => {
  const closed = latch();
  const bench = await httpsBench((_req, res) => {
    res.once('close', closed.open);
    const more = (): void => {
      if (!res.destroyed) res.write('x'.repeat(10_000), more);
    };
    more();
  });
  expect(await fetched(bench.transport)).toEqual({ ok: false, reason: `more than ${CAP} bytes` });
  await closed.opened;
});

test('a body is read from the connection only as it is asked for', async () => {
  const stalled = latch();
  let written = 0;
  const bench = await httpsBench((_req, res) => {
    const chunk = Buffer.alloc(65_536);
    // A reader without back-pressure takes all of this; one with it leaves the sender waiting for `drain`.
    const more = (): void => {
      while (written < 1024) {
        written += 1;
        if (res.write(chunk)) continue;
        const waiting = setTimeout(stalled.open, 500);
        res.once('drain', () => {
          clearTimeout(waiting);
          more();
        });
        return;
      }
      res.end();
    };
    more();
  });
  const response = await called(bench.transport);
  await stalled.opened;
  expect(written).toBeLessThan(1024);
  const whole = await response.arrayBuffer();
  expect(whole.byteLength).toBe(1024 * 65_536);
});

describe('one deadline applies to the whole answer', () => {
  test.each([
    ['a slow body does', 'HTTP/1.1 200 OK\r\n\r\n', ' '],
    ['slow headers do', 'HTTP/1.1 200 OK\r\n', 'x-more: 1\r\n'],
    ['endless interim answers do', '', 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'],
  ])('%s not prolong it', async (_what, start, piece) => {
    const bench = await rawBench((socket) => {
      socket.write(start);
      const drip = setInterval(() => socket.write(piece), 20);
      socket.once('close', () => {
        clearInterval(drip);
      });
    });
    expect(await fetched(bench.transport, undefined, 300)).toEqual({
      ok: false,
      reason: 'no whole answer within 300 ms',
    });
    await bench.server.idle();
  });
});

describe('bytes of the connection are bounded, not only those of the body', () => {
  const limit = 2 * CAP + 65_536;
  const chunked = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';
  const mebibyteOf = (piece: string): string[] =>
    Array<string>(Math.ceil(1_048_576 / piece.length)).fill(piece);

  test.each([
    ['100 Continue', '', 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(100)],
    ['103 Early Hints', '', `HTTP/1.1 103 Early Hints\r\nlink: <${'a'.repeat(15_000)}>\r\n\r\n`],
    ['extensions of chunks', chunked, `1;a=${'x'.repeat(16_000)}\r\nx\r\n`],
    ['empty lines before the answer', '', '\r\n'.repeat(1_000)],
    ['zeros in front of the size of a chunk', chunked, '0'.repeat(1_000)],
  ])('a mebibyte of %s is not read to its end', async (_what, head, piece) => {
    const bench = await rawBench((socket) => {
      Readable.from([head, ...mebibyteOf(piece), '0\r\n\r\n']).pipe(socket);
    });
    expect(await fetched(bench.transport)).toEqual({
      ok: false,
      reason: `more than ${limit} bytes on the connection`,
    });
    await bench.server.idle();
  });

  test('a document in chunks of one byte is read', async () => {
    const bench = await rawBench((socket) => socket.end(`${chunked}${'1\r\nx\r\n'.repeat(CAP)}0\r\n\r\n`));
    expect(textOf(await fetched(bench.transport))).toHaveLength(CAP);
  });
});

test('the signal ends a body that is being read, with its reason', async () => {
  const bench = await httpsBench((_req, res) => {
    res.write('x');
  });
  const controller = new AbortController();
  const response = await called(bench.transport, undefined, controller.signal);
  const reading = response.text();
  controller.abort(new Error('stopped'));
  await expect(reading).rejects.toThrow('stopped');
  await bench.server.idle();
});

test('a body that is not wanted any more ends its connection', async () => {
  const bench = await httpsBench((_req, res) => {
    res.write('x');
  });
  const response = await called(bench.transport);
  await response.body?.cancel();
  await bench.server.idle();
  expect(bench.server.open()).toBe(0);
});

describe('framing of answers', () => {
  test.each([
    ['HTTP/1.1 with a length', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}'],
    [
      'HTTP/1.1 in chunks',
      'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n',
    ],
    [
      'chunks with a trailer',
      'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\na: b\r\n\r\n',
    ],
    ['HTTP/1.1 ended by closing', 'HTTP/1.1 200 OK\r\n\r\n{}'],
    ['HTTP/1.0', 'HTTP/1.0 200 OK\r\n\r\n{}'],
    ['HTTP/1.0 with a length', 'HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n{}'],
    [
      'after an interim answer',
      'HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}',
    ],
    ['with more behind it', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\n\r\nx'],
  ])('%s', async (_what, answer) => {
    const bench = await rawBench((socket) => socket.end(answer, 'latin1'));
    expect(textOf(await fetched(bench.transport))).toBe('{}');
  });

  test.each([204, 205, 304])('a status without a body: %i', async (status) => {
    const bench = await httpsBench((_req, res) => {
      res.writeHead(status, { etag: '"1"' }).end();
    });
    const response = await called(bench.transport);
    expect([response.status, response.body, response.headers.get('etag')]).toEqual([status, null, '"1"']);
    await bench.server.idle();
  });

  test('a body that comes with such a status all the same, and never ends, holds no connection', async () => {
    const bench = await rawBench((socket) => {
      socket.write('HTTP/1.1 205 Reset Content\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n');
    });
    expect((await called(bench.transport)).status).toBe(205);
    await bench.server.idle();
  });

  test('repeated headers are all there', async () => {
    const bench = await rawBench((socket) =>
      socket.end('HTTP/1.1 200 OK\r\ncache-control: max-age=60\r\nCache-Control: public\r\n\r\n{}'),
    );
    const response = await called(bench.transport);
    expect(response.headers.get('cache-control')).toBe('max-age=60, public');
  });
});

describe('invalid answers', () => {
  test.each([
    ['nothing at all', '', CLOSED],
    ['half a head', 'HTTP/1.1 200 OK\r\ncontent-', CLOSED],
    ['less than the length says', 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{}', CLOSED],
    ['chunks without an end', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n', CLOSED],
    ['another protocol', 'SSH-2.0-OpenSSH_9.9\r\n', /^Parse Error/],
    [
      'a length and chunks',
      'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n',
      /^Parse/,
    ],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}', /^Parse/],
    ['a broken chunk', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n', /^Parse/],
    ['a NUL in a header', 'HTTP/1.1 200 OK\r\nx: a\0b\r\n\r\n{}', /^Parse/],
    ['a status that is none', 'HTTP/1.1 099 What\r\ncontent-length: 2\r\n\r\n{}', /./],
    ['a status above all', 'HTTP/1.1 999 What\r\ncontent-length: 2\r\n\r\n{}', 'answered 999'],
    [
      'another protocol from here on',
      'HTTP/1.1 101 Go\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n',
      'the connection was closed without an answer',
    ],
  ])('%s', async (_what, answer, reason) => {
    const bench = await rawBench((socket) => socket.end(answer, 'latin1'));
    const result = await fetched(bench.transport);
    expect(result).toEqual({
      ok: false,
      reason: typeof reason === 'string' ? reason : expect.stringMatching(reason),
    });
    await bench.server.idle();
  });

  test.each([
    ['one long line', `x: ${'a'.repeat(20_000)}\r\n`, 'the headers are larger than 16 KiB'],
    ['many lines', `x: ${'a'.repeat(100)}\r\n`.repeat(200), 'the headers are larger than 16 KiB'],
    ['very many empty lines', 'x:\r\n'.repeat(10_000), 'more than 256 header lines'],
    ['one line too many', 'x: a\r\n'.repeat(257), 'more than 256 header lines'],
  ])('a head that is too large: %s', async (_what, lines, reason) => {
    const bench = await rawBench((socket) => socket.end(`HTTP/1.1 200 OK\r\n${lines}\r\n{}`));
    expect(await fetched(bench.transport)).toEqual({ ok: false, reason });
    await bench.server.idle();
  });

  test.each([`x: ${'a'.repeat(16_000)}\r\n`, 'x: a\r\n'.repeat(256)])(
    'a head of just under that is read',
    async (lines) => {
      const bench = await rawBench((socket) => socket.end(`HTTP/1.1 200 OK\r\n${lines}\r\n{}`));
      expect(textOf(await fetched(bench.transport))).toBe('{}');
    },
  );

  test('a connection that is reset', async () => {
    const server = await listening(
      createServer((socket) => {
        socket.once('data', () => socket.resetAndDestroy());
      }),
    );
    const transport = nodeFetch(modules(), { allowLoopback: true });
    await expect(called(transport, `http://127.0.0.1:${server.port}/`)).rejects.toThrow(CLOSED);
  });
});

test.each([undefined, null, 'text', { message: 'theirs' }])(
  'a thrown value that is no Error becomes one: %j',
  (thrown) => {
    expect(plainFailure(thrown)).toEqual(new Error('the fetch failed'));
  },
);

test('error codes of the runtime become plain words, anything else stays', () => {
  const coded = (code: unknown): Error => Object.assign(new Error('as the runtime says it'), { code });
  expect(plainFailure(coded('ECONNRESET')).message).toBe(
    'the connection was closed before the whole answer had come',
  );
  expect(plainFailure(coded('ERR_TLS_CERT_ALTNAME_INVALID')).message).toBe(
    'the certificate is for another host',
  );
  for (const code of [undefined, 7, 'EOTHER', 'toString']) {
    const error = coded(code);
    expect(plainFailure(error)).toBe(error);
  }
});
