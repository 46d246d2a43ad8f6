import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { serve } from '@hono/node-server';
import express from 'express';
import fastify, { type FastifyPluginCallback } from 'fastify';
import { Hono } from 'hono';
import { webhookHandler as expressHandler } from '../../dist/express.js';
import type { Receiver } from '../../dist/index.js';
import { webhookHandler as nodeHandler } from '../../dist/node.js';
import type { KeyPair } from '../../dist/sender.js';
import { bareVerify, receiverFor } from './contestants.ts';
import { PUBLIC_URL, type Prepared } from './deliveries.ts';
import { bareWriteAt, openAt, type BareWrite, type StoreLocation } from './places.ts';
import { OFF_THREAD, ON_THREAD } from './variants.ts';

const path = new URL(PUBLIC_URL).pathname;

/** Starts listening on a free port of 127.0.0.1 and gives it. */
type Listen = () => Promise<number>;

async function listenWith(listener: RequestListener): Promise<number> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** Doors by their subpaths; built after these were written, some of them. */
async function door<T>(name: string): Promise<T> {
  return (await import(new URL(`../../dist/${name}.js`, import.meta.url).href)) as T;
}

interface FastifyDoor {
  readonly webhookPlugin: (receiver: Receiver, path: string) => FastifyPluginCallback;
}

interface HonoDoor {
  readonly webhookHandler: (receiver: Receiver) => (context: never) => Promise<Response>;
}

/** A framework twice: with one `crypto.verify` a request, and with the door. */
interface Framework {
  readonly bare: (check: () => void) => Promise<number>;
  readonly door: (receiver: Receiver) => Promise<number>;
}

const FRAMEWORKS: Readonly<Record<string, Framework>> = {
  node: {
    bare: (check) =>
      listenWith((req, res) => {
        const chunks: Uint8Array[] = [];
        req.on('data', (chunk: Uint8Array) => chunks.push(chunk));
        req.on('end', () => {
          check();
          res.writeHead(200, { 'Content-Length': '0' });
          res.end();
        });
      }),
    door: (receiver) => listenWith(nodeHandler(receiver)),
  },
  express: {
    bare: (check) => {
      const app = express();
      app.post(path, express.raw({ type: '*/*', limit: '1mb' }), (_req, res) => {
        check();
        res.status(200).end();
      });
      return listenWith(app);
    },
    door: (receiver) => {
      const app = express();
      app.post(path, expressHandler(receiver));
      return listenWith(app);
    },
  },
  fastify: {
    bare: async (check) => {
      const app = fastify();
      app.removeAllContentTypeParsers();
      app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
      app.post(path, async (_request, reply) => {
        check();
        return reply.code(200).send();
      });
      await app.listen({ port: 0, host: '127.0.0.1' });
      return (app.server.address() as AddressInfo).port;
    },
    door: async (receiver) => {
      const app = fastify();
      const { webhookPlugin } = await door<FastifyDoor>('fastify');
      await app.register(webhookPlugin(receiver, path));
      await app.listen({ port: 0, host: '127.0.0.1' });
      return (app.server.address() as AddressInfo).port;
    },
  },
  hono: {
    bare: (check) => {
      const app = new Hono();
      app.post(path, async (context) => {
        await context.req.arrayBuffer();
        check();
        return context.body(null, 200);
      });
      return listenHono(app);
    },
    door: async (receiver) => {
      const app = new Hono();
      const { webhookHandler } = await door<HonoDoor>('hono');
      const handler = webhookHandler(receiver);
      app.post(path, (context) => handler(context as never));
      return listenHono(app);
    },
  },
};

function listenHono(app: Hono): Promise<number> {
  return new Promise((resolve) => {
    serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => resolve(port));
  });
}

