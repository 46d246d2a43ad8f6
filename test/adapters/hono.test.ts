import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { createAdaptorServer } from '@hono/node-server';
import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { Hono as Hono3 } from 'hono3';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { webhookHandler } from '../../src/adapters/hono.ts';
import { header, recordingReceiver, text } from './recording-receiver.ts';

const json = (body: string): RequestInit => ({
  method: 'POST',
  body,
  headers: { 'content-type': 'application/json' },
});

describe.each([
  ['4', Hono],
  ['3', Hono3 as unknown as typeof Hono],
])('Hono %s, on a runtime with nothing but the Fetch API', (_version, App) => {
  test('its route gets the bytes; other routes read theirs', async () => {
    const receiver = recordingReceiver();
    const app = new App();
    app.post('/hook', webhookHandler(receiver));
    app.post('/other', async (c) => c.json(await c.req.json()));
    expect((await app.request('/hook?a=%41', json('{ "a" : 1 }'))).status).toBe(200);
    expect(text(receiver.handed[0])).toBe('{ "a" : 1 }');
    expect(receiver.handed[0]?.request).toMatchObject({ method: 'POST', url: '/hook?a=%41' });
    expect(header(receiver.handed[0], 'content-type')).toBe('application/json');
    expect(await (await app.request('/other', json('{"b":2}'))).json()).toEqual({ b: 2 });
  });

  test('mounted under a base path it passes on the whole URL', async () => {
    const receiver = recordingReceiver();
    const inner = new App();
    inner.post('/proto', webhookHandler(receiver));
    const app = new App().route('/webhooks', inner);
    expect((await app.request('/webhooks/proto?x', json('{}'))).status).toBe(200);
    expect(receiver.handed[0]?.request.url).toBe('/webhooks/proto?x');
  });

  test.each(['json', 'text', 'arrayBuffer'] as const)(
    'c.req.%s() before it: 503, never the body that Hono makes of parsed values',
    async (reader) => {
      const receiver = recordingReceiver();
      const app = new App();
      app.use('*', async (c, next) => {
        await c.req[reader]();
        await next();
      });
      app.post('/hook', webhookHandler(receiver));
      expect((await app.request('/hook', json('{ }'))).status).toBe(503);
      expect(receiver.handed).toEqual([]);
      expect(receiver.refused).toEqual([
        { code: 'body_consumed', detail: expect.stringContaining('Register the route before') as string },
      ]);
    },
  );

  test('an environment other than Node’s is left unchanged', async () => {
    const receiver = recordingReceiver();
    const app = new App();
    app.post('/hook', webhookHandler(receiver));
    for (const env of [{}, { incoming: null }, { incoming: { rawHeaders: [] } }, { KV: {} }]) {
      expect((await app.request('/hook', json('{}'), env)).status).toBe(200);
    }
    expect(receiver.handed.map((handed) => header(handed, 'content-type'))).toEqual(
      Array<string>(4).fill('application/json'),
    );
  });
});

test('the bytes arrive behind Hono’s bodyLimit', async () => {
  const receiver = recordingReceiver();
  const app = new Hono();
  app.use('*', bodyLimit({ maxSize: 1_000 }));
  app.post('/hook', webhookHandler(receiver));
  const stream = new Blob(['{ "a": 1 }']).stream();
  const chunked = { ...json(''), body: stream, duplex: 'half' } as RequestInit;
  expect((await app.request('/hook', chunked)).status).toBe(200);
  expect(receiver.handed.map(text)).toEqual(['{ "a": 1 }']);
});

describe('on @hono/node-server', () => {
  let close = (): void => {};
  afterEach(() => {
    close();
    vi.restoreAllMocks();
  });

  async function posted(app: Hono, body: string): Promise<number> {
    const server = createAdaptorServer({ fetch: app.fetch });
    close = () => void server.close();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    return (await fetch(`http://127.0.0.1:${port}/hook`, json(body))).status;
  }

  test('the body is read from Node’s request: no web stream is made of it', async () => {
    const toWeb = vi.spyOn(Readable, 'toWeb');
    const receiver = recordingReceiver();
    const app = new Hono().post('/hook', webhookHandler(receiver));
    expect(await posted(app, '{ "a": 1 }')).toBe(200);
    expect(receiver.handed.map(text)).toEqual(['{ "a": 1 }']);
    expect(toWeb).not.toHaveBeenCalled();
  });

  test('a stream that a middleware made of Node’s is read to its end', async () => {
    const toWeb = vi.spyOn(Readable, 'toWeb');
    const receiver = recordingReceiver();
    const app = new Hono();
    app.use('*', async (c, next) => {
      expect(c.req.raw.body).not.toBeNull();
      await next();
    });
    app.post('/hook', webhookHandler(receiver));
    expect(await posted(app, '{ "a": 1 }')).toBe(200);
    expect(receiver.handed.map(text)).toEqual(['{ "a": 1 }']);
    expect(toWeb).toHaveBeenCalledOnce();
  });

  test('a body that a middleware has read: 503', async () => {
    const receiver = recordingReceiver();
    const app = new Hono();
    app.use('*', async (c, next) => {
      await c.req.json();
      await next();
    });
    app.post('/hook', webhookHandler(receiver));
    expect(await posted(app, '{ "a": 1 }')).toBe(503);
    expect(receiver.refused.map(({ code }) => code)).toEqual(['body_consumed']);
  });
});
