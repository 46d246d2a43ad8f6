import express from 'express';
import { once } from 'node:events';
import { connect, createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { webhookHandler as expressHandler } from '../../src/adapters/express.ts';
import { webhookHandler as fetchHandler } from '../../src/adapters/fetch.ts';
import { webhookHandler } from '../../src/adapters/node.ts';
import { createReceiver, type Receiver, type ReceiverOptions } from '../../src/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createFakeSeller, type FakeSeller } from '../../src/testing/index.ts';
import { listening, POST, type RawClient, rawClient, statuses } from './raw-client.ts';
import { SILENT_LOGGER } from '../support/silent-logger.ts';

const ABSENT_TYPE = ['POST / HTTP/1.1', 'Host: a', 'Content-Length: 2', '', '{}'];

let seller: FakeSeller;
beforeAll(async () => {
  seller = await createFakeSeller({ retry: { attempts: 1 } });
});
afterAll(() => seller.close());

const handled: string[] = [];

const receiverAt = (publicUrl: string, more: Partial<ReceiverOptions> = {}): Receiver =>
  createReceiver({
    publicUrl,
    senders: [seller.sender],
    store: memoryStore(),
    allowLoopback: true,
    logger: SILENT_LOGGER,
    handlers: { other: (event) => void handled.push(event.idempotencyKey) },
    ...more,
  });

test('Express: accepted, replayed, tampered, too large, parsed', async () => {
  const app = express();
  await using server = await listening(app);
  const publicUrl = `${server.url}/webhooks/proto?k=v`;
  const receiver = receiverAt(publicUrl);
  app.post('/webhooks/proto', expressHandler(receiver));
  app.post('/parsed', express.json(), expressHandler(receiver));
  const payload = seller.payloads.tool('completed');
  const { last } = await seller.deliver(payload, { url: publicUrl });
  expect(last.status).toBe(200);
  expect(handled).toContain(payload.idempotency_key);
  expect((await seller.send(last.delivery)).code).toBe('webhook_signature_replayed');
  const wrong = await seller.deliver(payload, { url: publicUrl, mistake: 'tampered-body' });
  expect(wrong.last).toMatchObject({ status: 401, code: 'webhook_signature_digest_mismatch' });
  expect((await seller.deliver(payload, { url: publicUrl, mistake: 'oversize' })).last.status).toBe(413);
  expect((await seller.deliver(payload, { url: publicUrl, mistake: 'text-plain' })).last.status).toBe(415);
  const parsed = await seller.deliver(payload, { url: publicUrl, to: `${server.url}/parsed` });
  expect(parsed.last.status).toBe(503);
  await receiver.stop();
});

test('HTTP/2: :authority is what is compared', async () => {
  const server = createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const authority = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const receiver = receiverAt(`http://${authority}/hook`);
  server.on('request', webhookHandler(receiver));
  const session = connect(`http://${authority}`);
  const statusOf = async (more: Record<string, string>): Promise<unknown> => {
    const { headers, body } = await seller.sign(seller.payloads.tool('completed'), {
      url: `http://${authority}/hook`,
    });
    const stream = session.request({ ':method': 'POST', ':path': '/hook', ...headers, ...more });
    stream.end(body);
    const [answer] = (await once(stream.resume(), 'response')) as [Record<string, unknown>];
    return answer[':status'];
  };
  expect(await statusOf({})).toBe(200);
  expect(await statusOf({ ':authority': authority, host: 'other.example' })).toBe(401);
  // Verified, under another name: a proxy of ours rewrote it, and that is no fault of the sender's.
  expect(await statusOf({ ':authority': 'other.example' })).toBe(503);
  session.destroy();
  server.close();
  await receiver.stop();
});

interface SignedTo extends AsyncDisposable {
  readonly client: RawClient;
  readonly host: string;
  /** Lines of a delivery of `{}`, signed for `/hook` of this server. */
  readonly fields: readonly string[];
}

/** A receiver at a server of its own, and a connection to it. */
async function signedTo(): Promise<SignedTo> {
  const late: { receiver?: Receiver } = {};
  const server = await listening((req, res) => late.receiver && webhookHandler(late.receiver)(req, res));
  const receiver = receiverAt(`${server.url}/hook`);
  late.receiver = receiver;
  const { headers } = await seller.sign('{}', { url: `${server.url}/hook` });
  return {
    client: await rawClient(server.port),
    host: `Host: 127.0.0.1:${server.port}`,
    fields: Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    [Symbol.asyncDispose]: async () => {
      await receiver.stop();
      await server[Symbol.asyncDispose]();
    },
  };
}

describe('HTTP/1.1: what only the raw header lines show', () => {
  test.each([
    ['a repeated Host', ['Host: other.example'], 401, 'webhook_target_uri_malformed'],
    [
      'a repeated Content-Digest',
      ['Content-Digest: sha-256=:AA:'],
      401,
      'webhook_signature_header_malformed',
    ],
    ['a repeated Content-Type', ['Content-Type: application/json'], 415, undefined],
    ['latin-1 in Signature', ['Signature: \u00e9'], 401, 'webhook_signature_header_malformed'],
  ])('%s', async (_, lines, status, code) => {
    await using to = await signedTo();
    to.client.send(
      'POST /hook HTTP/1.1',
      to.host,
      ...to.fields,
      ...lines,
      'Content-Length: 2',
      'Connection: close',
      '',
      '{}',
    );
    const received = await to.client.closed();
    expect(statuses(received)).toEqual([status]);
    expect(/error="([^"]*)"/.exec(received)?.[1]).toBe(code);
  });

  test('an absolute-form target that names another authority', async () => {
    await using to = await signedTo();
    to.client.send(
      'POST http://other.example/hook HTTP/1.1',
      to.host,
      ...to.fields,
      'Content-Length: 2',
      'Connection: close',
      '',
      '{}',
    );
    expect(await to.client.closed()).toContain('error="webhook_target_uri_malformed"');
  });

  test('a Content-Digest in the trailers only does not count', async () => {
    await using to = await signedTo();
    const isDigest = (line: string): boolean => line.startsWith('Content-Digest:');
    to.client.send('POST /hook HTTP/1.1', to.host, ...to.fields.filter((line) => !isDigest(line)));
    to.client.send('', 'Transfer-Encoding: chunked', 'Connection: close', '', '2', '{}', '0');
    to.client.send('', ...to.fields.filter(isDigest), '', '');
    expect(statuses(await to.client.closed())).toEqual([401]);
  });
});

