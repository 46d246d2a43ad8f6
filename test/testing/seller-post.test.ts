import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { createServer, type AddressInfo } from 'node:net';
import { describe, expect, test } from 'vitest';
import type { SignedDelivery } from '../../src/sender/sign.ts';
import { post } from '../../src/testing/for-tests.ts';
import { closing, listening } from '../adapters/raw-client.ts';

const delivery = (url: string, body = '{}'): SignedDelivery => ({
  method: 'POST',
  url,
  headers: { 'Content-Type': 'application/json' },
  body: new TextEncoder().encode(body),
});
const options = { timeoutMs: 30_000, signal: new AbortController().signal };

const answering = (status: number, headers: Record<string, string>, body = ''): RequestListener => {
  return (_req, res) => void res.writeHead(status, headers).end(body);
};

describe('request', () => {
  test('has the given target and body, and the URL’s Host wherever it connects to', async () => {
    const seen: unknown[] = [];
    await using server = await listening((req, res) => {
      let body = '';
      req.on('data', (chunk: Buffer) => (body += chunk.toString()));
      req.on('end', () => {
        seen.push([req.url, req.headers.host, req.headers['content-length'], body]);
        res.end();
      });
    });
    await post(delivery(`${server.url}/a/../b%7E//?q='x'#f`, '{"a":1}'), options);
    await post(delivery('https://buyer.example/hook'), { ...options, to: `${server.url}/other` });
    await post(delivery(server.url), options);
    expect(seen).toEqual([
      [`/a/../b%7E//?q='x'`, `127.0.0.1:${server.port}`, '7', '{"a":1}'],
      ['/other', 'buyer.example', '2', '{}'],
      ['/', `127.0.0.1:${server.port}`, '2', '{}'],
    ]);
  });
});

describe('result', () => {
  test.each([
    ['2xx', answering(200, {}), { outcome: 'success', status: 200, body: '' }],
    [
      '401 with its code',
      answering(401, { 'WWW-Authenticate': 'Signature error="webhook_signature_invalid"' }),
      { outcome: 'failed', status: 401, code: 'webhook_signature_invalid' },
    ],
    [
      '400 with its code',
      answering(400, {}, '{"error":{"code":"invalid_envelope","message":"m"}}'),
      { outcome: 'failed', status: 400, code: 'invalid_envelope' },
    ],
    [
      'a body that only looks like JSON',
      answering(500, {}, '{'),
      { outcome: 'failed', status: 500, body: '{' },
    ],
    ['a redirect, not followed', answering(307, { Location: '/' }), { outcome: 'failed', status: 307 }],
  ])('%s', async (_, listener, expected) => {
    await using server = await listening(listener);
    expect(await post(delivery(server.url), options)).toMatchObject(expected);
  });

  test('is the answer, when it came before the body was read', async () => {
    await using server = await listening((_req, res) => {
      res.writeHead(413, { Connection: 'close', 'Content-Length': '0' }).end();
    });
    const result = await post(delivery(server.url, 'x'.repeat(8_000_000)), options);
    // The broken pipe may reach the seller first.
    expect([413, undefined]).toContain(result.status);
    expect(['failed', 'connection_error']).toContain(result.outcome);
  });

  test('keeps 64 KiB of an endless body and reads no more', async () => {
    await using server = await listening((_req, res) => {
      const fill = (): void => {
        while (!res.destroyed && res.write('x'.repeat(100_000)));
      };
      res.on('drain', fill);
      fill();
    });
    const result = await post(delivery(server.url), options);
    expect(result).toMatchObject({ outcome: 'success', status: 200 });
    expect(result.body).toBe('x'.repeat(64 * 1024));
  });

  test('is no success when a 2xx is cut short; a refusal is one', async () => {
    const cut =
      (status: number): RequestListener =>
      (_req, res) => {
        res.writeHead(status, { 'Content-Length': '100' }).write('abc', () => res.destroy());
      };
    await using good = await listening(cut(200));
    expect(await post(delivery(good.url), options)).toMatchObject({
      outcome: 'connection_error',
      status: 200,
      body: 'abc',
    });
    await using bad = await listening(cut(401));
    expect(await post(delivery(bad.url), options)).toMatchObject({ outcome: 'failed', status: 401 });
  });

  test('is no success for 101', async () => {
    const server = createServer((socket) => {
      socket.on('error', () => undefined).resume();
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nhello');
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    expect(await post(delivery(`http://127.0.0.1:${port}/`), options)).toMatchObject({
      outcome: 'failed',
      status: 101,
    });
    server.close();
    await closing(server);
  });

  test('is a time-out without an answer', async () => {
    await using server = await listening(() => undefined);
    expect(await post(delivery(server.url), { ...options, timeoutMs: 20 })).toMatchObject({
      outcome: 'timeout',
    });
  });

  test('is a refused connection', async () => {
    const server = createServer();
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    server.close();
    await closing(server);
    const result = await post(delivery(`http://127.0.0.1:${port}/`), options);
    expect(result).toEqual({ outcome: 'connection_error', headers: {}, body: '' });
  });

  test('is a broken or aborted connection', async () => {
    await using server = await listening((req) => void req.socket.destroy());
    expect(await post(delivery(server.url), options)).toMatchObject({ outcome: 'connection_error' });
    const given = AbortSignal.abort();
    expect(await post(delivery(server.url), { ...options, signal: given })).toMatchObject({
      outcome: 'connection_error',
    });
  });
});
