import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createEvents, type Dev, type DevEvents } from '../../src/dev/for-tests.ts';
import { listening } from '../adapters/raw-client.ts';
import { ask, startedDev, world } from './kit.ts';

interface Event {
  readonly id: string;
  readonly name: string;
  readonly data: unknown;
}

interface Stream {
  readonly status: number;
  readonly events: readonly Event[];
  readonly text: () => string;
  readonly end: () => void;
}

/** Follows the stream of events at a URL. */
async function follow(url: string, headers: Readonly<Record<string, string>> = {}): Promise<Stream> {
  const sent = request(url, { headers, agent: false });
  sent.end();
  sent.on('error', () => undefined);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const events: Event[] = [];
  let text = '';
  response.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
    const blocks = text.split('\n\n');
    events.splice(0, events.length);
    for (const block of blocks.slice(0, -1)) {
      const [, id = '', name = '', data = ''] = /^id: (.+)\nevent: (.+)\ndata: (.+)$/.exec(block) ?? [];
      if (id !== '') events.push({ id, name, data: JSON.parse(data) });
    }
  });
  response.on('error', () => undefined);
  const end = (): void => void sent.destroy();
  onTestFinished(end);
  return { status: response.statusCode ?? 0, events, text: () => text, end };
}

const streamOf = (dev: Dev, lastEventId?: string): Promise<Stream> =>
  follow(`http://127.0.0.1:${dev.port}/api/events`, {
    Authorization: `Bearer ${dev.token}`,
    ...(lastEventId !== undefined && { 'Last-Event-ID': lastEventId }),
  });

const named = (stream: Stream, name: keyof DevEvents): readonly Event[] =>
  stream.events.filter((event) => event.name === name);

describe('server-sent events', () => {
  it('tell of each delivery, and Last-Event-ID resumes behind its number', async () => {
    const { dev, send, state } = await world();
    const stream = await streamOf(dev);
    const { lastEvent } = await state();
    const row = await send({ payload: { kind: 'task', transport: 'tool', status: 'working' } });
    await expect.poll(() => named(stream, 'delivery').length).toBe(2);
    const [first, second] = named(stream, 'delivery');
    expect(first?.data).toMatchObject({ id: row.id, state: 'sending' });
    expect(second?.data).toEqual(row);
    const resumed = await streamOf(dev, lastEvent);
    await expect.poll(() => resumed.events.length).toBe(2);
    expect(resumed.events).toEqual([first, second]);
    const later = await streamOf(dev, first?.id);
    await expect.poll(() => later.events.length).toBe(1);
    expect(later.events).toEqual([second]);
  });

  it('what is not kept, or of another start, is a gap', async () => {
    const dev = await startedDev();
    const { lastEvent } = (await ask<{ lastEvent: string }>(dev, 'state')).body;
    const [start] = lastEvent.split('-');
    for (const id of [`00000000-0`, `${start}-999999`, 'x', '7', `${lastEvent}x`, '__proto__']) {
      const stream = await streamOf(dev, id);
      await expect.poll(() => stream.events.length).toBe(1);
      expect(stream.events).toMatchObject([{ name: 'gap', data: {} }]);
      stream.end();
    }
  });

  it('at most 16 streams are open', async () => {
    const dev = await startedDev();
    const streams = [];
    for (let i = 0; i < 16; i += 1) streams.push(await streamOf(dev));
    expect(streams.map(({ status }) => status)).toEqual(Array(16).fill(200));
    const { status, body } = await ask(dev, 'events');
    expect([status, body.error?.code]).toEqual([503, 'too_many_streams']);
    streams[0]?.end();
    await expect
      .poll(async () => {
        const stream = await streamOf(dev);
        return stream.status;
      })
      .toBe(200);
  });
});

describe('the ring', () => {
  const state = (since: number): DevEvents['receiver'] => ({ state: 'up', since });

  it('keeps the latest 1,000 events', async () => {
    const ring = createEvents();
    await using server = await listening((req, res) => {
      const id = req.headers['last-event-id'];
      ring.open(res, typeof id === 'string' ? id : undefined);
    });
    const [start] = ring.last().split('-');
    for (let i = 1; i <= 1_500; i += 1) ring.emit('receiver', state(i));
    expect(ring.last()).toBe(`${start}-1500`);
    const kept = await follow(server.url, { 'Last-Event-ID': `${start}-500` });
    await expect.poll(() => kept.events.length).toBe(1_000);
    expect(kept.events[0]).toMatchObject({ id: `${start}-501`, data: { since: 501 } });
    const lost = await follow(server.url, { 'Last-Event-ID': `${start}-499` });
    await expect.poll(() => lost.events.length).toBe(1);
    expect(lost.events).toMatchObject([{ name: 'gap', id: `${start}-1500` }]);
    ring.close();
  });

  it('drops a reader that reads nothing, and nobody else', async () => {
    const ring = createEvents();
    await using server = await listening((_, res) => void ring.open(res, undefined));
    const opened = (): Socket => {
      const socket = connect(server.port, '127.0.0.1');
      onTestFinished(() => void socket.destroy());
      socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
      return socket;
    };
    opened().pause();
    let read = 0;
    opened().on('data', ({ length }) => (read += length));
    const connections = (): Promise<number> =>
      new Promise((resolve, reject) =>
        server.server.getConnections((error, found) => (error ? reject(error) : resolve(found))),
      );
    await expect.poll(connections).toBe(2);
    await expect.poll(() => read).toBeGreaterThan(0);
    const long = 'x'.repeat(512 * 1024);
    let count = 0;
    for (; (await connections()) === 2 && count < 200; count += 1) {
      ring.emit('receiver', { ...state(count), error: long });
      await expect.poll(() => read).toBeGreaterThan((count + 1) * long.length);
    }
    expect(count).toBeLessThan(200);
    ring.close();
  });
});