/** A bare server of `node:http` that writes one row, too, before it answers. */
const listenBareWriting = (check: () => void, write: BareWrite): Promise<number> => {
  let keys = 0;
  return listenWith((req, res) => {
    const chunks: Uint8Array[] = [];
    req.on('data', (chunk: Uint8Array) => chunks.push(chunk));
    req.on('end', () => {
      check();
      keys += 1;
      write(String(keys)).then(
        () => res.writeHead(200, { 'Content-Length': '0' }).end(),
        (error: unknown) => res.destroy(error as Error),
      );
    });
  });
};

/** A server of `node:http` that verifies by http-message-signatures and parses the body: no digest, no replays. */
async function listenPeer(key: KeyPair): Promise<number> {
  const { peerVerifier } = await import('./peer.ts');
  const verifies = peerVerifier(key.publicJwk, 'ed25519');
  return listenWith((req, res) => {
    const chunks: Uint8Array[] = [];
    req.on('data', (chunk: Uint8Array) => chunks.push(chunk));
    req.on('end', () => {
      verifies(req.headers as Record<string, string>)
        .then((isSigned) => {
          JSON.parse(Buffer.concat(chunks).toString());
          return res.writeHead(isSigned ? 200 : 401, { 'Content-Length': '0' }).end();
        })
        .catch((error: unknown) => res.destroy(error as Error));
    });
  });
}

/** What a server process is told to be. `samples`: what a bare server verifies, one a request and each in its turn. */
export interface ServerJob {
  readonly framework: string;
  readonly kind: 'bare' | 'peer' | 'door' | 'off-thread' | 'on-thread' | 'sodium';
  readonly key: KeyPair;
  readonly samples: readonly Pick<Prepared, 'base' | 'bareSignature'>[];
  /** A durable store. `node` alone, `bare` and `door`: a bare server makes its backend's cheapest write. */
  readonly place?: StoreLocation;
}

/** In the server's process. */
export async function listenFor({ framework, kind, key, samples, place }: ServerJob): Promise<number> {
  const made = FRAMEWORKS[framework];
  if (!made) throw new Error(`no framework ${framework}`);
  const verify = bareVerify(key, 'ed25519');
  let next = 0;
  const verifyOne = (): void => verify(samples[next++ % samples.length] as ServerJob['samples'][number]);
  const kinds: Readonly<Record<ServerJob['kind'], Listen>> = {
    bare: async () => (place ? listenBareWriting(verifyOne, await bareWriteAt(place)) : made.bare(verifyOne)),
    door: async () =>
      made.door(
        receiverFor(key, {}, place && { store: await openAt(place), durability: { require: 'disk' } }),
      ),
    peer: () => listenPeer(key),
    sodium: () => made.door(receiverFor(key, {}, ON_THREAD)),
    'on-thread': () => made.door(receiverFor(key, {}, ON_THREAD)),
    'off-thread': () => made.door(receiverFor(key, {}, OFF_THREAD)),
  };
  return kinds[kind]();
}

/** A server in a process of its own. */
export interface ServerProcess {
  readonly port: number;
  /** The most memory that it has held so far, KiB. Linux. */
  readonly peakKiB: () => number;
  readonly stop: () => Promise<void>;
}

export async function startServerProcess(job: ServerJob): Promise<ServerProcess> {
  // Structured clone, so that byte arrays arrive as such.
  const child = fork(fileURLToPath(new URL('server.ts', import.meta.url)), {
    serialization: 'advanced',
    // Looked for where it is measured, and nowhere else.
    env: { ...process.env, PROTO_WEBHOOKS_SODIUM: job.kind === 'sodium' ? '1' : '0' },
  });
  const end = (): void => void child.kill('SIGKILL');
  process.once('exit', end);
  child.send(job);
  const said = await Promise.race([once(child, 'message'), once(child, 'exit')]);
  const [port] = said as [unknown];
  if (child.exitCode !== null || typeof port !== 'number')
    throw new Error(`the ${job.framework} server ended`);
  return {
    port,
    peakKiB: () => {
      const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
      return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]);
    },
    stop: async () => {
      process.off('exit', end);
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    },
  };
}