test('a receiver that is stopping answers 503 before the body, and missing types 415', async () => {
  const receiver = receiverAt('http://127.0.0.1/hook');
  await using server = await listening(webhookHandler(receiver));
  const untyped = await rawClient(server.port);
  untyped.send(...ABSENT_TYPE);
  expect(statuses(await untyped.closed())).toEqual([415]);
  await receiver.stop();
  const late = await rawClient(server.port);
  late.send(...POST('Content-Length: 2'), '', '');
  expect(statuses(await late.until(/\r\n\r\n/))).toEqual([503]);
  late.socket.destroy();
});

test('Fetch API: accepted, replayed, stopped, and a server’s path behind a wildcard', async () => {
  const receiver = receiverAt('https://buyer.example/hooks/*');
  const handler = fetchHandler(receiver);
  const { method, url, headers, body } = await seller.sign(seller.payloads.agent('completed'), {
    url: 'https://buyer.example/hooks/a?b=c',
  });
  const request = (): Request => new Request(url, { method, headers: { ...headers }, body });
  expect((await handler(request())).status).toBe(200);
  const replay = await handler(request());
  expect([replay.status, replay.headers.get('www-authenticate')]).toEqual([
    401,
    'Signature error="webhook_signature_replayed"',
  ]);
  await receiver.stop();
  expect((await handler(request())).status).toBe(503);
});
