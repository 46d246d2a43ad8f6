import { context, diag, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  AggregationTemporality,
  type DataPoint,
  type Histogram,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ConfigError, createReceiver, Fault, PermanentError, type Receiver } from '../../src/index.ts';
import { instrument, type InstrumentOptions, pollMetrics, reconcileMetrics } from '../../src/otel/index.ts';
import { createReconciler } from '../../src/reconcile/index.ts';
import { createRegistrations } from '../../src/registrations/index.ts';
import { generateKey } from '../../src/sender/sign.ts';
import { createFakeSeller } from '../../src/testing/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { BACKENDS, channel, eventKey, inboxSetup, status } from '../inbox/setup.ts';
import {
  AGENT,
  testReceiver,
  payloads,
  said,
  type TestReceiver,
  type TestReceiverOptions,
} from '../receiver/setup.ts';
import { buy, HOUR_MS, reportBody } from '../reconcile/kit.ts';
import { SILENT_LOGGER } from '../support/silent-logger.ts';

const ended: (() => Promise<unknown>)[] = [];

beforeAll(() => context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable()));
afterAll(() => context.disable());
afterEach(async () => {
  for (const end of ended.splice(0).toReversed()) await end();
});

/** The real SDK with exporters that keep what they get. */
function sdk() {
  const spans = new InMemorySpanExporter();
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  const meterProvider = new MeterProvider({ readers: [reader] });
  ended.push(
    () => meterProvider.shutdown(),
    () => tracerProvider.shutdown(),
  );

  /** Points of an instrument as they are now; none where it has none. */
  async function points(name: string): Promise<readonly DataPoint<unknown>[]> {
    exporter.reset();
    await reader.forceFlush();
    const all = exporter
      .getMetrics()
      .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics));
    return all.find(({ descriptor }) => descriptor.name === name)?.dataPoints ?? [];
  }
  return {
    providers: { meterProvider, tracerProvider },
    tracer: tracerProvider.getTracer('test'),
    spans: (): readonly ReadableSpan[] => spans.getFinishedSpans(),
    /** Attributes without those that are the same for all, and value or count. */
    async values(name: string): Promise<readonly (readonly [unknown, number])[]> {
      const found = await points(name);
      return found.map(({ attributes, value }) => [
        attributes,
        typeof value === 'number' ? value : (value as Histogram).count,
      ]);
    },
    points,
  };
}

interface Watched extends TestReceiver {
  readonly otel: ReturnType<typeof sdk>;
  readonly off: () => void;
}

function watch(made: TestReceiver, options: InstrumentOptions = {}, otel = sdk()): Watched {
  ended.push(() => made.receiver.stop());
  const off = instrument(made.receiver, { ...otel.providers, ...options });
  return { ...made, otel, off };
}

const watched = async (options: TestReceiverOptions = {}, more?: InstrumentOptions): Promise<Watched> =>
  watch(await testReceiver(options), more);

const one = (key = 1, more: object = {}): object =>
  payloads.tool('completed', { idempotency_key: eventKey(key), task_id: `task-${key}`, ...more });

const named = (spans: readonly ReadableSpan[], name: string): ReadableSpan => {
  const found = spans.find((span) => span.name.startsWith(name));
  return found ?? expect.fail(`no span ${name}`);
};

