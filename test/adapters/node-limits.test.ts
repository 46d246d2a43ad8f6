import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { describe, expect, test } from 'vitest';
import { webhookHandler } from '../../src/adapters/node.ts';
import { closing, listening, POST, rawClient, statuses } from './raw-client.ts';
import { recordingReceiver, text } from './recording-receiver.ts';
import { gate } from '../support/gate.ts';

const CAP = 64;

describe('requests that headers alone decide', () => {
  test.each([
    ['a method other than POST', 405, ['PUT /hook HTTP/1.1', ...POST('Content-Length: 5').slice(1)]],
    ['text/plain', 415, ['POST / HTTP/1.1', 'Host: a', 'Content-Type: text/plain', 'Content-Length: 5']],
    ['a content encoding', 415, POST('Content-Encoding: gzip', 'Content-Length: 5')],
    ['a declared length over the cap', 413, POST(`Content-Length: ${CAP + 1}`)],
  ])('%s: %i, and the connection is closed', async (_, status, head) => {
    const receiver = recordingReceiver({ maxBodyBytes: CAP });
    await using server = await listening(webhookHandler(receiver));
    const client = await rawClient(server.port);
    client.send(...head, '', '');
    await client.until(/\r\n\r\n/);
    client.socket.end();
    const received = await client.closed();
    expect(statuses(received)).toEqual([status]);
    expect(received).toMatch(/^Connection: close\r$/m);
    expect(receiver.handed).toEqual([]);
  });

  test('Expect with anything but 100-continue is answered 417, by Node', async () => {
    const receiver = recordingReceiver();
    await using server = await listening(webhookHandler(receiver));
    const client = await rawClient(server.port);
    client.send(...POST('Content-Length: 2', 'Expect: 200-ok', 'Connection: close'), '', '{}');
    expect(statuses(await client.closed())).toEqual([417]);
    expect(receiver.handed).toEqual([]);
  });

  test('a GET without a body: 405 with Allow, and the connection stays', async () => {
    const receiver = recordingReceiver();
    await using server = await listening(webhookHandler(receiver));
    const client = await rawClient(server.port);
    client.send('GET / HTTP/1.1', 'Host: a', '', '');
    expect(await client.until(/\r\n\r\n/)).toMatch(/^HTTP\/1\.1 405 [^]*^Allow: POST\r$/m);
    client.send(...POST('Content-Length: 2', 'Connection: close'), '', '{}');
    expect(statuses(await client.closed())).toEqual([405, 200]);
  });

  test('a sender that reads the answer after its whole body still gets it', async () => {
    const receiver = recordingReceiver({ maxBodyBytes: CAP });
    await using server = await listening(webhookHandler(receiver));
    const client = await rawClient(server.port);
    client.socket.pause();
    client.send(...POST('Content-Length: 400000'), '', '');
    for (let sent = 0; sent < 4; sent++) {
      await new Promise((resolve) => client.socket.write('x'.repeat(100_000), resolve));
    }
    client.socket.resume();
    expect(statuses(await client.closed())).toEqual([413]);
  });

  test('a body that ends while the answer is kept for it closes the connection at once', async () => {
    const receiver = recordingReceiver({ maxBodyBytes: CAP });
    await using server = await listening(webhookHandler(receiver));
    const client = await rawClient(server.port);
    client.send('POST / HTTP/1.1', 'Host: a', 'Content-Type: text/plain', 'Content-Length: 5', '', '');
    await client.until(/ 415 /);
    client.send('hello');
    expect(statuses(await client.closed())).toEqual([415]);
  });

  test('a request that is pipelined behind such an answer is not processed', async () => {
    const receiver = recordingReceiver({ maxBodyBytes: CAP });
    await using server = await listening(webhookHandler(receiver));
    const client = await rawClient(server.port);
    // More than is read at once: a request whose body is there as a whole keeps its connection.
    const body = 'x'.repeat(1_000_000);
    const first = [...POST(`Content-Length: ${body.length}`), '', body].join('\r\n');
    const second = [...POST('Content-Length: 2'), '', '{}'].join('\r\n');
    client.send(first + second);
    expect(statuses(await client.closed())).toEqual([413]);
    expect(receiver.handed).toEqual([]);
  });
});

