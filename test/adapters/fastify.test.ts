import type { AddressInfo } from 'node:net';
import fastify, { type FastifyInstance } from 'fastify';
import fastify4 from 'fastify4';
import { describe, expect, test } from 'vitest';
import { webhookPlugin } from '../../src/adapters/fastify.ts';
import { rawClient } from './raw-client.ts';
import { recordingReceiver, text } from './recording-receiver.ts';

const post = (url: string, body: string, type = 'application/json'): Promise<Response> =>
  fetch(url, { method: 'POST', body, headers: { 'content-type': type } });

type Rewrite = (req: { readonly url?: string | undefined }) => string;

describe.each<[string, () => FastifyInstance, (rewriteUrl: Rewrite) => FastifyInstance]>([
  ['5', () => fastify(), (rewriteUrl) => fastify({ rewriteUrl })],
  [
    '4',
    () => fastify4() as unknown as FastifyInstance,
    (rewriteUrl) => fastify4({ rewriteUrl }) as unknown as FastifyInstance,
  ],
])('Fastify %s', (_version, make, rewriting) => {
  test('its route gets the bytes; other routes, parsers and limits are unchanged', async () => {
    const receiver = recordingReceiver();
    const app = make();
    app.addContentTypeParser('application/x-own', { parseAs: 'string' }, (_req, body, done) => {
      done(null, `own ${String(body)}`);
    });
    await app.register(webhookPlugin(receiver, '/hook'));
    app.post('/other', (request) => ({ got: request.body }));
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    expect((await post(`${url}/hook?a=%41`, '{ "a" : 1 }')).status).toBe(200);
    expect(text(receiver.handed[0])).toBe('{ "a" : 1 }');
    expect(receiver.handed[0]?.request).toMatchObject({ method: 'POST', url: '/hook?a=%41' });
    expect(await (await post(`${url}/other`, '{"b":2}')).json()).toEqual({ got: { b: 2 } });
    expect(await (await post(`${url}/other`, 'x', 'application/x-own')).json()).toEqual({ got: 'own x' });
    expect((await post(`${url}/other`, '<a/>', 'text/xml')).status).toBe(415);
    expect((await post(`${url}/elsewhere`, '{}')).status).toBe(404);
    await app.close();
  });

  test('the app’s body limit does not apply to it', async () => {
    const receiver = recordingReceiver();
    const app = make();
    app.addHook('onRoute', (route) => void (route.bodyLimit = 4));
    await app.register(webhookPlugin(receiver, '/hook'));
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    expect((await post(`${url}/hook`, 'x'.repeat(64))).status).toBe(200);
    expect((await post(`${url}/hook`, 'x'.repeat(65))).status).toBe(413);
    await app.close();
  });

  test('the whole URL is passed on under a prefix and with a wildcard', async () => {
    const receiver = recordingReceiver();
    const app = make();
    await app.register(webhookPlugin(receiver, '/*'), { prefix: '/webhooks' });
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    expect((await post(`${url}/webhooks/a%2fb/?x`, '{}')).status).toBe(200);
    expect(receiver.handed[0]?.request.url).toBe('/webhooks/a%2fb/?x');
    await app.close();
  });

  test('the URL that sellers called is passed on when rewriteUrl changed it', async () => {
    const receiver = recordingReceiver();
    const app = rewriting((req) => (req.url ?? '').replace('/public/', '/webhooks/'));
    await app.register(webhookPlugin(receiver, '/webhooks/*'));
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    expect((await post(`${url}/public/a?x`, '{}')).status).toBe(200);
    expect(receiver.handed[0]?.request.url).toBe('/public/a?x');
    await app.close();
  });

  test('hooks around it run: onRequest before it, onResponse after it, with its status', async () => {
    const seen: unknown[] = [];
    const receiver = recordingReceiver({ answer: () => ({ status: 409, headers: {}, body: '' }) });
    const app = make();
    app.addHook('onRequest', (_request, _reply, done) => {
      seen.push(['request', receiver.handed.length]);
      done();
    });
    app.addHook('onResponse', (_request, reply, done) => {
      seen.push(['response', reply.statusCode]);
      done();
    });
    await app.register(webhookPlugin(receiver, '/hook'));
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    expect((await post(`${url}/hook`, '{}')).status).toBe(409);
    await app.close();
    expect(seen).toEqual([
      ['request', 0],
      ['response', 409],
    ]);
  });

  test('an onRequest hook that refuses decides', async () => {
    const receiver = recordingReceiver();
    const app = make();
    app.addHook('onRequest', (_request, reply) => reply.code(403).send());
    await app.register(webhookPlugin(receiver, '/hook'));
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    expect((await post(`${url}/hook`, '{}')).status).toBe(403);
    expect(receiver.handed).toEqual([]);
    await app.close();
  });

  test('an exception is answered 503, and the process keeps running', async () => {
    const broken = new Error('a bug');
    const receiver = recordingReceiver({ answer: () => Promise.reject(broken) });
    const app = make();
    await app.register(webhookPlugin(receiver, '/hook'));
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    expect((await post(`${url}/hook`, '{}')).status).toBe(503);
    expect(receiver.faults).toEqual([broken]);
    await app.close();
  });
});

test.each([
  ['5', fastify({ return503OnClosing: false })],
  ['4', fastify4({ return503OnClosing: false }) as unknown as FastifyInstance],
])('Fastify %s while it closes: the receiver answers, with its Retry-After', async (_version, app) => {
  const receiver = recordingReceiver({
    answer: () => ({ status: 503, headers: { 'Retry-After': '5' }, body: '' }),
  });
  await app.register(webhookPlugin(receiver, '/hook'));
  await app.listen({ port: 0, host: '127.0.0.1' });
  const client = await rawClient((app.server.address() as AddressInfo).port);
  // Silent so far: Fastify does not close it, and waits for it.
  const closed = app.close();
  await expect.poll(() => app.server.listening).toBe(false);
  client.send(
    'POST /hook HTTP/1.1',
    'Host: a',
    'Content-Type: application/json',
    'Content-Length: 2',
    '',
    '{}',
  );
  const answer = await client.closed();
  expect(answer).toMatch(/^HTTP\/1\.1 503 /);
  expect(answer).toMatch(/^Retry-After: 5\r$/im);
  expect(receiver.handed).toHaveLength(1);
  await closed;
});