describe('metrics', () => {
  it('counts deliveries by outcome, code and sender; unauthenticated ones have no sender', async () => {
    const { otel, deliver } = await watched();
    await deliver(one());
    await deliver(one());
    await deliver(one(2, { idempotency_key: 'short' }));
    const stranger = await generateKey('ed25519', 'webhook-signing', { kid: 'stranger' });
    await deliver(one(3), { key: stranger.privateJwk });
    expect(await otel.values('webhook.deliveries')).toEqual([
      [{ 'webhook.outcome': 'accepted', 'webhook.sender': AGENT }, 1],
      [{ 'webhook.outcome': 'duplicate', 'webhook.sender': AGENT }, 1],
      [
        {
          'webhook.outcome': 'refused',
          'webhook.code': 'invalid_envelope',
          'webhook.sender': AGENT,
        },
        1,
      ],
      [{ 'webhook.outcome': 'refused', 'webhook.code': 'webhook_signature_key_unknown' }, 1],
    ]);
  });

  it('measures verification and admission when they end, also for a body that came later', async () => {
    const { otel, deliver, sign, receiver } = await watched();
    await deliver(one());
    const { body, headers } = await sign(one(2));
    const ticket = await receiver.open(headers);
    if (ticket.kind !== 'ticket') throw new Error(said(ticket));
    ticket.add(new Uint8Array(body));
    expect(said(await ticket.end())).toBe('accepted 200');
    const stranger = await generateKey('ed25519', 'webhook-signing', { kid: 'stranger' });
    await deliver(one(3), { key: stranger.privateJwk });
    const accepted = { 'webhook.outcome': 'accepted' };
    expect(await otel.values('webhook.verification.duration')).toEqual([[accepted, 2]]);
    expect(await otel.values('webhook.admission.duration')).toEqual([[accepted, 2]]);
    const [point] = await otel.points('webhook.verification.duration');
    expect(point).toHaveProperty(
      'value.sum',
      expect.toSatisfy((sum: number) => sum > 0),
    );
  });

  it('counts runs of handlers by result, with the wait of first runs, and still calls onHandled', async () => {
    const told: string[] = [];
    const { otel, deliver } = await watched({
      onHandled: ({ state }) => told.push(state),
      handler: ({ message }) => {
        if (message === 'no') throw new PermanentError('no');
      },
    });
    await deliver(one());
    await deliver(one(2, { message: 'no' }));
    const common = {
      'messaging.system': 'proto',
      'messaging.operation.name': 'process',
      'webhook.kind': 'task',
      'webhook.sender': AGENT,
    };
    expect(await otel.values('messaging.process.duration')).toEqual([
      [{ ...common, 'webhook.state': 'applied' }, 1],
      [{ ...common, 'webhook.state': 'dead', 'error.type': 'dead' }, 1],
    ]);
    expect(await otel.values('webhook.handler.wait')).toEqual([[{ 'webhook.sender': AGENT }, 2]]);
    expect(told).toEqual(['applied', 'dead']);
  });

  it('reads the queue when metrics are collected', async () => {
    const backend = (BACKENDS['memory'] ?? expect.fail())();
    const { otel, deliver } = watch(await inboxSetup(backend));
    await deliver(status(eventKey(1), 'task-1'));
    await deliver(status(eventKey(2), 'task-2'));
    backend.advance(90_000);
    expect(await otel.values('webhook.events')).toEqual([
      [{ 'webhook.state': 'queued' }, 2],
      [{ 'webhook.state': 'leased' }, 0],
      [{ 'webhook.state': 'dead' }, 0],
    ]);
    const [[, overdue] = []] = await otel.values('webhook.queue.overdue');
    expect(overdue).toBeGreaterThanOrEqual(90);
  });

  it('omits the gauges of an unavailable store and reports the others', async () => {
    const real = memoryStore();
    const away = (): Promise<never> => Promise.reject(new Fault('store_unavailable', 'away'));
    const inbox = real.inbox && { ...real.inbox, list: away, counts: away, overdueMs: away };
    const { otel, deliver } = await watched({ store: { ...real, ...(inbox && { inbox }) } });
    await deliver(one());
    expect(await otel.values('webhook.events')).toEqual([]);
    expect(await otel.values('webhook.deliveries')).toHaveLength(1);
  });

  it('counts fetches of key documents and the remaining life of key sets', async () => {
    const otel = sdk();
    const seller = await createFakeSeller({ url: 'http://127.0.0.1:9/hook' });
    ended.push(() => seller.close());
    const receiver: Receiver = createReceiver({
      publicUrl: 'http://127.0.0.1:9/hook',
      senders: [seller.sender],
      store: memoryStore(),
      allowLoopback: true,
      logger: SILENT_LOGGER,
      handlers: { other: () => undefined },
    });
    ended.push(() => receiver.stop());
    instrument(receiver, otel.providers);
    const { body, headers } = await seller.sign(seller.payloads.tool('completed'));
    expect(said(await receiver.verifyAndDispatch(body, headers))).toBe('accepted 200');
    const fetched = new Map(
      (await otel.values('webhook.key_documents.fetches')).map(([at, n]) => [JSON.stringify(at), n]),
    );
    expect(fetched.get('{"webhook.document":"brand.json"}')).toBe(1);
    expect(fetched.get('{"webhook.document":"JWKS"}')).toBe(1);
    const [[attributes, left] = []] = await otel.values('webhook.keys.fresh_for');
    expect(attributes).toEqual({ 'webhook.sender': seller.agentUrl });
    expect(left).toBeGreaterThan(0);
    expect(await otel.values('webhook.keys.ids')).toEqual([
      [{ 'webhook.state': 'recent' }, 1],
      [{ 'webhook.state': 'known' }, 1],
    ]);
    const { admissionPressure } = await receiver.health();
    expect(admissionPressure).toEqual({ recent: 1, known: 1, ratios: {} });
  });

  it('polls by what they came to, and the tasks that are watched', async () => {
    const store = memoryStore();
    const registrations = createRegistrations({
      store,
      baseUrl: 'https://buyer.example',
      secrets: ['a-secret-of-forty-characters-and-no-more'],
    });
    const { otel, receiver } = watch(await testReceiver({ store, registrations }));
    await receiver.ready();
    const made = await registrations.create({ agentUrl: AGENT, taskType: 'create_media_buy', arguments: {} });
    await made.settle({ status: 'submitted', task_id: 'task-1' });
    expect(await otel.values('webhook.tasks')).toEqual([
      [{ 'webhook.state': 'watched' }, 1],
      [{ 'webhook.state': 'unresolved' }, 0],
    ]);
    const measure = pollMetrics({ meterProvider: otel.providers.meterProvider, maxSenders: 1 });
    const poll = {
      sender: AGENT,
      taskId: 'task-1',
      operationId: made.operationId,
      taskType: 'create_media_buy',
    };
    measure({ ...poll, result: 'unchanged', status: 'submitted', durationMs: 20 });
    measure({ ...poll, result: 'unchanged', status: 'submitted', durationMs: 20 });
    measure({
      ...poll,
      sender: 'https://other.example/mcp',
      result: 'failed',
      error: 'away',
      durationMs: 20,
    });
    expect(await otel.values('webhook.polls')).toEqual([
      [{ 'webhook.poll.result': 'unchanged', 'webhook.status': 'submitted', 'webhook.sender': AGENT }, 2],
      [{ 'webhook.poll.result': 'failed', 'webhook.sender': '_other' }, 1],
    ]);
    expect(await otel.values('webhook.poll.duration')).toEqual([
      [{ 'webhook.poll.result': 'unchanged' }, 2],
      [{ 'webhook.poll.result': 'failed' }, 1],
    ]);
    expect(() => pollMetrics({ most: 5 } as object)).toThrow(ConfigError);
  });

  it('the account of reports: windows that are due, missing and held, by seller', async () => {
    const store = memoryStore();
    const baseUrl = 'https://buyer.example';
    const registrations = createRegistrations({
      store,
      call: async () => ({}),
      baseUrl,
      secrets: ['a-secret-of-forty-characters-and-no-more'],
    });
    const handler = (): Promise<void> => Promise.reject(new PermanentError('no'));
    const { otel, receiver, deliver } = watch(await testReceiver({ store, registrations, handler }));
    await receiver.ready();
    const reconciler = createReconciler({ receiver, registrations, expectedDelayMs: 0, graceMs: 0 });
    const { meterProvider } = otel.providers;
    const off = reconcileMetrics({ reconciler, meterProvider, maxSenders: 1 });
    expect(await otel.values('webhook.report_windows')).toEqual([]);
    const end = Math.floor(Date.now() / HOUR_MS) * HOUR_MS;
    const at = (hours: number): string => new Date(end - hours * HOUR_MS).toISOString();
    for (const agentUrl of [AGENT, 'https://tenth.example/mcp', 'https://third.example/mcp']) {
      await buy({ registrations }, { start: at(3), end: at(0) }, 'hourly', agentUrl);
    }
    await deliver(reportBody({ start: at(2), end: at(1) }, {}));
    const values = await otel.values('webhook.report_windows');
    expect(values).toEqual([
      [{ 'webhook.state': 'due', 'webhook.sender': AGENT }, 3],
      [{ 'webhook.state': 'missing', 'webhook.sender': AGENT }, 2],
      [{ 'webhook.state': 'held', 'webhook.sender': AGENT }, 1],
      [{ 'webhook.state': 'due', 'webhook.sender': '_other' }, 6],
      [{ 'webhook.state': 'missing', 'webhook.sender': '_other' }, 6],
      [{ 'webhook.state': 'held', 'webhook.sender': '_other' }, 0],
    ]);
    const ages = await otel.values('webhook.report_windows.oldest_missing');
    expect(ages.map(([attributes]) => attributes)).toEqual([
      { 'webhook.sender': AGENT },
      { 'webhook.sender': '_other' },
    ]);
    // The first of three hours ended two hours before the last one, and that was within this hour or the one before.
    for (const [, seconds] of ages) {
      expect(seconds).toBeGreaterThanOrEqual(2 * 3600);
      expect(seconds).toBeLessThan(4 * 3600);
    }
    off();
    // The SDK goes on with what it measured last.
    await deliver(reportBody({ start: at(3), end: at(2) }, {}));
    expect(await otel.values('webhook.report_windows')).toEqual(values);
    expect(() => reconcileMetrics({ reconciler: receiver as never })).toThrow(/is not a reconciler/);
    expect(() => reconcileMetrics({ reconciler, most: 5 } as never)).toThrow(ConfigError);
    expect(() => reconcileMetrics({ reconciler, maxCounted: 0 })).toThrow(/maxCounted: 0/);
  });

  it('counts further senders as one above the limit', async () => {
    let count = 0;
    const key = await generateKey('ed25519', 'webhook-signing', { kid: 'seller-1' });
    const agentUrl = (): string => `https://seller-${count}.example/mcp`;
    const { otel, deliver } = await watched(
      { senders: () => Promise.resolve([{ agentUrl: agentUrl(), pins: [key.publicJwk] }]) },
      { maxSenders: 2 },
    );
    for (; count < 5; count += 1) await deliver(one(count), { key: key.privateJwk });
    const counted = await otel.values('webhook.deliveries');
    expect(counted.map(([at, n]) => [(at as Record<string, unknown>)['webhook.sender'], n])).toEqual([
      ['https://seller-0.example/mcp', 1],
      ['https://seller-1.example/mcp', 1],
      ['_other', 3],
    ]);
  });
});

