import { once } from 'node:events';
import { request, type ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import type { NodeRequest } from '../../src/adapters/node.ts';
import { webhookHandler } from '../../src/adapters/node.ts';
import { listening, POST, rawClient } from './raw-client.ts';
import { header, OK, recordingReceiver, text } from './recording-receiver.ts';
import { gate } from '../support/gate.ts';

const post = (url: string, body: string | Uint8Array<ArrayBuffer>): Promise<Response> =>
  fetch(url, { method: 'POST', body, headers: { 'content-type': 'application/json' } });

describe('input', () => {
  test('passes on the bytes as received, with method and target', async () => {
    const receiver = recordingReceiver();
    await using server = await listening(webhookHandler(receiver));
    const bytes = new Uint8Array([0xef, 0xbb, 0xbf, 0x7b, 0xff, 0x00, 0x7d]);
    const response = await post(`${server.url}/hook/a%7Eb?q=%41`, bytes);
    expect(response.status).toBe(200);
    expect(receiver.handed).toHaveLength(1);
    expect([...(receiver.handed[0]?.rawBody ?? [])]).toEqual([...bytes]);
    expect(receiver.handed[0]?.request).toMatchObject({ method: 'POST', url: '/hook/a%7Eb?q=%41' });
  });

  test.each(['Content-Digest', 'Signature', 'Signature-Input', 'Host'])(
    'keeps a repeated %s as two lines',
    async (name) => {
      const receiver = recordingReceiver();
      await using server = await listening(webhookHandler(receiver));
      const client = await rawClient(server.port);
      client.send(...POST('Content-Length: 2', 'Connection: close', `${name}: a`, `${name}: b`), '', '{}');
      await client.closed();
      expect(receiver.handed[0]?.headers.get(name.toLowerCase())?.slice(-2)).toEqual(['a', 'b']);
    },
  );

  test('sees a repeated Content-Type, refused with 415', async () => {
    const receiver = recordingReceiver();
    await using server = await listening(webhookHandler(receiver));
    const client = await rawClient(server.port);
    client.send(...POST('Content-Type: application/json', 'Content-Length: 2'), '', '{}');
    expect(await client.closed()).toMatch(/^HTTP\/1\.1 415 /);
  });

  test('keeps an absolute-form target', async () => {
    const receiver = recordingReceiver();
    await using server = await listening(webhookHandler(receiver));
    const client = await rawClient(server.port);
    client.send('POST http://other.example/hook HTTP/1.1', ...POST('Content-Length: 2').slice(1), '', '{}');
    await client.until(/ 200 /);
    expect(receiver.handed[0]?.request.url).toBe('http://other.example/hook');
    client.socket.destroy();
  });

  test('keeps Latin-1 octets in a header value', async () => {
    const receiver = recordingReceiver();
    await using server = await listening(webhookHandler(receiver));
    const client = await rawClient(server.port);
    client.send(...POST('Signature: sig1=:\u00e9:', 'Content-Length: 2', 'Connection: close'), '', '{}');
    await client.closed();
    expect(header(receiver.handed[0], 'signature')).toBe('sig1=:\u00e9:');
  });

  test('joins a chunked body and ignores its trailers', async () => {
    const receiver = recordingReceiver();
    await using server = await listening(webhookHandler(receiver));
    const client = await rawClient(server.port);
    client.send(
      ...POST('Transfer-Encoding: chunked', 'Trailer: Content-Digest', 'Connection: close'),
      '',
      '',
    );
    client.send('3', '{"a', '4', '":1}', '0', 'Content-Digest: sha-256=:AA:', '', '');
    await client.closed();
    expect(text(receiver.handed[0])).toBe('{"a":1}');
    expect(header(receiver.handed[0], 'content-digest')).toBeUndefined();
  });

  test('answers Expect: 100-continue with 100 and then the answer', async () => {
    const receiver = recordingReceiver();
    await using server = await listening(webhookHandler(receiver));
    const sent = request(server.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'content-length': 2, expect: '100-continue' },
    });
    sent.flushHeaders();
    await once(sent, 'continue');
    sent.end('{}');
    const [response] = await once(sent, 'response');
    response.resume();
    expect(response.statusCode).toBe(200);
    expect(text(receiver.handed[0])).toBe('{}');
  });
});

