// A process of `forwarders.ts`: the sink, or the bare forwarder. It says its port, and lives until its parent is gone.
import { once } from 'node:events';
import { fdatasync, openSync, writevSync } from 'node:fs';
import { Agent, createServer, request, type IncomingMessage, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { bareVerify } from './contestants.ts';
import type { ForwarderJob, SinkOrder } from './forwarders.ts';

process.once('disconnect', () => process.exit());

async function listen(listener: RequestListener): Promise<number> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

function whenWhole(message: IncomingMessage, done: (body: Buffer) => void): void {
  const chunks: Buffer[] = [];
  message.on('data', (chunk: Buffer) => chunks.push(chunk));
  message.on('end', () => done(Buffer.concat(chunks)));
}

/** Answers at once, and says when as many different events have come as it was told to wait for. */
function sink(): Promise<number> {
  let expected = Number.NaN;
  const seen = new Set<unknown>();
  process.on('message', (order: SinkOrder) => {
    expected = order.expect;
    seen.clear();
    process.send?.('waiting');
  });
  return listen((message, response) => {
    whenWhole(message, () => {
      response.writeHead(204).end();
      seen.add(message.headers['webhook-id']);
      if (seen.size === expected) process.send?.('arrived');
    });
  });
}

type Job<K extends ForwarderJob['kind']> = Extract<ForwarderJob, { kind: K }>;

/**
 * What a sensible peer does: what has come while the disk was busy goes to it by one write and one sync, then each is
 * answered, and posted to the sink over connections that are kept. It neither retries nor remembers.
 */
function bare({ file, sinkPort, width, verifies }: Job<'bare'>): Promise<number> {
  const fd = openSync(file, 'a');
  const agent = new Agent({ keepAlive: true, maxSockets: width });
  const verify = verifies && bareVerify(verifies.key, 'ed25519');
  const separator = Buffer.from('\n');
  let waiting: { readonly body: Buffer; readonly answer: () => void }[] = [];
  let isWriting = false;
  let events = 0;

  function forward(body: Buffer): void {
    events += 1;
    const headers = {
      'content-type': 'application/json',
      'content-length': String(body.length),
      'webhook-id': String(events),
    };
    const sent = request({
      agent,
      method: 'POST',
      host: '127.0.0.1',
      port: sinkPort,
      path: '/events',
      headers,
    });
    sent.on('response', (response) => response.resume());
    sent.end(body);
  }

  function writeAll(): void {
    if (isWriting || waiting.length === 0) return;
    isWriting = true;
    const batch = waiting;
    waiting = [];
    writevSync(
      fd,
      batch.flatMap(({ body }) => [body, separator]),
    );
    fdatasync(fd, (error) => {
      if (error) throw error;
      isWriting = false;
      for (const { body, answer } of batch) {
        answer();
        forward(body);
      }
      writeAll();
    });
  }

  let next = 0;
  return listen((message, response) => {
    whenWhole(message, (body) => {
      if (verify && verifies) {
        const { samples } = verifies;
        verify(samples[next++ % samples.length] as (typeof samples)[number]);
      }
      waiting.push({ body, answer: () => response.writeHead(200, { 'Content-Length': '0' }).end() });
      writeAll();
    });
  });
}

const [job] = (await once(process, 'message')) as [ForwarderJob];
process.send?.(await (job.kind === 'sink' ? sink() : bare(job)));
