import { describe, expect, test } from 'vitest';
import { webhookHandler } from '../../src/adapters/fetch.ts';
import { header, OK, recordingReceiver, text } from './recording-receiver.ts';

const URL = 'https://buyer.example/hook?a';

const request = (body: NonNullable<RequestInit['body']> | null, init: RequestInit = {}): Request =>
  new Request(URL, {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json' },
    duplex: 'half',
    ...init,
  });

/** Gives its chunks, and then stays open. `cancelled` settles when the reader lets go. */
function openStream(...chunks: readonly string[]): {
  readonly stream: ReadableStream<Uint8Array>;
  readonly cancelled: Promise<void>;
} {
  let cancel: () => void = () => undefined;
  const cancelled = new Promise<void>((resolve) => {
    cancel = resolve;
  });
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(new TextEncoder().encode(chunk));
    },
    cancel,
  });
  return { stream, cancelled };
}

test('bytes, headers, method and URL are passed on', async () => {
  const receiver = recordingReceiver();
  const bytes = new Uint8Array([0x7b, 0xff, 0x7d]);
  const response = await webhookHandler(receiver)(
    request(bytes, { headers: { 'content-type': 'application/json', signature: 'x' } }),
  );
  expect(response.status).toBe(200);
  expect([...(receiver.handed[0]?.rawBody ?? [])]).toEqual([...bytes]);
  expect(receiver.handed[0]?.request).toMatchObject({ method: 'POST', url: '/hook?a' });
  expect(header(receiver.handed[0], 'signature')).toBe('x');
});

test('chunks are joined; a request without a body has none', async () => {
  const receiver = recordingReceiver();
  const stream = new ReadableStream({
    start(controller) {
      for (const chunk of ['{"a"', '', ':1}']) controller.enqueue(new TextEncoder().encode(chunk));
      controller.close();
    },
  });
  await webhookHandler(receiver)(request(stream));
  await webhookHandler(receiver)(request(null));
  expect(receiver.handed.map(text)).toEqual(['{"a":1}', '']);
});

test('the reply is written as it is: Content-Length in bytes, no Content-Type of its own', async () => {
  const replies = [
    { status: 409, headers: { 'X-A': 'b' }, body: '\u00fc' },
    { status: 401, headers: { 'WWW-Authenticate': 'Signature error="x"' }, body: '' },
  ];
  const handler = webhookHandler(recordingReceiver({ answer: () => replies.shift() ?? OK }));
  const first = await handler(request('{}'));
  expect([first.status, await first.text()]).toEqual([409, '\u00fc']);
  expect([...first.headers]).toEqual([
    ['content-length', '2'],
    ['x-a', 'b'],
  ]);
  const second = await handler(request('{}'));
  expect([...second.headers]).toEqual([
    ['content-length', '0'],
    ['www-authenticate', 'Signature error="x"'],
  ]);
});

describe('limits', () => {
  test.each([
    ['PUT', { method: 'PUT' }, 405],
    ['text/plain', { headers: { 'content-type': 'text/plain' } }, 415],
    ['a declared length', { headers: { 'content-type': 'application/json', 'content-length': '65' } }, 413],
  ])('%s is refused before the body, which is cancelled', async (_, init, status) => {
    const receiver = recordingReceiver();
    const { stream, cancelled } = openStream('{');
    expect((await webhookHandler(receiver)(request(stream, init))).status).toBe(status);
    await cancelled;
    expect(receiver.handed).toEqual([]);
  });

  test('a body of exactly the cap is accepted, one byte more is 413, and reading stops', async () => {
    const receiver = recordingReceiver({ maxBodyBytes: 8 });
    expect((await webhookHandler(receiver)(request('x'.repeat(8)))).status).toBe(200);
    const { stream, cancelled } = openStream('12345678', '9');
    expect((await webhookHandler(receiver)(request(stream))).status).toBe(413);
    await cancelled;
    expect(receiver.handed).toHaveLength(1);
  });

  test('an unfinished body: 503, and reading stops', async () => {
    const receiver = recordingReceiver({ bodyDeadlineMs: 20 });
    const { stream, cancelled } = openStream('{');
    const response = await webhookHandler(receiver)(request(stream));
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5']);
    await cancelled;
    expect(receiver.refused.map(({ code }) => code)).toEqual(['body_timeout']);
  });

  test('an upload that breaks off leaves no state', async () => {
    const receiver = recordingReceiver();
    const stream = new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode('{'));
      },
      pull(controller) {
        controller.error(new Error('connection lost'));
      },
    });
    expect((await webhookHandler(receiver)(request(stream))).status).toBe(503);
    expect([receiver.handed, receiver.refused, receiver.faults]).toEqual([[], [], []]);
  });
});

describe('a body that was read before', () => {
  test('is refused with 503, and the log names the fix', async () => {
    const receiver = recordingReceiver();
    const read = request('{}');
    await read.json();
    expect((await webhookHandler(receiver)(read)).status).toBe(503);
    expect(receiver.refused).toEqual([
      { code: 'body_consumed', detail: expect.stringContaining('request.clone()') as string },
    ]);
  });

  test('or is locked by another reader is refused too', async () => {
    const receiver = recordingReceiver();
    const locked = request('{}');
    const reader = locked.body?.getReader();
    expect((await webhookHandler(receiver)(locked)).status).toBe(503);
    expect(receiver.refused.map(({ code }) => code)).toEqual(['body_consumed']);
    reader?.releaseLock();
  });

  test('a clone made in time is accepted', async () => {
    const receiver = recordingReceiver();
    const original = request('{ }');
    const clone = original.clone();
    await original.json();
    expect((await webhookHandler(receiver)(clone)).status).toBe(200);
    expect(receiver.handed.map(text)).toEqual(['{ }']);
  });
});

test('an exception is answered 503 and reported', async () => {
  const broken = new Error('a bug');
  const receiver = recordingReceiver({ answer: () => Promise.reject(broken) });
  const response = await webhookHandler(receiver)(request('{}'));
  expect([response.status, response.headers.get('retry-after')]).toEqual([503, '7']);
  expect(receiver.faults).toEqual([broken]);
});

test('the receiver is told when the sender disconnects', async () => {
  const receiver = recordingReceiver();
  const controller = new AbortController();
  await webhookHandler(receiver)(request('{}', { signal: controller.signal }));
  expect(receiver.handed[0]?.request.signal?.aborted).toBe(false);
  controller.abort();
  expect(receiver.handed[0]?.request.signal?.aborted).toBe(true);
});

test('a stream of strings: 503, and the log names its type', async () => {
  const receiver = recordingReceiver();
  const strings = new ReadableStream<unknown>({
    start(controller) {
      controller.enqueue('{}');
      controller.close();
    },
  });
  const response = await webhookHandler(receiver)(request(strings as ReadableStream<Uint8Array>));
  expect(response.status).toBe(503);
  expect(receiver.refused).toEqual([
    { code: 'body_consumed', detail: expect.stringContaining('Uint8Array') as string },
  ]);
});