describe('output', () => {
  test('is the reply with its length in bytes, and Node’s own headers', async () => {
    const body = '{"error":{"message":"\u00fc\u{1f4a1}"}}';
    const reply = { status: 400, headers: { 'Content-Type': 'application/json' }, body };
    await using server = await listening(webhookHandler(recordingReceiver({ answer: () => reply })));
    const client = await rawClient(server.port);
    client.send(...POST('Content-Length: 2', 'Connection: close'), '', '{}');
    const received = await client.closed();
    const [head = '', ...rest] = received.split('\r\n\r\n');
    expect(Buffer.from(rest.join(), 'latin1').toString()).toBe(body);
    const lines = head.split('\r\n');
    expect(lines[0]).toBe('HTTP/1.1 400 Bad Request');
    expect(lines.filter((line) => !/^(HTTP|Date|Connection)/.test(line)).toSorted()).toEqual([
      `Content-Length: ${Buffer.byteLength(body)}`,
      'Content-Type: application/json',
    ]);
  });

  test('has Content-Length: 0 for an empty reply, and the connection serves the next delivery', async () => {
    const receiver = recordingReceiver();
    await using server = await listening(webhookHandler(receiver));
    const client = await rawClient(server.port);
    client.send(...POST('Content-Length: 2'), '', '{}');
    expect(await client.until(/\r\n\r\n/)).toMatch(/^Content-Length: 0\r$/m);
    client.send(...POST('Content-Length: 2', 'Connection: close'), '', '[]');
    await client.closed();
    expect(receiver.handed.map(text)).toEqual(['{}', '[]']);
  });

  test('is 503 with Retry-After for an exception, which is reported', async () => {
    const broken = new TypeError('a bug');
    const receiver = recordingReceiver({ answer: () => Promise.reject(broken) });
    await using server = await listening(webhookHandler(receiver));
    const response = await post(server.url, '{}');
    expect([response.status, response.headers.get('retry-after'), await response.text()]).toEqual([
      503,
      '7',
      '',
    ]);
    expect(receiver.faults).toEqual([broken]);
  });

  test('is 503 for an exception that the receiver cannot report', async () => {
    const { door, ...receiver } = recordingReceiver({
      answer: () => Promise.reject(new Error('a bug')),
    });
    const { fault: _, ...rest } = door;
    await using server = await listening(webhookHandler({ ...receiver, door: rest }));
    const response = await post(server.url, '{}');
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5']);
  });

  test('closes only its connection when it cannot be written', async () => {
    const bad = { status: 200, headers: { 'X-Bad': 'a\r\nb' }, body: '' };
    const receiver = recordingReceiver({ answer: () => bad });
    const door = { ...receiver.door, fault: () => ({ response: bad }) };
    await using server = await listening(webhookHandler({ ...receiver, door }));
    await expect(post(server.url, '{}')).rejects.toThrow('fetch failed');
  });

  test('is 503 for an exception of open too', async () => {
    const receiver = recordingReceiver();
    const open = (): never => {
      throw new Error('a bug');
    };
    await using server = await listening(webhookHandler({ ...receiver, open }));
    expect((await post(server.url, '{}')).status).toBe(503);
  });

  test('is not affected by a sender that disconnected, and the receiver is told', async () => {
    const answer = gate<typeof OK>();
    const receiver = recordingReceiver({ answer: () => answer.opened });
    const closed = gate<ServerResponse>();
    await using server = await listening((req, res) => {
      webhookHandler(receiver)(req, res);
      res.on('close', () => closed.open(res));
    });
    const client = await rawClient(server.port);
    client.send(...POST('Content-Length: 2'), '', '{}');
    await expect.poll(() => receiver.handed.length).toBe(1);
    expect(receiver.handed[0]?.request.signal?.aborted).toBe(false);
    client.socket.destroy();
    const res = await closed.opened;
    expect(receiver.handed[0]?.request.signal?.aborted).toBe(true);
    answer.open(OK);
    await answer.opened;
    expect((await post(server.url, '{}')).status).toBe(200);
    expect(res.headersSent).toBe(false);
    expect(receiver.faults).toEqual([]);
  });

  test('does not replace an answer that was already sent', async () => {
    const receiver = recordingReceiver();
    await using server = await listening((req, res) => {
      res.writeHead(204).end();
      webhookHandler(receiver)(req, res);
    });
    expect((await post(server.url, '{}')).status).toBe(204);
    expect(receiver.faults).toEqual([]);
  });
});

