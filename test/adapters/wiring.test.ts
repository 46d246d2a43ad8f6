import express from 'express';
import express4 from 'express4';
import fastify from 'fastify';
import { Hono } from 'hono';
import { createServer } from 'node:http';
import { describe, expect, test } from 'vitest';
import { type AdapterReceiver, webhookHandler as nodeHandler } from '../../src/adapters/node.ts';
import { webhookHandler as expressHandler } from '../../src/adapters/express.ts';
import { webhookPlugin } from '../../src/adapters/fastify.ts';
import { webhookHandler as fetchHandler } from '../../src/adapters/fetch.ts';
import { webhookHandler as honoHandler } from '../../src/adapters/hono.ts';
import { webhookHandler as lambdaHandler } from '../../src/adapters/lambda.ts';
import { ConfigError } from '../../src/index.ts';
import { listening } from './raw-client.ts';
import { recordingReceiver } from './recording-receiver.ts';

/** What a careless hand passes, whatever the types say. */
type Any = never;

const post = (url: string): Promise<Response> =>
  fetch(url, { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } });

/** The handler of one door, wired into another framework: the status that a sender gets. */
const MISTAKES: readonly (readonly [
  name: string,
  fix: RegExp,
  wired: (receiver: AdapterReceiver) => Promise<number>,
])[] = [
  [
    'Express’s in a Fastify route',
    /'proto-webhooks\/express' was called by Fastify\. Write: .*'proto-webhooks\/fastify'; app\.register\(webhookPlugin\(receiver, path\)\)/,
    async (receiver) => {
      const app = fastify();
      app.post('/hook', expressHandler(receiver) as Any);
      return (await app.inject({ method: 'POST', url: '/hook', payload: { a: 1 } })).statusCode;
    },
  ],
  [
    'Fastify’s in Express',
    /'proto-webhooks\/fastify' was called by Express.*'proto-webhooks\/express'; app\.all/,
    async (receiver) => {
      const app = express().set('env', 'test');
      app.use(webhookPlugin(receiver, '/hook') as Any);
      await using server = await listening(app);
      return (await post(server.url)).status;
    },
  ],
  [
    'Hono’s in Express 5',
    /'proto-webhooks\/hono' was called by Express.*'proto-webhooks\/express'/,
    async (receiver) => {
      const app = express().set('env', 'test');
      app.use(honoHandler(receiver) as Any);
      await using server = await listening(app);
      return (await post(server.url)).status;
    },
  ],
  [
    'Fetch’s in Express 4',
    /'proto-webhooks\/fetch' was called by Express.*'proto-webhooks\/express'/,
    async (receiver) => {
      const app = express4().set('env', 'test');
      app.use(fetchHandler(receiver) as Any);
      await using server = await listening(app);
      return (await post(server.url)).status;
    },
  ],
  [
    'Lambda’s in Node’s http',
    /'proto-webhooks\/lambda' was called by Node's http.*'proto-webhooks\/node'; http\.createServer/,
    async (receiver) => {
      const handle = lambdaHandler(receiver);
      await using server = await listening((req, res) => {
        handle(req as Any).catch(() => res.writeHead(503).end());
      });
      return (await post(server.url)).status;
    },
  ],
  [
    'Fetch’s in Hono',
    /'proto-webhooks\/fetch' was called by Hono.*'proto-webhooks\/hono'/,
    async (receiver) => {
      const app = new Hono().onError((error, c) =>
        c.body(null, (error as ConfigError & { status: 503 }).status),
      );
      app.post('/hook', fetchHandler(receiver) as Any);
      return (await app.request('/hook', { method: 'POST' })).status;
    },
  ],
];

