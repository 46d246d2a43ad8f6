import { once } from 'node:events';
import { request } from 'node:http';
import { createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { FakeSeller } from '../../src/testing/index.ts';
import { startLink, type Link } from '../support/redis-link.ts';
import { ownDatabase } from './database.ts';
import { itReceives } from './deliveries.ts';
import { INSTALL_MS } from '../support/packed.ts';
import { installed, type Example, type Running } from './kit.ts';
import { registered } from './registered.ts';

/** A database that never says anything. */
interface Silent extends AsyncDisposable {
  readonly port: number;
  /** How many it has had, and how many are open. */
  readonly connections: () => number;
  readonly open: () => number;
}

async function listenSilently(): Promise<Silent> {
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    sockets.add(socket.on('error', () => undefined).on('close', () => sockets.delete(socket)));
    socket.resume();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return {
    port: address.port,
    connections: () => connections,
    open: () => sockets.size,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

describe('examples/worker, installed from the packed package, bundled, and run by workerd', () => {
  const opened = new AsyncDisposableStack();
  let example: Example;
  let seller: FakeSeller;
  let inbox: Running;
  let server: Running;
  let silent: Silent;
  let link: Link;
  let databasePort = 0;

  beforeAll(async () => {
    example = await installed('worker', inject('shared'));
    opened.defer(example.remove);
    const database = await ownDatabase(inject('shared'), 'worker');
    opened.defer(database.drop);
    silent = opened.use(await listenSilently());
    link = await startLink(silent.port);
    opened.defer(link.close);
    const near = new URL(database.url);
    databasePort = Number(near.port);
    near.host = `127.0.0.1:${link.port}`;
    const at = await registered();
    seller = opened.use(at.seller);
    const env = { ...at.env, DATABASE_URL: database.url };
    await example.script('build');
    await example.script('migrate', env);
    inbox = example.start('inbox', env);
    opened.defer(async () => void (await inbox.stop()));
    server = example.start('start', { ...env, DATABASE_URL: near.href });
    opened.defer(async () => void (await server.stop()));
    await server.answers(at.origin);
  }, INSTALL_MS);

  afterAll(() => opened.disposeAsync());

  it('requests that break off while a cold isolate waits for its database leave nothing that later ones would wait for', async () => {
    const gone = await Promise.all(
      Array.from({ length: 3 }, async () => {
        const { url, method, headers, body } = await seller.sign(seller.payloads.tool('working'));
        return request(url, { method, headers })
          .on('error', () => undefined)
          .end(body);
      }),
    );
    await expect.poll(silent.connections).toBe(gone.length);
    for (const sending of gone) sending.destroy();
    await expect.poll(silent.open).toBe(0);
    link.retarget(databasePort);
    const payloads = Array.from({ length: 20 }, () => seller.payloads.tool('working'));
    const results = await Promise.all(payloads.map((payload) => seller.deliver(payload)));
    expect(results.map(({ attempts }) => attempts.map(({ status }) => status))).toEqual(
      payloads.map(() => [200]),
    );
  });

  itReceives(() => ({ seller, handles: inbox }));

  it('20 deliveries at once: no request waits for what another one began', async () => {
    const payloads = Array.from({ length: 20 }, () => seller.payloads.tool('working'));
    const results = await Promise.all(payloads.map((payload) => seller.deliver(payload)));
    expect(results.map(({ attempts }) => attempts.map(({ status }) => status))).toEqual(
      payloads.map(() => [200]),
    );
    for (const { idempotency_key: key } of payloads) await expect.poll(inbox.printed).toContain(key);
  });

  it('its types are right, those of its dependencies included', () => example.script('types'), INSTALL_MS);

  it('the inbox stops on SIGTERM', async () => {
    expect(await inbox.stop()).toBe(0);
  });
});
