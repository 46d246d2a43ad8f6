/*
 * What one delivery makes, counted: run by `costs.test.ts` in a process of its own, by the pinned Node and without its
 * optimising compilers, so that neither the machine nor its load changes a count. Prints one line of JSON.
 */
import { createHook } from 'node:async_hooks';
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { HeapProfiler } from 'node:inspector';
import { Session } from 'node:inspector/promises';
import { connect, type AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import express from 'express';
import fastify from 'fastify';
import { Hono } from 'hono';
import { webhookHandler as expressHandler } from '../../src/adapters/express.ts';
import { webhookPlugin } from '../../src/adapters/fastify.ts';
import { webhookHandler as honoHandler } from '../../src/adapters/hono.ts';
import { webhookHandler as nodeHandler } from '../../src/adapters/node.ts';
import type { Receiver } from '../../src/index.ts';
import { generateKey, type SignDeliveryOptions } from '../../src/sender/sign.ts';
import { sqliteStore } from '../../src/stores/sqlite.ts';
import { payloads, type Signed, type TestReceiverOptions, testReceiver, URL_GIVEN } from './setup.ts';

const PATH = new URL(URL_GIVEN).pathname;
const WARM = 60;
const COUNTED = 20;

/** What one delivery makes, of all that is made between two of them. */
export interface Made {
  readonly promises: number;
  readonly objects: number;
  readonly bytes: number;
}

type Send = (delivery: Signed) => Promise<void>;

/** A request of HTTP/1.1 over one connection, by callbacks: what the client makes is a handful beside the server. */
async function overHttp(listener: RequestListener | Server): Promise<Send> {
  const server = typeof listener === 'function' ? createServer(listener) : listener;
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  await once(socket, 'connect');
  let answered: (text: string) => void = () => {};
  socket.setEncoding('latin1').on('data', (text: string) => answered(text));
  return ({ body, headers }) =>
    new Promise((resolve, reject) => {
      const lines = Object.entries({ Host: 'buyer.example', 'Content-Length': body.length, ...headers });
      const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
      answered = (text) => (text.startsWith('HTTP/1.1 200 ') ? resolve() : reject(new Error(text)));
      socket.write(Buffer.concat([Buffer.from(`POST ${PATH} HTTP/1.1\r\n${head}\r\n`), body]));
    });
}

/** @param expected the outcome's code; undefined: the delivery is accepted. */
const inProcess =
  (receiver: Receiver, expected?: string): Send =>
  async ({ body, headers }) => {
    const { kind, code } = await receiver.verifyAndDispatch(body, Object.entries(headers).flat());
    if (code !== expected || (kind !== 'accepted' && !expected)) throw new Error(`${kind} ${code}`);
  };

/** Doors by name, and `none`: a server of `node:http` that reads the body and answers, for comparison. */
const DOORS: Readonly<Record<string, (receiver: Receiver) => Send | Promise<Send>>> = {
  'in process': inProcess,
  node: (receiver) => overHttp(nodeHandler(receiver)),
  express: (receiver) => overHttp(express().post(PATH, expressHandler(receiver))),
  fastify: async (receiver) => {
    const app = fastify();
    await app.register(webhookPlugin(receiver, PATH));
    await app.ready();
    return overHttp(app.server);
  },
  hono: (receiver) => {
    const { fetch } = new Hono().post(PATH, honoHandler(receiver));
    const listener = getRequestListener(fetch, { overrideGlobalObjects: false });
    return overHttp((req, res) => void listener(req, res));
  },
  none: () =>
    overHttp((req, res) => {
      req.resume().on('end', () => res.writeHead(200, { 'Content-Length': '0' }).end());
    }),
};

async function sendAll(send: Send, deliveries: readonly Signed[]): Promise<void> {
  for (const delivery of deliveries) await send(delivery);
}

async function promisesOf(work: () => Promise<void>): Promise<number> {
  let promises = 0;
  const hook = createHook({
    init: (_id, type) => {
      if (type === 'PROMISE') promises += 1;
    },
  });
  hook.enable();
  await work();
  hook.disable();
  return promises;
}

/** As V8 gives it: the package of types lacks the samples. */
interface Profile {
  readonly head: HeapProfiler.SamplingHeapProfileNode;
  readonly samples: readonly unknown[];
}

/** Every allocation is a sample where the mean between two samples is one byte. */
async function allocationsOf(work: () => Promise<void>): Promise<Pick<Made, 'objects' | 'bytes'>> {
  const session = new Session();
  session.connect();
  await session.post('HeapProfiler.startSampling', {
    samplingInterval: 1,
    includeObjectsCollectedByMajorGC: true,
    includeObjectsCollectedByMinorGC: true,
  });
  await work();
  const { profile } = (await session.post('HeapProfiler.stopSampling')) as { profile: Profile };
  session.disconnect();
  let bytes = 0;
  const all = [profile.head];
  for (const node of all) {
    bytes += node.selfSize;
    all.push(...node.children);
  }
  return { objects: profile.samples.length, bytes };
}

/** @param changes what differs from the deliveries that are accepted. */
async function madeBy(
  make: (receiver: Receiver) => Send | Promise<Send>,
  options: TestReceiverOptions,
  changes: Partial<SignDeliveryOptions> = {},
): Promise<Made> {
  const { receiver, sign } = await testReceiver(options);
  const send = await make(receiver);
  const signed = (count: number): Promise<Signed[]> =>
    Promise.all(Array.from({ length: count }, () => sign(payloads.tool('completed'), changes)));
  await sendAll(send, await signed(WARM));
  const [first, second] = [await signed(COUNTED), await signed(COUNTED)];
  const { objects, bytes } = await allocationsOf(() => sendAll(send, first));
  const promises = await promisesOf(() => sendAll(send, second));
  const each = (count: number): number => Math.round(count / COUNTED);
  return { promises: each(promises), objects: each(objects), bytes: each(bytes) };
}

/** Deliveries that anybody can send, by the code that refuses them. */
const REFUSED: Readonly<Record<string, Partial<SignDeliveryOptions>>> = {
  unsupported_media_type: { headers: { 'Content-Type': 'text/plain' } },
  webhook_signature_key_unknown: { params: { keyid: 'never-published' } },
  webhook_signature_invalid: {
    key: (await generateKey('ed25519', 'webhook-signing', { kid: 'seller-1' })).privateJwk,
  },
};

const main = { verification: 'main' } as const;
const made: Record<string, Made> = {};
for (const [door, make] of Object.entries(DOORS)) made[door] = await madeBy(make, main);
made['in process, SQLite'] = await madeBy(inProcess, { ...main, store: sqliteStore(':memory:') });
for (const [code, changes] of Object.entries(REFUSED)) {
  made[`refused: ${code}`] = await madeBy((receiver) => inProcess(receiver, code), main, changes);
}
process.stdout.write(`${JSON.stringify(made)}\n`, () => process.exit());