describe('traces', () => {
  it('inline: the delivery is under the server’s span, the run under the delivery, the handler’s own under that', async () => {
    const otel = sdk();
    const { deliver } = watch(
      await testReceiver({ handler: () => otel.tracer.startSpan('own').end() }),
      {},
      otel,
    );
    const outcome = await otel.tracer.startActiveSpan('server', async (server) => {
      const answered = await deliver(one());
      server.end();
      return answered;
    });
    const spans = otel.spans();
    const [own, run, delivery, server] = ['own', 'process', 'receive', 'server'].map((name) =>
      named(spans, name),
    );
    expect(delivery).toMatchObject({
      name: 'receive /webhooks/proto',
      kind: SpanKind.INTERNAL,
      attributes: {
        'messaging.system': 'proto',
        'messaging.destination.name': '/webhooks/proto',
        'messaging.operation.name': 'receive',
        'messaging.operation.type': 'receive',
        'messaging.message.id': outcome.deliveryId,
        'webhook.outcome': 'accepted',
        'webhook.sender': AGENT,
      },
    });
    expect(run).toMatchObject({
      name: 'process /webhooks/proto',
      kind: SpanKind.CONSUMER,
      links: [],
      attributes: {
        'messaging.operation.type': 'process',
        'messaging.message.id': outcome.deliveryId,
        'messaging.message.conversation_id': 'task-1',
        'webhook.run': 1,
        'webhook.charged_attempts': 1,
        'webhook.kind': 'task',
      },
    });
    const parents = [own, run, delivery].map((span) => span?.parentSpanContext?.spanId);
    expect(parents).toEqual([run, delivery, server].map((span) => span?.spanContext().spanId));
  });

  it('a body that comes later: one span from the headers to the answer, with the handler under it', async () => {
    const { otel, sign, receiver } = await watched();
    const { body, headers } = await sign(one());
    const ticket = await receiver.open(headers);
    if (ticket.kind !== 'ticket') throw new Error(said(ticket));
    expect(otel.spans()).toEqual([]);
    ticket.add(new Uint8Array(body));
    await ticket.end();
    const [run, delivery] = ['process', 'receive'].map((name) => named(otel.spans(), name));
    expect(otel.spans()).toHaveLength(2);
    expect(run?.parentSpanContext?.spanId).toBe(delivery?.spanContext().spanId);
  });

  it('a fault of ours is an error, a refusal is none', async () => {
    const away = { ...memoryStore(), accept: () => Promise.reject(new Fault('store_unavailable', 'away')) };
    const { otel, deliver } = await watched({ store: away });
    await deliver(one());
    const stranger = await generateKey('ed25519', 'webhook-signing', { kid: 'stranger' });
    await deliver(one(2), { key: stranger.privateJwk });
    const [fault, refusal] = otel.spans();
    expect(fault?.status).toEqual({ code: SpanStatusCode.ERROR, message: 'away' });
    expect(fault?.attributes).toMatchObject({
      'webhook.code': 'store_unavailable',
      'error.type': 'store_unavailable',
    });
    expect(refusal?.status.code).toBe(SpanStatusCode.UNSET);
    expect(refusal?.attributes).toMatchObject({
      'webhook.code': 'webhook_signature_key_unknown',
      'webhook.check': '7',
    });
  });

  it('the handler’s error is on its span, and has its usual effect', async () => {
    const { otel, deliver } = await watched({
      handler: () => {
        throw new PermanentError('no such account');
      },
    });
    expect(await deliver(one())).toMatchObject({ kind: 'accepted', state: 'dead' });
    const run = named(otel.spans(), 'process');
    expect(run.status.code).toBe(SpanStatusCode.ERROR);
    expect(run.events[0]?.attributes).toMatchObject({ 'exception.message': 'no such account' });
  });

  it('an error of the handler without a readable text is an error on its span too', async () => {
    const { otel, deliver } = await watched({
      handler: () => {
        throw Object.create(null);
      },
    });
    await deliver(one());
    expect(named(otel.spans(), 'process').status.code).toBe(SpanStatusCode.ERROR);
  });

  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  it.each([
    ['not looked at', {}, traceparent, []],
    ['linked where asked for', { linkSellers: true }, traceparent, ['0af7651916cd43dd8448eb211c80319c']],
    ['no link where it is none', { linkSellers: true }, `${traceparent}-x`, []],
    ['no link to zeros', { linkSellers: true }, `00-${'0'.repeat(32)}-b7ad6b7169203331-01`, []],
  ])('a seller’s traceparent is %s, never a parent', async (_, options, sent, links) => {
    const { otel, sign, receiver } = await watched({}, options);
    const { body, headers } = await sign(one());
    await receiver.verifyAndDispatch(body, { ...headers, traceparent: sent });
    const delivery = named(otel.spans(), 'receive');
    expect(delivery.links.map((link) => link.context.traceId)).toEqual(links);
    expect(delivery.parentSpanContext).toBeUndefined();
  });

  it('a span that takes no link after its start still ends with its attributes', async () => {
    const otel = sdk();
    const older = {
      startSpan: (...given: Parameters<typeof otel.tracer.startSpan>) =>
        Object.assign(otel.tracer.startSpan(...given), { addLink: undefined }),
    };
    const tracerProvider = { getTracer: () => older } as never;
    const { sign, receiver } = watch(await testReceiver(), { linkSellers: true, tracerProvider }, otel);
    const { body, headers } = await sign(one());
    await receiver.verifyAndDispatch(body, { ...headers, traceparent });
    expect(named(otel.spans(), 'receive').attributes).toMatchObject({ 'webhook.outcome': 'accepted' });
  });
});

