import { createServer } from 'node:http';
import { expect, test } from 'vitest';
import { fetchTransport } from '../../../src/keys/net/transport.ts';
import { listening } from '../../support/tls.ts';
import { OTHER_PUBLIC } from '../../support/network.ts';
import { called } from './bench.ts';

test('the platform’s fetch, behind the URL rules', async () => {
  const server = await listening(
    createServer((_req, res) => {
      res.end('{}');
    }),
  );
  const url = `http://127.0.0.1:${server.port}/`;
  const response = await called(fetchTransport({ allowLoopback: true }), url);
  expect(await response.text()).toBe('{}');
  for (const refused of [url, `https://127.0.0.1:${server.port}/`, 'https://u@seller.example/', 'nonsense']) {
    await expect(called(fetchTransport({ allowLoopback: false }), refused)).rejects.toThrow(TypeError);
  }
  expect(server.connections()).toBe(1);
});

test('a redirect is handed back', async () => {
  const server = await listening(
    createServer((_req, res) => {
      res.writeHead(302, { location: '/elsewhere' }).end();
    }),
  );
  const response = await called(fetchTransport({ allowLoopback: true }), `http://127.0.0.1:${server.port}/`);
  expect(response.status).toBe(302);
  expect(server.connections()).toBe(1);
});

test('where names can be resolved, what they resolve to is judged', async () => {
  const resolve = async (): Promise<string[]> => [OTHER_PUBLIC, '10.0.0.1'];
  await expect(called(fetchTransport({ allowLoopback: false, resolve }))).rejects.toThrow(
    'seller.example resolves to 10.0.0.1, which is not public',
  );
});

test('the signal ends a resolution that never does', async () => {
  const resolve = (): Promise<string[]> => new Promise(() => undefined);
  const signal = AbortSignal.abort(new Error('stopped'));
  await expect(called(fetchTransport({ allowLoopback: false, resolve }), undefined, signal)).rejects.toThrow(
    'stopped',
  );
});
