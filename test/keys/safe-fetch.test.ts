import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import type { KeyFetch } from '../../src/index.ts';
import { defaultFetch, fetchDocument, type Fetched, type FetchRules } from '../../src/keys/for-tests.ts';
import { gate, latch, sends, startKeyServer } from './key-server.ts';

const CAP = 1000;
const RULES: FetchRules = { fetch: defaultFetch(true), allowLoopback: true, deadlineMs: 5000 };

async function fetched(url: string, rules: Partial<FetchRules> = {}): Promise<Fetched> {
  return await fetchDocument({ ...RULES, ...rules }, { url, maxBytes: CAP }, new AbortController());
}

test('the bytes of a 200 are returned unchanged', async () => {
  const server = await startKeyServer();
  server.answer('/doc', sends('{"a":"é"}', { 'cache-control': 'max-age=600' }));
  const result = await fetched(`${server.origin}/doc`);
  expect(result.ok && new TextDecoder().decode(result.bytes)).toBe('{"a":"é"}');
  expect(result.ok && result.headers.get('cache-control')).toBe('max-age=600');
});

test('a document of exactly the cap is read, one byte more is not', async () => {
  const server = await startKeyServer();
  server.answer('/fits', sends('x'.repeat(CAP)));
  server.answer('/over', sends('x'.repeat(CAP + 1)));
  expect(await fetched(`${server.origin}/fits`)).toMatchObject({ ok: true });
  expect(await fetched(`${server.origin}/over`)).toEqual({ ok: false, reason: 'more than 1000 bytes' });
});

test('so it is by a Content-Length', async () => {
  const server = await startKeyServer();
  for (const length of [CAP, CAP + 1])
    server.answer(`/${length}`, sends('x'.repeat(length), { 'content-length': `${length}` }));
  expect(await fetched(`${server.origin}/${CAP}`)).toMatchObject({ ok: true });
  expect(await fetched(`${server.origin}/${CAP + 1}`)).toEqual({ ok: false, reason: 'more than 1000 bytes' });
});

test('the cap counts what is read: an endless chunked answer is cut off', async () => {
  const server = await startKeyServer();
  const closed = latch();
  server.answer('/endless', (_req, res) => {
    res.on('close', () => {
      closed.open();
    });
    const more = (): void => {
      if (!res.destroyed) res.write('x'.repeat(100), more);
    };
    more();
  });
  expect(await fetched(`${server.origin}/endless`)).toMatchObject({
    ok: false,
    reason: 'more than 1000 bytes',
  });
  await closed.opened;
});

test('identity encoding is requested, and any other refused: gzip of 64 KiB can hold 50 MB', async () => {
  const server = await startKeyServer();
  let asked: string | undefined;
  server.answer('/gzip', (req, res) => {
    asked = req.headers['accept-encoding'];
    res.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('{}'));
  });
  expect(await fetched(`${server.origin}/gzip`)).toEqual({ ok: false, reason: 'content-encoding gzip' });
  expect(asked).toBe('identity');
});

test.each([301, 302, 303, 307, 308])('a redirect is refused and not followed: %i', async (status) => {
  const server = await startKeyServer();
  server.answer('/moved', (_req, res) => {
    res.writeHead(status, { location: '/doc' }).end();
  });
  server.serve('/doc', {});
  expect(await fetched(`${server.origin}/moved`)).toEqual({
    ok: false,
    reason: `answered with a redirect (${status})`,
  });
  expect(server.count('/doc')).toBe(0);
});

test('a redirect that a transport followed by itself is refused', async () => {
  const server = await startKeyServer();
  server.answer('/moved', (_req, res) => {
    res.writeHead(302, { location: '/doc' }).end();
  });
  server.serve('/doc', {});
  const following: KeyFetch = async (url, init) => await fetch(url, { ...init, redirect: 'follow' });
  expect(await fetched(`${server.origin}/moved`, { fetch: following })).toEqual({
    ok: false,
    reason: 'answered with a redirect',
  });
});

