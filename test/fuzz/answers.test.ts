import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Poll } from '../../src/poll/index.ts';
import { a2aCaller } from '../../src/registrations/a2a.ts';
import { type CallSeller, createRegistrations, type Registrations } from '../../src/registrations/index.ts';
import { mcpCaller } from '../../src/registrations/mcp.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { testReceiver, type TestReceiver } from '../receiver/setup.ts';
import { NEWEST } from '../registrations/kit.ts';
import { LONG } from '../reliability/form.ts';
import { gate } from '../support/gate.ts';
import { tell } from '../support/tell.ts';
import { type FuzzedAnswer, fuzzedAnswer, KINDS } from './answers.ts';
import { anyClient, callBy, pollerBy } from '../support/any-client.ts';

/** Inputs of a kind, transport and channel; how large the largest are; ms for an answer. */
const { inputs, size, timeoutMs } = LONG
  ? { inputs: 1_000, size: 1, timeoutMs: 5_000 }
  : { inputs: 3, size: 0.01, timeoutMs: 2_000 };
/** The long form's is new each time. */
const SEED = LONG ? Date.now() % 2 ** 31 : 20_260_301;

const TRANSPORTS: Readonly<Record<string, CallSeller>> = {
  tool: mcpCaller({ allowLoopback: true, timeoutMs }),
  agent: a2aCaller({ allowLoopback: true, timeoutMs, version: '1.0' }),
};

/** A seller that answers what is asked by what was made for it, and all before that as it should. */
let url: string;
let close: () => Promise<void>;
/** Made when the question is there, for it names the request. */
let next: (id: number) => FuzzedAnswer;
let requests = 0;
let sockets = 0;
let lastBody: Buffer = Buffer.alloc(0);
/** Called when an answer has been made, and is about to be sent. */
let answering = (): void => undefined;

function send(res: ServerResponse, { status, headers, body, breaks }: FuzzedAnswer): void {
  lastBody = body;
  answering();
  const kept = Object.entries(headers).filter(([, text]) => /^[\x20-\xff]*$/.test(text));
  res.writeHead(status, Object.fromEntries(kept));
  if (!breaks) res.end(body);
  else res.write(body, () => res.destroy());
}

function reply(req: IncomingMessage, res: ServerResponse, text: string): void {
  const message = text === '' ? {} : (JSON.parse(text) as { method?: string; id?: number });
  const { method, id = 1 } = message;
  if (method === 'initialize') {
    const result = {
      protocolVersion: '2025-06-18',
      capabilities: {},
      serverInfo: { name: 's', version: '1' },
    };
    res
      .writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 's' })
      .end(JSON.stringify({ jsonrpc: '2.0', id, result }));
  } else if (req.method === 'DELETE' || method === 'notifications/initialized' || (text !== '' && !method)) {
    res.writeHead(202).end();
  } else {
    send(res, next(id));
  }
}

beforeAll(async () => {
  const server = createServer((req, res) => {
    requests += 1;
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => reply(req, res, Buffer.concat(chunks).toString()));
    for (const stream of [req, res]) stream.on('error', () => undefined);
  });
  server.on('connection', (socket) => {
    sockets += 1;
    socket.on('close', () => (sockets -= 1));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
  close = async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  };
});
afterAll(() => close());

interface Buyer extends TestReceiver {
  readonly registrations: Registrations;
  /** Lines of the log that speak of a fault on our side. */
  readonly faults: string[];
  readonly end: () => Promise<void>;
}

async function buyer(): Promise<Buyer> {
  const faults: string[] = [];
  const note = (_fields: object, line: string): void => void (/store/i.test(line) && faults.push(line));
  const logger = { debug() {}, info() {}, warn: note, error: note };
  const store = memoryStore();
  const registrations = createRegistrations({
    call: anyClient,
    store,
    baseUrl: 'https://buyer.example/webhooks',
    secrets: [NEWEST],
    allowLoopback: true,
    logger,
    maxOpen: 1_000_000,
  });
  // Nothing of an event is kept: a thousand of the widest are more than the heap.
  const handlers = { other: () => undefined };
  const made = await testReceiver({ store, registrations, allowLoopback: true, logger, handlers });
  await made.receiver.ready();
  // A worker runs what an answer has told.
  await made.receiver.start();
  return { ...made, registrations, faults, end: () => made.receiver.stop() };
}

