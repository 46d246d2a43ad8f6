import { createAdaptorServer } from '@hono/node-server';
import express from 'express';
import express4 from 'express4';
import fastify, { type FastifyInstance } from 'fastify';
import fastify4 from 'fastify4';
import { Hono } from 'hono';
import { Hono as Hono3 } from 'hono3';
import { createServer as createHttp, type RequestListener, type Server } from 'node:http';
import { createServer as createHttp2, type Http2Server } from 'node:http2';
import { type AdapterReceiver, webhookHandler as nodeHandler } from '../../../src/adapters/node.ts';
import { webhookHandler as expressHandler } from '../../../src/adapters/express.ts';
import { webhookPlugin } from '../../../src/adapters/fastify.ts';
import { webhookHandler as fetchHandler } from '../../../src/adapters/fetch.ts';
import { webhookHandler as honoHandler } from '../../../src/adapters/hono.ts';
import { LAMBDA_DOORS } from './lambda-doors.ts';
import { type DoorHarness, overHttp1, overHttp2, type Asking } from './serving.ts';

const HTTP1 = { authority: 'HTTP/1.1 has Host alone' } as const;
const HTTP2 = {
  'repeated lines': "Node's client sends none of those that matter",
  octets: "Node's client sends none",
  'absolute-form': 'RFC 9113 §8.3.1: :path has no authority',
  closes: 'a stream ends, the connection stays',
} as const;
const FETCH = {
  'exact target': 'Request.url is normalised',
  'absolute-form': 'Request.url does not say whether its authority was in the request line',
  closes: 'the platform owns the connection',
} as const;

const node: DoorHarness['open'] = async (receiver, { consumed } = {}) => {
  const handle = nodeHandler(receiver);
  return overHttp1(createHttp((req, res) => afterReading(consumed, req, () => handle(req, res))));
};

function afterReading(consumed: true | undefined, req: NodeJS.ReadableStream, next: () => void): void {
  if (consumed) req.resume().once('end', next);
  else next();
}

const inExpress =
  (make: typeof express): DoorHarness['open'] =>
  async (receiver, { consumed } = {}) => {
    const app = make().disable('x-powered-by');
    if (consumed) app.use(make.json());
    app.use('/webhooks', expressHandler(receiver));
    return overHttp1(createHttp(app));
  };

const inFastify =
  <S extends Server | Http2Server>(
    make: () => FastifyInstance,
    serve: (server: S) => Promise<Asking>,
  ): DoorHarness['open'] =>
  async (receiver, { consumed } = {}) => {
    const app = make();
    if (consumed) {
      app.addHook('onRequest', (request, _reply, done) => afterReading(consumed, request.raw, done));
    }
    app.register(webhookPlugin(receiver, '/webhooks/*'));
    await app.ready();
    return serve(app.server as unknown as S);
  };

function honoApp(make: () => Hono, receiver: AdapterReceiver, consumed: true | undefined): Hono {
  const app = make();
  if (consumed) {
    app.use('*', async (c, next) => {
      await c.req.text();
      await next();
    });
  }
  app.all('/webhooks/*', honoHandler(receiver));
  return app;
}

type FetchCallback = Parameters<typeof createAdaptorServer>[0]['fetch'];

const listenerOf = (fetch: FetchCallback): RequestListener =>
  (createAdaptorServer({ fetch, overrideGlobalObjects: false }) as Server).listeners(
    'request',
  )[0] as RequestListener;

const inHono =
  (make: () => Hono): DoorHarness['open'] =>
  async (receiver, { consumed } = {}) =>
    overHttp1(createHttp(listenerOf(honoApp(make, receiver, consumed).fetch)));

const fetchApi: DoorHarness['open'] = async (receiver, { consumed } = {}) => {
  const handle = fetchHandler(receiver);
  return overHttp1(
    createHttp(
      listenerOf(async (request) => {
        if (consumed) await request.text();
        return handle(request);
      }),
    ),
  );
};

const hono4 = (): Hono => new Hono();
const hono3 = (): Hono => new Hono3() as unknown as Hono;

/** Every adapter, in the newest two majors of its framework. */
export const DOORS: readonly DoorHarness[] = [
  { name: 'node', lacks: HTTP1, open: node },
  {
    name: 'node, HTTP/2',
    lacks: HTTP2,
    open: async (receiver) => overHttp2(createHttp2(nodeHandler(receiver))),
  },
  { name: 'express 5', lacks: HTTP1, open: inExpress(express) },
  { name: 'express 4', lacks: HTTP1, open: inExpress(express4) },
  { name: 'fastify 5', lacks: HTTP1, open: inFastify<Server>(() => fastify(), overHttp1) },
  {
    name: 'fastify 4',
    lacks: HTTP1,
    open: inFastify<Server>(() => fastify4() as unknown as FastifyInstance, overHttp1),
  },
  {
    name: 'fastify 5, HTTP/2',
    lacks: HTTP2,
    open: inFastify<Http2Server>(() => fastify({ http2: true }) as unknown as FastifyInstance, overHttp2),
  },
  { name: 'hono 4 on Node', lacks: { ...HTTP1, closes: FETCH.closes }, open: inHono(hono4) },
  { name: 'hono 3 on Node', lacks: { ...HTTP1, closes: FETCH.closes }, open: inHono(hono3) },
  {
    name: 'hono 4 on Node, HTTP/2',
    lacks: HTTP2,
    open: async (receiver) =>
      overHttp2(createHttp2(listenerOf(honoApp(hono4, receiver, undefined).fetch) as never)),
  },
  { name: 'fetch', lacks: { ...HTTP1, ...FETCH }, open: fetchApi },
  ...LAMBDA_DOORS,
];

/** A door in front of which a reader can be put, on HTTP/1.1. */
export const READABLE_DOORS: readonly DoorHarness[] = DOORS.filter(
  ({ name, lacks }) => lacks.streams === undefined && !name.includes('HTTP/2'),
);