test.each([201, 204, 206, 403, 404, 500, 503])('only a 200 is a document: %i', async (status) => {
  const server = await startKeyServer();
  server.answer('/doc', (_req, res) => {
    res.writeHead(status).end();
  });
  expect(await fetched(`${server.origin}/doc`)).toMatchObject({ ok: false, reason: `answered ${status}` });
});

test('an answer that is refused by its head keeps no connection', async () => {
  const server = await startKeyServer();
  const closed = latch();
  server.answer('/endless', (_req, res) => {
    res.on('close', closed.open);
    res.writeHead(404).write('x');
  });
  expect(await fetched(`${server.origin}/endless`)).toMatchObject({ ok: false, reason: 'answered 404' });
  await closed.opened;
});

test('one deadline applies to the whole: a slow body does not prolong it', async () => {
  const server = await startKeyServer();
  const closed = latch();
  server.answer('/drip', (_req, res) => {
    res.write(' ');
    const drip = setInterval(() => res.write(' '), 20);
    res.on('close', () => {
      clearInterval(drip);
      closed.open();
    });
  });
  const result = await fetched(`${server.origin}/drip`, { deadlineMs: 200 });
  expect(result).toEqual({ ok: false, reason: 'no whole answer within 200 ms' });
  await closed.opened;
});

test('the deadline applies to a transport that ignores its signal', async () => {
  const deaf: KeyFetch = () => new Promise(() => undefined);
  const result = await fetched('https://seller.example/', { fetch: deaf, deadlineMs: 50 });
  expect(result).toEqual({ ok: false, reason: 'no whole answer within 50 ms' });
});

test('an abort ends it', async () => {
  const server = await startKeyServer();
  const held = gate(sends('{}'));
  server.answer('/held', held.answerer);
  const controller = new AbortController();
  const result = fetchDocument(RULES, { url: `${server.origin}/held`, maxBytes: CAP }, controller);
  await server.asked('/held', 1);
  controller.abort(new Error('stopped'));
  expect(await result).toEqual({ ok: false, reason: 'stopped' });
});

test('once a transport has rejected its signal fires no more: for Node’s own fetch that can be the end of the process', async () => {
  const server = await startKeyServer();
  server.answer(
    '/layers',
    sends('{}', { 'content-encoding': Array.from({ length: 20 }, () => 'gzip').join() }),
  );
  const signals: AbortSignal[] = [];
  const transport: KeyFetch = async (url, init) => {
    signals.push(init.signal);
    return await globalThis.fetch(url, init);
  };
  const result = await fetched(`${server.origin}/layers`, { fetch: transport });
  expect(result).toEqual({ ok: false, reason: expect.stringContaining('content-encodings') });
  expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
});

test('an unreachable server is a reason, not an exception', async () => {
  const server = await startKeyServer();
  await server.close();
  const result = await fetched(`${server.origin}/doc`);
  expect(!result.ok && result.reason).toMatch(/ECONNREFUSED/);
});

test('a transport that throws anything is a reason, not an exception', async () => {
  const throws: KeyFetch = () => {
    throw 'text';
  };
  expect(await fetched('https://seller.example/', { fetch: throws })).toEqual({
    ok: false,
    reason: 'the fetch failed',
  });
});

test('the URL rules apply to every transport', async () => {
  let called = 0;
  const counting: KeyFetch = async (url, init) => {
    called += 1;
    return await fetch(url, init);
  };
  for (const url of [
    'http://seller.example/',
    'https://127.0.0.1/',
    'https://u:p@seller.example/',
    'nonsense',
  ]) {
    expect(await fetched(url, { fetch: counting, allowLoopback: false })).toMatchObject({ ok: false });
  }
  expect(called).toBe(0);
});

test('the default transport refuses by itself', async () => {
  const init = {
    method: 'GET',
    headers: {},
    redirect: 'manual',
    signal: new AbortController().signal,
  } as const;
  await expect(defaultFetch(false)('https://127.0.0.1/', init)).rejects.toThrow('not a public host');
});