describe('the adapter of another framework fails at first use, with the line to write', () => {
  test.each(MISTAKES)('%s', async (_, fix, wired) => {
    const receiver = recordingReceiver();
    expect(await wired(receiver)).toBe(503);
    expect(receiver.faults).toEqual([expect.any(ConfigError)]);
    expect(String(receiver.faults[0])).toMatch(fix);
    expect(receiver.handed).toEqual([]);
  });

  test('Express’s registered as a Fastify plugin: the app does not start', async () => {
    const app = fastify();
    app.register(expressHandler(recordingReceiver()) as Any);
    await expect(app.ready()).rejects.toThrow(/called by Fastify.*webhookPlugin\(receiver, path\)/);
  });

  test('Node’s called with a Lambda event, or a Koa context', () => {
    const handle = nodeHandler(recordingReceiver());
    expect(() => handle({ requestContext: {}, rawPath: '/' } as Any, undefined as Any)).toThrow(
      /called by AWS Lambda\. Write: .*'proto-webhooks\/lambda'/,
    );
    expect(() => handle({ req: { on() {}, headers: {} }, res: {} } as Any, undefined as Any)).toThrow(
      /called by Koa\. Write: .*handle\(ctx\.req, ctx\.res\)/,
    );
  });

  test('Lambda’s called with an event that is no HTTP request: a queue’s event must not count as handled', async () => {
    const receiver = recordingReceiver();
    const handle = lambdaHandler(receiver);
    await expect(handle({ Records: [{ eventSource: 'aws:sqs' }] } as Any)).rejects.toThrow(
      /something that is not an HTTP request\. It is used like this: .*'proto-webhooks\/lambda'/,
    );
    expect(receiver.faults).toHaveLength(1);
  });
});

describe('an argument that is no receiver', () => {
  test.each([
    ['node', nodeHandler],
    ['express', expressHandler],
    ['hono', honoHandler],
    ['fetch', fetchHandler],
    ['lambda', lambdaHandler],
    ['fastify', (receiver: AdapterReceiver) => webhookPlugin(receiver, '/')],
  ])('%s throws when it is made', (name, make) => {
    const { verifyAndDispatch } = recordingReceiver();
    for (const wrong of [undefined, null, {}, verifyAndDispatch]) {
      expect(() => make(wrong as Any)).toThrow(
        new RegExp(`'proto-webhooks/${name}' was not given a receiver.*createReceiver`),
      );
    }
  });

  test('a handler that was not made is answered 503, and the error has the line', async () => {
    const errors: unknown[] = [];
    const app = express();
    app.post('/hook', expressHandler as Any);
    app.use(((error, _req, res, _next) => {
      errors.push(error);
      res.status(error.status).end();
    }) as express.ErrorRequestHandler);
    await using server = await listening(app);
    expect((await post(`${server.url}/hook`)).status).toBe(503);
    expect(String(errors[0])).toMatch(/app\.all\(path, webhookHandler\(receiver\)\)/);
  });
});

test('Express’s handler serves Node’s http too, and vice versa', async () => {
  const receiver = recordingReceiver();
  await using plain = await listening(expressHandler(receiver));
  const app = express();
  app.post('/hook', nodeHandler(receiver));
  await using inExpress = await listening(createServer(app).listeners('request')[0] as Any);
  expect((await post(`${plain.url}/hook`)).status).toBe(200);
  expect((await post(`${inExpress.url}/hook`)).status).toBe(200);
  expect([receiver.handed.length, receiver.faults]).toEqual([2, []]);
});

test('an exception in Express’s handler without next is answered 503', async () => {
  const receiver = recordingReceiver({ answer: () => Promise.reject(new Error('a bug')) });
  await using server = await listening(expressHandler(receiver));
  expect((await post(server.url)).status).toBe(503);
});

test.each([[undefined], ['webhooks/proto'], [/hook/]])(
  'Fastify’s with the path %s throws at once',
  (path) => {
    const make = () => webhookPlugin(recordingReceiver(), path as Any);
    expect(make).toThrow(ConfigError);
    expect(make).toThrow(
      /must begin with \/\. Write: app\.register\(webhookPlugin\(receiver, '\/webhooks\/proto'\)\)/,
    );
  },
);