describe('the cap applies to the bytes that are read', () => {
  test('a body of exactly the cap is accepted', async () => {
    const receiver = recordingReceiver({ maxBodyBytes: CAP });
    await using server = await listening(webhookHandler(receiver));
    const client = await rawClient(server.port);
    client.send(...POST('Transfer-Encoding: chunked', 'Connection: close'), '', '');
    client.send('40', 'x'.repeat(CAP), '0', '', '');
    expect(statuses(await client.closed())).toEqual([200]);
    expect(text(receiver.handed[0])).toBe('x'.repeat(CAP));
  });

  test('chunked over the cap: 413 while the body is still open, and the connection is closed', async () => {
    const receiver = recordingReceiver({ maxBodyBytes: CAP });
    await using server = await listening(webhookHandler(receiver));
    const client = await rawClient(server.port);
    client.send(...POST('Transfer-Encoding: chunked'), '', '');
    client.send('40', 'x'.repeat(CAP), '1', 'x', '');
    await client.until(/ 413 /);
    client.socket.end();
    const received = await client.closed();
    expect(statuses(received)).toEqual([413]);
    expect(received).toMatch(/^Connection: close\r$/m);
    expect(receiver.handed).toEqual([]);
    expect(receiver.refused.map(({ code }) => code)).toEqual(['payload_too_large']);
  });

  test('reading stops there: an endless body is not read on, and its connection is closed', async () => {
    const receiver = recordingReceiver({ maxBodyBytes: CAP });
    const requests: IncomingMessage[] = [];
    await using server = await listening((req, res) => {
      requests.push(req);
      webhookHandler(receiver)(req, res);
    });
    const client = await rawClient(server.port);
    client.send(...POST('Transfer-Encoding: chunked'), '', '');
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`;
    const feed = (): void => {
      while (!client.socket.destroyed && client.socket.write(chunk));
    };
    client.socket.on('drain', feed);
    feed();
    await client.closed();
    expect(receiver.refused.map(({ code }) => code)).toEqual(['payload_too_large']);
    expect(receiver.handed).toEqual([]);
    // Two reads of the socket may be on their way when the cap is passed; megabytes may not.
    expect(requests[0]?.socket.bytesRead).toBeLessThan(1_000_000);
  });
});

describe('the deadline applies to the whole body', () => {
  test('an unfinished body: 503, not 408, and the connection is closed', async () => {
    const receiver = recordingReceiver({ bodyDeadlineMs: 20 });
    await using server = await listening(webhookHandler(receiver));
    const client = await rawClient(server.port);
    client.send(...POST('Content-Length: 9'), '', '{');
    await client.until(/ 503 /);
    client.socket.end();
    const received = await client.closed();
    expect(statuses(received)).toEqual([503]);
    expect(received).toMatch(/^Retry-After: 5\r$/m);
    expect(received).toMatch(/^Connection: close\r$/m);
    expect(receiver.handed).toEqual([]);
    expect(receiver.refused.map(({ code }) => code)).toEqual(['body_timeout']);
  });

  test('slow bytes do not extend it', async () => {
    const receiver = recordingReceiver({ bodyDeadlineMs: 60, maxBodyBytes: 1_000_000 });
    await using server = await listening(webhookHandler(receiver));
    const client = await rawClient(server.port);
    client.send(...POST('Content-Length: 900000'), '', '{');
    const drip = setInterval(() => client.socket.write(' '), 5);
    const received = await client.closed();
    clearInterval(drip);
    expect(statuses(received)).toEqual([503]);
  });

  test('a body in time is not affected', async () => {
    const receiver = recordingReceiver({ bodyDeadlineMs: 30_000 });
    await using server = await listening(webhookHandler(receiver));
    const client = await rawClient(server.port);
    client.send(...POST('Content-Length: 2', 'Connection: close'), '', '{');
    client.send('}');
    expect(statuses(await client.closed())).toEqual([200]);
  });
});

describe('an upload that breaks off', () => {
  test.each([
    ['a declared length', ['Content-Length: 60']],
    ['a chunked body', ['Transfer-Encoding: chunked']],
  ])('of %s leaves no state, no refusal and no answer', async (_, fields) => {
    const receiver = recordingReceiver();
    const requests: IncomingMessage[] = [];
    await using server = await listening((req, res) => {
      requests.push(req);
      webhookHandler(receiver)(req, res);
    });
    const client = await rawClient(server.port);
    client.send(...POST(...fields), '', '1', '{', '');
    await expect.poll(() => requests[0]?.readableFlowing).toBe(true);
    const gone = closing(requests[0] ?? client.socket);
    client.socket.resetAndDestroy();
    await gone;
    expect(requests[0]?.socket.bytesWritten).toBe(0);
    expect([receiver.handed, receiver.refused, receiver.faults]).toEqual([[], [], []]);
  });

  test('before the handler ran leaves no state either', async () => {
    const receiver = recordingReceiver();
    const settled = gate<number>();
    await using server = await listening((req, res) => {
      req.once('close', () => {
        webhookHandler(receiver)(req, res);
        settled.open(req.socket.bytesWritten);
      });
    });
    const client = await rawClient(server.port);
    client.send(...POST('Content-Length: 60'), '', '{');
    await once(server.server, 'request');
    client.socket.resetAndDestroy();
    expect(await settled.opened).toBe(0);
    expect([receiver.handed, receiver.refused, receiver.faults]).toEqual([[], [], []]);
  });
});