describe('a body that was read before', () => {
  const parsed = (prepare: (req: NodeRequest, bytes: Buffer) => object) => {
    const receiver = recordingReceiver();
    const handler = webhookHandler(receiver);
    const server = listening((req, res) => {
      const chunks: Buffer[] = [];
      req.on('data', (chunk: Buffer) => chunks.push(chunk));
      req.on('end', () => handler(Object.assign(req, prepare(req, Buffer.concat(chunks))), res));
    });
    return { receiver, server };
  };

  test('and parsed is refused with 503, the log names the fix', async () => {
    const { receiver, server } = parsed(() => ({ body: {} }));
    await using open = await server;
    const response = await post(open.url, '{}');
    expect([response.status, response.headers.get('connection')]).toEqual([503, 'keep-alive']);
    expect(receiver.handed).toEqual([]);
    expect(receiver.refused).toEqual([
      { code: 'body_consumed', detail: expect.stringContaining('Call the handler before') as string },
    ]);
  });

  test.each(['rawBody', 'body'])('and kept as a Uint8Array in %s is accepted', async (member) => {
    const { receiver, server } = parsed((_, bytes) => ({ [member]: bytes }));
    await using open = await server;
    expect((await post(open.url, '{"a":1}')).status).toBe(200);
    expect(receiver.handed.map(text)).toEqual(['{"a":1}']);
  });

  test('and kept as a Uint8Array over the cap is refused with 413', async () => {
    const { receiver, server } = parsed(() => ({ rawBody: new Uint8Array(65) }));
    await using open = await server;
    expect((await post(open.url, '{}')).status).toBe(413);
    expect(receiver.handed).toEqual([]);
  });

  test('or is decoded to strings is refused with 503', async () => {
    const receiver = recordingReceiver();
    await using server = await listening((req, res) => {
      req.setEncoding('utf8');
      webhookHandler(receiver)(req, res);
    });
    expect((await post(server.url, '{}')).status).toBe(503);
    expect(receiver.refused).toEqual([
      { code: 'body_consumed', detail: expect.stringContaining('setEncoding') as string },
    ]);
  });

  test('a body member set without reading anything does not count', async () => {
    const receiver = recordingReceiver();
    await using server = await listening((req, res) =>
      webhookHandler(receiver)(Object.assign(req, { body: {} }), res),
    );
    expect((await post(server.url, '{"a":1}')).status).toBe(200);
    expect(receiver.handed.map(text)).toEqual(['{"a":1}']);
  });

  test('reads a request that was paused before', async () => {
    const receiver = recordingReceiver();
    await using server = await listening((req, res) => webhookHandler(receiver)(req.pause(), res));
    expect((await post(server.url, '{"a":1}')).status).toBe(200);
    expect(receiver.handed.map(text)).toEqual(['{"a":1}']);
  });

  test('takes headers when rawHeaders is empty', async () => {
    const receiver = recordingReceiver();
    await using server = await listening((req, res) =>
      webhookHandler(receiver)(Object.assign(req, { rawHeaders: [] }), res),
    );
    expect((await post(server.url, '{}')).status).toBe(200);
    expect(header(receiver.handed[0], 'content-type')).toBe('application/json');
  });
});