/** Time that this thread has worked, ms: it does not pass while the machine is busy with others. */
function worked(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

/** Longest time of work that held the event loop, ms, since it was last set back. */
function loopWatch(): {
  readonly longest: () => number;
  readonly reset: () => void;
  readonly stop: () => void;
} {
  let longest = 0;
  let last = worked();
  const timer = setInterval(() => {
    const now = worked();
    longest = Math.max(longest, now - last);
    last = now;
  }, 1);
  return {
    longest: () => longest,
    // What held the loop until now was the seller at work, in this process too.
    reset: () => {
      longest = 0;
      last = worked();
    },
    stop: () => clearInterval(timer),
  };
}

/** What decoding and `JSON.parse` take for the same bytes, ms; where they are none of its, as far as they come. */
function parseMs(body: Buffer): number {
  const since = worked();
  try {
    JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    // As far as it came.
  }
  return worked() - since;
}

const isSlow = (held: number): boolean => LONG && held > 4 * parseMs(lastBody) + NOTICED_MS;

/** Requests of one call: three of a session, its end, a redirect, two resumed streams, and pings. */
const MOST_REQUESTS = 24;

const rss = (): number => process.memoryUsage().rss;
const MOST_GROWTH = 768 * 1_048_576;
/** Below it the machine's own pauses are longer. Ms. */
const NOTICED_MS = 100;

/**
 * Polls one task three times, each by a buyer of its own.
 * @returns ms for which the event loop was held beyond four times `parseMs`; the least of them, for once may be the machine's own pause.
 */
async function heldByPolls(call: CallSeller, say: (id: number) => FuzzedAnswer): Promise<number> {
  const over: number[] = [];
  for (let times = 0; times < 3; times += 1) {
    const { receiver, registrations, end } = await buyer();
    const watch = loopWatch();
    answering = watch.reset;
    next = say;
    const polled = gate();
    const onPoll = (): void => polled.open();
    const poller = pollerBy({ receiver, registrations, call, fastMs: 1, concurrency: 1, onPoll });
    const made = await registrations.create({ agentUrl: url, taskType: 'get_products', arguments: {} });
    await made.settle({ status: 'submitted', task_id: 'task-1' });
    await poller.start();
    await polled.opened;
    over.push(watch.longest() - 4 * parseMs(lastBody));
    watch.stop();
    await poller.stop();
    await end();
  }
  return Math.min(...over);
}

const CASES = Object.keys(KINDS).flatMap((kind) =>
  Object.entries(TRANSPORTS).map(([transport, call]) => [kind, transport, call] as const),
);

describe.each(CASES)('answers of the kind "%s" by the %s transport', (kind, transport, call) => {
  const seedOf = (index: number): number => SEED + index * 7_919 + kind.length * 104_729 + transport.length;

  it(
    `to ${inputs} calls: each is an answer or an error that says what is wrong`,
    { timeout: 3_600_000 },
    async () => {
      const made = await buyer();
      const watch = loopWatch();
      answering = watch.reset;
      const before = rss();
      /** Inputs at which the event loop was held for too long. */
      const slow: number[] = [];
      try {
        for (let index = 0; index < inputs; index += 1) {
          next = (id) => fuzzedAnswer(kind, seedOf(index), id, size);
          const registration = await made.registrations.create({
            agentUrl: url,
            taskType: 'get_products',
            arguments: {},
          });
          requests = 0;
          const error = await callBy(registration, call).then(
            () => undefined,
            (thrown: unknown) => thrown,
          );
          const held = watch.longest();
          const what = `seed ${seedOf(index)}`;
          if (error !== undefined) {
            expect(error, what).toBeInstanceOf(Error);
            expect((error as Error).message.length, what).toBeLessThan(10_000);
            expect(['RangeError', 'SyntaxError'], what).not.toContain((error as Error).name);
          }
          expect(requests, what).toBeLessThanOrEqual(MOST_REQUESTS);
          if (isSlow(held)) slow.push(index);
          const seen = await made.registrations.get(registration);
          expect(seen?.state, what).toMatch(/^(?:calling|open|ended|refused|orphaned)$/);
        }
        // Once may be the machine's own pause.
        for (const index of slow) {
          const again: number[] = [];
          for (let times = 0; times < 3; times += 1) {
            next = (id) => fuzzedAnswer(kind, seedOf(index), id, size);
            const signal = AbortSignal.timeout(timeoutMs);
            await call(url, 'get_products', {}, { signal }).catch(() => undefined);
            again.push(watch.longest() - 4 * parseMs(lastBody));
          }
          expect(Math.min(...again), `seed ${seedOf(index)} holds the event loop`).toBeLessThan(NOTICED_MS);
        }
        expect(made.faults).toEqual([]);
        expect(rss() - before).toBeLessThan(MOST_GROWTH);
        await expect.poll(() => sockets).toBe(0);
        if (LONG) tell({ seed: SEED, inputs });
      } finally {
        watch.stop();
        await made.end();
      }
    },
  );

  it(
    `to ${inputs} polls: each has a result, and none is a fault of the store`,
    { timeout: 3_600_000 },
    async () => {
      const made = await buyer();
      const polls: Poll[] = [];
      const watch = loopWatch();
      answering = watch.reset;
      /** Of the last answer. */
      let seed = 0;
      let index = 0;
      next = (id) => fuzzedAnswer(kind, (seed = seedOf((index += 1))), id, size);
      /** Seeds of answers at which the event loop was held for too long. */
      const slow: number[] = [];
      const poller = pollerBy({
        receiver: made.receiver,
        registrations: made.registrations,
        call,
        fastMs: 1,
        // One at a time: what holds the event loop is the last answer's.
        concurrency: 1,
        onPoll: (poll) => {
          polls.push(poll);
          if (isSlow(watch.longest())) slow.push(seed);
        },
      });
      const before = rss();
      try {
        for (let task = 0; task < inputs; task += 1) {
          // A seller each, for a pause that one asks for is for all of its tasks.
          const registration = await made.registrations.create({
            agentUrl: `${url}/${task}`,
            taskType: 'get_products',
            arguments: {},
          });
          await registration.settle({ status: 'working', task_id: `task-${task}` });
        }
        await poller.start();
        const deadline = performance.now() + 3_000_000;
        while (polls.length < inputs && performance.now() < deadline) await sleep(20);
        expect(polls.length).toBeGreaterThanOrEqual(inputs);
        for (const { error = '' } of polls) expect(error.length).toBeLessThan(10_000);
        expect(made.faults).toEqual([]);
        expect(rss() - before).toBeLessThan(MOST_GROWTH);
      } finally {
        watch.stop();
        await poller.stop();
        await made.end();
      }
      for (const again of slow) {
        const over = await heldByPolls(call, (id) => fuzzedAnswer(kind, again, id, size));
        expect(over, `seed ${again} holds the event loop`).toBeLessThan(NOTICED_MS);
      }
      await expect.poll(() => sockets).toBe(0);
      if (LONG) tell({ seed: SEED, inputs });
    },
  );
});