describe.each(Object.keys(BACKENDS))('a worker’s run on %s', (name) => {
  it('is a trace of its own, linked to the delivery in the other process', async () => {
    const backend = (BACKENDS[name] ?? expect.fail(name))();
    ended.push(async () => backend.remove());
    const otel = sdk();
    const door = watch(await inboxSetup(backend), {}, otel);
    const handled = channel<string>();
    const active: (string | undefined)[] = [];
    const worker = watch(
      await inboxSetup(backend, {
        handler: ({ idempotencyKey }) => {
          active.push(trace.getActiveSpan()?.spanContext().spanId);
          handled.push(idempotencyKey);
        },
      }),
      {},
      otel,
    );
    await door.deliver(status(eventKey(1), 'task-1'));
    door.off();
    await door.deliver(status(eventKey(2), 'task-2'));
    await otel.tracer.startActiveSpan('starter', async (starter) => {
      await worker.receiver.start();
      starter.end();
    });
    await handled.next();
    await handled.next();
    await worker.receiver.stop();
    const spans = otel.spans();
    const runs = spans.filter((span) => span.name.startsWith('process'));
    const delivery = named(spans, 'receive');
    const of = (task: string): ReadableSpan =>
      runs.find(({ attributes }) => attributes['messaging.message.conversation_id'] === task) ??
      expect.fail(task);
    expect(of('task-1').links.map((link) => link.context)).toEqual([
      { ...delivery.spanContext(), traceFlags: 1, isRemote: true },
    ]);
    // Brought while nobody watched.
    expect(of('task-2').links).toEqual([]);
    expect(runs.map(({ parentSpanContext }) => parentSpanContext)).toEqual([undefined, undefined]);
    expect(new Set(active)).toEqual(new Set(runs.map((span) => span.spanContext().spanId)));
  });
});

