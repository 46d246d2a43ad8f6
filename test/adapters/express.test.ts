import { readFileSync } from 'node:fs';
import { runInNewContext } from 'node:vm';
import express from 'express';
import express4 from 'express4';
import { describe, expect, test } from 'vitest';
import { webhookHandler } from '../../src/adapters/express.ts';
import { webhookHandler as nodeHandler } from '../../src/adapters/node.ts';
import { EXPRESS_FIX } from '../../src/for-tests.ts';
import { listening, POST, rawClient, statuses } from './raw-client.ts';
import { header, recordingReceiver, text } from './recording-receiver.ts';

const post = (url: string, body: string, type = 'application/json'): Promise<Response> =>
  fetch(url, { method: 'POST', body, headers: { 'content-type': type } });

const REPLY = {
  status: 400,
  headers: { 'Content-Type': 'application/json' },
  body: '{"error":{"code":"x"}}',
};

describe.each([
  ['5', express],
  ['4', express4],
])('Express %s', (_version, express) => {
  test('a route before express.json() gets the bytes; routes after it are parsed', async () => {
    const receiver = recordingReceiver();
    const app = express();
    app.post('/hook', webhookHandler(receiver));
    app.use(express.json());
    app.post('/other', (req, res) => void res.send(req.body));
    await using server = await listening(app);
    expect((await post(`${server.url}/hook?a=%41`, '{ "a" : 1 }')).status).toBe(200);
    expect(text(receiver.handed[0])).toBe('{ "a" : 1 }');
    expect(receiver.handed[0]?.request).toMatchObject({ method: 'POST', url: '/hook?a=%41' });
    expect(await (await post(`${server.url}/other`, '{"b":2}')).json()).toEqual({ b: 2 });
  });

  test('a route after a parser that keeps the bytes (docs/frameworks.md) gets them', async () => {
    const receiver = recordingReceiver();
    const app = express();
    const keep = (req: object, _res: unknown, bytes: Buffer): void => {
      (req as { rawBody?: Buffer }).rawBody = bytes;
    };
    app.use(express.json({ limit: '1mb', verify: keep }));
    app.post('/hook', webhookHandler(receiver));
    await using server = await listening(app);
    expect((await post(`${server.url}/hook`, '{ "a" : 1 }')).status).toBe(200);
    expect(text(receiver.handed[0])).toBe('{ "a" : 1 }');
  });

  test('a route after express.json(): 503 body_consumed, and the log names the fix', async () => {
    const receiver = recordingReceiver();
    const app = express();
    app.use(express.json());
    app.post('/hook', webhookHandler(receiver));
    await using server = await listening(app);
    const response = await post(`${server.url}/hook`, '{"a":1}');
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5']);
    expect(receiver.handed).toEqual([]);
    expect(receiver.refused).toEqual([
      { code: 'body_consumed', detail: expect.stringMatching(/express\.json\(\).*express\.raw\(/) as string },
    ]);
  });

  test('express.raw() in front of it', async () => {
    const receiver = recordingReceiver();
    const app = express();
    app.post('/hook', express.raw({ type: '*/*', limit: '1mb' }), webhookHandler(receiver));
    await using server = await listening(app);
    expect((await post(`${server.url}/hook`, '{ }')).status).toBe(200);
    expect(receiver.handed.map(text)).toEqual(['{ }']);
    expect((await post(`${server.url}/hook`, 'x'.repeat(65))).status).toBe(413);
  });

  test('express.json({ verify }) that keeps the bytes', async () => {
    const receiver = recordingReceiver();
    const app = express();
    app.use(express.json({ verify: (req, _res, bytes) => void Object.assign(req, { rawBody: bytes }) }));
    app.post('/hook', webhookHandler(receiver));
    await using server = await listening(app);
    expect((await post(`${server.url}/hook`, '{ "a": 1 }')).status).toBe(200);
    expect(receiver.handed.map(text)).toEqual(['{ "a": 1 }']);
  });

  test('the corrected line, as in the log and docs/frameworks.md, accepts a body of maxBodyBytes', async () => {
    const line = /express\.json\((\{ limit: .*?\} )\}\)/;
    const [logged = '', options = ''] = line.exec(EXPRESS_FIX) ?? [];
    expect(readFileSync(new URL('../../docs/frameworks.md', import.meta.url), 'utf8')).toContain(logged);
    const maxBodyBytes = 1_048_576;
    const receiver = recordingReceiver({ maxBodyBytes, maxBufferedBytes: maxBodyBytes });
    const app = express();
    app.use(express.json(runInNewContext(`(${options}})`) as object));
    app.post('/hook', webhookHandler(receiver));
    await using server = await listening(app);
    const body = JSON.stringify({ a: 'x'.repeat(maxBodyBytes - 8) });
    expect((await post(`${server.url}/hook`, body)).status).toBe(200);
    expect(receiver.handed[0]?.rawBody.byteLength).toBe(maxBodyBytes);
  });

  test('a mounted router hands over the original URL', async () => {
    const receiver = recordingReceiver();
    const router = express.Router();
    router.post('/proto', webhookHandler(receiver));
    const app = express();
    app.use('/webhooks', router);
    await using server = await listening(app);
    expect((await post(`${server.url}/webhooks/proto?x`, '{}')).status).toBe(200);
    expect(receiver.handed[0]?.request.url).toBe('/webhooks/proto?x');
  });

  test('the Node adapter, mounted, gets the original URL too', async () => {
    const receiver = recordingReceiver();
    const app = express();
    app.use('/hooks', nodeHandler(receiver));
    await using server = await listening(app);
    expect((await post(`${server.url}/hooks/proto?x`, '{}')).status).toBe(200);
    expect(receiver.handed[0]?.request.url).toBe('/hooks/proto?x');
  });

  test('mounted by app.use() it answers other methods too', async () => {
    const app = express();
    app.use('/hook', webhookHandler(recordingReceiver()));
    await using server = await listening(app);
    const response = await fetch(`${server.url}/hook`);
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST']);
  });

  test('the reply is written as it is: no ETag, no charset', async () => {
    const app = express().disable('x-powered-by');
    app.post('/hook', webhookHandler(recordingReceiver({ answer: () => REPLY })));
    await using server = await listening(app);
    const response = await post(`${server.url}/hook`, '{}');
    expect([response.status, await response.text()]).toEqual([REPLY.status, REPLY.body]);
    const names = [...response.headers.keys()].filter((name) => !/^(date|connection|keep-alive)$/.test(name));
    expect(names).toEqual(['content-length', 'content-type']);
    expect(response.headers.get('content-type')).toBe('application/json');
  });

  test('repeated header lines are seen', async () => {
    const receiver = recordingReceiver();
    const app = express();
    app.use(webhookHandler(receiver));
    await using server = await listening(app);
    const client = await rawClient(server.port);
    client.send(...POST('Host: other.example', 'Content-Length: 2', 'Connection: close'), '', '{}');
    await client.closed();
    expect(header(receiver.handed[0], 'host')).toBe('buyer.example, other.example');
  });

  test('a body over the cap, or slower than the deadline, is refused', async () => {
    const receiver = recordingReceiver({ bodyDeadlineMs: 20 });
    const app = express();
    app.use(webhookHandler(receiver));
    await using server = await listening(app);
    const over = await rawClient(server.port);
    over.send(...POST('Transfer-Encoding: chunked'), '', '41', 'x'.repeat(65), '');
    await over.until(/ 413 /);
    over.socket.end();
    expect(statuses(await over.closed())).toEqual([413]);
    const slow = await rawClient(server.port);
    slow.send(...POST('Content-Length: 9'), '', '{');
    await slow.until(/ 503 /);
    slow.socket.end();
    expect(statuses(await slow.closed())).toEqual([503]);
  });

  test('an exception is answered 503: no error handler makes 4xx of it', async () => {
    const broken = Object.assign(new Error('a bug'), { status: 404 });
    const receiver = recordingReceiver({ answer: () => Promise.reject(broken) });
    const app = express();
    app.use(webhookHandler(receiver));
    await using server = await listening(app);
    expect((await post(server.url, '{}')).status).toBe(503);
    expect(receiver.faults).toEqual([broken]);
  });
});
