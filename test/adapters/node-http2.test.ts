import { once } from 'node:events';
import {
  connect,
  createServer,
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type OutgoingHttpHeaders,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { webhookHandler } from '../../src/adapters/node.ts';
import { closing } from './raw-client.ts';
import { header, OK, recordingReceiver, text, type RecordingReceiver } from './recording-receiver.ts';
import { gate } from '../support/gate.ts';

interface Session extends AsyncDisposable {
  readonly session: ClientHttp2Session;
  readonly authority: string;
}

async function session(receiver: RecordingReceiver): Promise<Session> {
  const server = createServer(webhookHandler(receiver));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const authority = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = connect(`http://${authority}`);
  return {
    session: client,
    authority,
    [Symbol.asyncDispose]: async () => {
      client.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

const open = ({ session }: Session, headers: OutgoingHttpHeaders = {}): ClientHttp2Stream =>
  session.request({ ':method': 'POST', ':path': '/hook?a', 'content-type': 'application/json', ...headers });

interface Http2Answer {
  readonly status: unknown;
  readonly headers: OutgoingHttpHeaders;
  readonly body: string;
}

async function answerTo(stream: ClientHttp2Stream): Promise<Http2Answer> {
  const [headers] = (await once(stream, 'response')) as [OutgoingHttpHeaders];
  let body = '';
  stream.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
  await closing(stream);
  return { status: headers[':status'], headers, body };
}

test('bytes, :authority beside Host, method and target are passed on', async () => {
  const receiver = recordingReceiver();
  await using http2 = await session(receiver);
  const stream = open(http2, { ':authority': 'a.example', host: 'b.example', 'x-twice': ['1', '2'] });
  stream.end('{"a":1}');
  expect((await answerTo(stream)).status).toBe(200);
  const [handed] = receiver.handed;
  expect(text(handed)).toBe('{"a":1}');
  expect([header(handed, ':authority'), header(handed, 'host')]).toEqual(['a.example', 'b.example']);
  expect(handed?.headers.get('x-twice')).toEqual(['1', '2']);
  expect(handed?.request).toMatchObject({ method: 'POST', url: '/hook?a' });
});

test(':authority alone is passed on', async () => {
  const receiver = recordingReceiver();
  await using http2 = await session(receiver);
  const stream = open(http2);
  stream.end('{}');
  expect((await answerTo(stream)).status).toBe(200);
  expect(header(receiver.handed[0], ':authority')).toBe(http2.authority);
  expect(header(receiver.handed[0], 'host')).toBeUndefined();
});

test('the reply with its length in bytes is written, without a Connection header', async () => {
  const reply = { status: 400, headers: { 'Content-Type': 'application/json' }, body: '{"a":"\u00fc"}' };
  await using http2 = await session(recordingReceiver({ answer: () => reply }));
  const stream = open(http2);
  stream.end('{}');
  const { headers, body } = await answerTo(stream);
  expect(body).toBe(reply.body);
  expect(Object.entries(headers).filter(([name]) => name !== 'date')).toEqual([
    [':status', 400],
    ['content-type', 'application/json'],
    ['content-length', '10'],
  ]);
});

test('a body over the cap: 413 before its end; the stream ends, the session serves the next one', async () => {
  const receiver = recordingReceiver({ maxBodyBytes: 64 });
  await using http2 = await session(receiver);
  const endless = open(http2);
  endless.write('x'.repeat(65));
  const { status, headers } = await answerTo(endless);
  expect([status, headers['connection']]).toEqual([413, undefined]);
  const next = open(http2);
  next.end('{}');
  expect((await answerTo(next)).status).toBe(200);
  expect(receiver.handed.map(text)).toEqual(['{}']);
});

test.each([
  ['text/plain', { 'content-type': 'text/plain' }, 415],
  ['PUT', { ':method': 'PUT' }, 405],
  ['a declared length over the cap', { 'content-length': 65 }, 413],
])('%s is refused before the body, and the stream ends', async (_, headers, status) => {
  const receiver = recordingReceiver({ maxBodyBytes: 64 });
  await using http2 = await session(receiver);
  expect((await answerTo(open(http2, headers))).status).toBe(status);
  expect(receiver.handed).toEqual([]);
});

test('an unfinished body: 503', async () => {
  const receiver = recordingReceiver({ bodyDeadlineMs: 20 });
  await using http2 = await session(receiver);
  const stream = open(http2);
  stream.write('{');
  const { status, headers } = await answerTo(stream);
  expect([status, headers['retry-after']]).toEqual([503, '5']);
  expect(receiver.refused.map(({ code }) => code)).toEqual(['body_timeout']);
});

test('an upload that is reset leaves no state', async () => {
  const receiver = recordingReceiver();
  await using http2 = await session(receiver);
  const broken = open(http2);
  const ended = closing(broken);
  broken.on('error', () => undefined);
  broken.write('{');
  broken.close(8);
  await ended;
  const next = open(http2);
  next.end('{}');
  expect((await answerTo(next)).status).toBe(200);
  expect(receiver.handed.map(text)).toEqual(['{}']);
  expect([receiver.refused, receiver.faults]).toEqual([[], []]);
});

test('a sender that disconnected before the answer has no effect', async () => {
  const answer = gate<typeof OK>();
  const receiver = recordingReceiver({ answer: () => answer.opened });
  await using http2 = await session(receiver);
  const left = open(http2);
  left.on('error', () => undefined);
  left.end('{}');
  await expect.poll(() => receiver.handed.length).toBe(1);
  left.close(8);
  await expect.poll(() => receiver.handed[0]?.request.signal?.aborted).toBe(true);
  answer.open(OK);
  const next = open(http2);
  next.end('[]');
  expect((await answerTo(next)).status).toBe(200);
  expect(receiver.faults).toEqual([]);
});