describe('instrument', () => {
  it('can be turned off and on again; onHandled is still called', async () => {
    const told: string[] = [];
    const made = await testReceiver({ onHandled: ({ state }) => told.push(state) });
    const { otel, off, deliver } = watch(made);
    await deliver(one());
    off();
    off();
    await deliver(one(2));
    expect(told).toEqual(['applied', 'applied']);
    expect(otel.spans()).toHaveLength(2);
    expect(await otel.values('webhook.events')).toEqual([]);
    const again = watch(made);
    await deliver(one(3));
    expect(again.otel.spans()).toHaveLength(2);
  });

  it('is a ConfigError with the fix when called twice, on something else or with unknown options', async () => {
    const { receiver } = await watched();
    expect(() => instrument(receiver)).toThrow(/instrumented already. Do it once/);
    expect(() => instrument({} as Receiver)).toThrow(/is not a receiver. Give what createReceiver returned/);
    expect(() => instrument(undefined as never)).toThrow(ConfigError);
    const other = (await testReceiver()).receiver;
    expect(() => instrument(other, { meter: 1 } as object)).toThrow(
      /meter is not known. Known: meterProvider/,
    );
    expect(() => instrument(other, { maxSenders: -1 })).toThrow(ConfigError);
  });

  it('works with the global no-op providers without an SDK', async () => {
    const made = await testReceiver();
    ended.push(() => made.receiver.stop());
    instrument(made.receiver);
    expect(said(await made.deliver(one()))).toBe('accepted 200');
  });

  it('works with a context manager or diagnostics logger that throws', async () => {
    const broken = (): never => {
      throw new Error('broken');
    };
    context.disable();
    const manager = { active: broken, with: broken, bind: broken, enable: broken, disable: broken };
    context.setGlobalContextManager(manager);
    const logger = { error: broken, warn: broken, info: broken, debug: broken, verbose: broken };
    diag.setLogger(logger, { suppressOverrideMessage: true });
    try {
      const { deliver, seen } = await watched();
      expect(said(await deliver(one()))).toBe('accepted 200');
      expect(seen).toHaveLength(1);
    } finally {
      diag.disable();
      // Its own `disable` throws, too.
      Object.assign(manager, { disable: () => manager });
      context.disable();
      context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    }
  });

  it('telemetry that throws changes no answer and no run', async () => {
    const thrower = new Proxy(
      {},
      {
        get: () => () => {
          throw new Error('the exporter is broken');
        },
      },
    );
    const gauge = { addCallback() {}, removeCallback() {} };
    const meter = {
      createHistogram: () => thrower,
      createCounter: () => thrower,
      createObservableGauge: () => gauge,
      addBatchObservableCallback() {},
      removeBatchObservableCallback() {},
    };
    for (const tracer of [thrower, { startSpan: () => thrower }]) {
      const made = await testReceiver();
      ended.push(() => made.receiver.stop());
      instrument(made.receiver, {
        meterProvider: { getMeter: () => meter } as never,
        tracerProvider: { getTracer: () => tracer } as never,
      });
      expect(said(await made.deliver(one()))).toBe('accepted 200');
      expect(made.seen).toHaveLength(1);
    }
  });
});
