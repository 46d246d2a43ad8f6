import { randomBytes, randomUUID } from 'node:crypto';
import {
  InMemorySpanExporter,
  BasicTracerProvider,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { expect, it, onTestFinished } from 'vitest';
import { isJsonObject } from '../../src/codec/for-tests.ts';
import { instrument } from '../../src/otel/index.ts';
import { pollerOf } from '../../src/poll/for-tests.ts';
import { registrationsOf } from '../../src/registrations/for-tests.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createRegistry } from '../../src/registry/index.ts';
import { signDelivery } from '../../src/sender/sign.ts';
import { createFakeSeller } from '../../src/testing/index.ts';
import { SAMPLE_FAMILIES } from '../../src/testing/for-tests.ts';
import { hashes, NEWEST } from '../registrations/kit.ts';
import { type Ears, ears, everywhere, HOSTILE, MARK } from '../support/hostile-text.ts';
import { virtualClock } from '../support/virtual-clock.ts';
import {
  AGENT,
  payloads,
  testReceiver,
  URL_GIVEN,
  type TestReceiver,
  type TestReceiverOptions,
} from './setup.ts';

/*
 * Hostile text in every place of what a seller sends and answers, by walking through it; and every text that comes out of the
 * library on a way that people read, by walking through that. So a place that somebody adds is found without being named here.
 */

/** A receiver all of whose ways out are listened to. Events are data, and are not. */
async function listened(to: Ears, options: TestReceiverOptions = {}): Promise<TestReceiver> {
  const made = await testReceiver({
    logger: to.logger,
    onAlarm: to.hear,
    onOutcome: ({ event: _event, ...outcome }) => to.hear(outcome),
    onHandled: to.hear,
    ...options,
  });
  const exporter = new InMemorySpanExporter();
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  instrument(made.receiver, { tracerProvider });
  onTestFinished(async () => {
    await made.receiver.stop();
    await tracerProvider.shutdown();
  });
  const spans = (): void => {
    for (const { name, attributes, status, events } of exporter.getFinishedSpans()) {
      for (const { name: event, attributes: facts = {} } of events) {
        // A stack is lines of ours.
        const { 'exception.stacktrace': stack = '', ...rest } = facts;
        to.hear(event, rest, ...String(stack).split('\n'));
      }
      to.hear(name, attributes, status);
    }
    exporter.reset();
  };
  const deliver: TestReceiver['deliver'] = async (...given) => {
    const outcome = await made.deliver(...given);
    to.hear(outcome.response);
    spans();
    return outcome;
  };
  return { ...made, deliver };
}

const BODIES: readonly (readonly [string, () => object])[] = [
  ...(['completed', 'working', 'failed', 'input-required'] as const).flatMap((status) => [
    [`tool, ${status}`, () => payloads.tool(status)] as const,
    [`agent, ${status}`, () => payloads.agent(status)] as const,
  ]),
  ['a report', () => payloads.report()],
  ...SAMPLE_FAMILIES.map((family) => [family, () => payloads.family(family)] as const),
];

it.each(BODIES)('a body, %s: what is said of it is printable and short', async (_, body) => {
  const to = ears();
  const made = await listened(to, {
    // As handlers do: they say what they could not take.
    handler: (event) =>
      Promise.reject(new Error(`not taken: ${event.kind} ${JSON.stringify(event.data)} ${HOSTILE}`)),
  });
  for (const payload of everywhere(body())) {
    const isKeyed = isJsonObject(payload) && payload['idempotency_key'] !== HOSTILE;
    await made.deliver({ ...(payload as object), ...(isKeyed && { idempotency_key: randomUUID() }) });
  }
  to.expectClean(10);
});

/** What a seller answers, to a call and to a question about its task. */
const ANSWERS: readonly (readonly [string, unknown])[] = [
  ['submitted', { status: 'submitted', task_id: 't-1', context: { trace: 'x' }, message: 'soon' }],
  ['completed', { status: 'completed', task_id: 't-1', media_buy_id: 'mb', packages: [{ package_id: 'p' }] }],
  ['a refusal', { error: { code: 'INVALID_REQUEST', message: 'no', field: 'f', suggestion: 's' } }],
  ['errors', { status: 'failed', errors: [{ code: 'POLICY_VIOLATION', message: 'no', field: 'budget' }] }],
  ['adcp_error', { adcp_error: { code: 'RATE_LIMITED', message: 'wait', recovery: 'transient' } }],
  [
    'an agent’s task',
    {
      id: 't-1',
      contextId: 'c',
      status: { state: 'working', message: { parts: [{ kind: 'text', text: 'x' }] } },
    },
  ],
];

/** What clients of sellers throw: their own errors, with what the seller has said. */
const THROWN: readonly (() => Error)[] = [
  () => new Error(HOSTILE),
  () =>
    Object.assign(new Error('failed', { cause: new Error(HOSTILE) }), {
      code: -32_603,
      data: { page: HOSTILE },
    }),
  () => Object.assign(new Error(HOSTILE), { status: 500, headers: { server: HOSTILE } }),
  () => Object.assign(new TypeError(HOSTILE), { code: 'INVALID_REQUEST' }),
];

const SAID: readonly (readonly [string, readonly (() => unknown)[]])[] = [
  ...ANSWERS.map(([name, answer]) => [name, everywhere(answer).map((one) => () => one)] as const),
  [
    'an error of the client',
    THROWN.map((error) => () => {
      throw error();
    }),
  ],
];

it.each(SAID)('an answer, %s: to a call and to a poll', async (_, answers) => {
  const to = ears();
  for (const answer of answers) {
    const clock = virtualClock();
    const store = memoryStore();
    const registrations = registrationsOf(
      {
        call: async () => answer(),
        store,
        baseUrl: 'https://buyer.example/webhooks',
        secrets: [NEWEST],
        logger: to.logger,
        onAlarm: to.hear,
      },
      {
        hashes,
        randomBytes: (count) => new Uint8Array(randomBytes(count)),
        newId: () => randomUUID(),
        now: clock.now,
        sleep: clock.sleep,
      },
    );
    const made = await listened(to, { store, registrations });
    await made.receiver.start();
    const request = { agentUrl: AGENT, taskType: 'create_media_buy', arguments: {} };
    const called = await registrations.create(request);
    await called.call().catch(to.hear);
    const polled = await registrations.create(request);
    await polled.settle({ status: 'submitted', task_id: 't-1' });
    const odd = await registrations.create(request);
    await odd.settle({ status: 'submitted', task_id: HOSTILE.slice(0, 300) });
    const poller = pollerOf(
      { receiver: made.receiver, registrations, onPoll: to.hear },
      { clock: clock.now, sleep: clock.sleep, random: () => 0.5 },
    );
    await poller.start();
    for (let polls = 0; polls < 2; polls += 1) await clock.pass(600_000);
    await poller.stop();
    await made.receiver.stop();
    clock.end();
  }
  to.expectClean(1);
});

it('documents of a seller and a publisher, and its revocation list: to whoever needs a key', async () => {
  const to = ears();
  await using seller = await createFakeSeller({ url: URL_GIVEN });
  const { host, origin } = new URL(seller.agentUrl);
  const { publicJwk, privateJwk } = seller.keys.ed25519;
  seller.revoke(['gone']);
  seller.documents.set('/.well-known/adagents.json', {
    authorized_agents: [{ url: seller.agentUrl, authorized_for: 'all', signing_keys: [publicJwk] }],
    authoritative_location: `${origin}/list.json`,
  });
  const shared = [publicJwk, seller.keys.p256.publicJwk].map((jwk) => ({ ...jwk, kid: HOSTILE }));
  const odd: Readonly<Record<string, readonly unknown[]>> = {
    '/.well-known/jwks.json': [
      { keys: [...shared, publicJwk] },
      { keys: [{ ...publicJwk, key_ops: [HOSTILE] }] },
    ],
    '/.well-known/adagents.json': [
      { authorized_agents: [{ url: seller.agentUrl, signing_keys: [...shared, publicJwk] }] },
      { authorized_agents: [{ url: HOSTILE }], authoritative_location: `https://${HOSTILE}` },
    ],
    '/.well-known/brand.json': [
      {
        agents: [
          { type: 'sales', url: `${origin}/MCP`, id: HOSTILE },
          { type: 'sales', url: `${origin}/mcp/?${MARK}\u202E`, jwks_uri: seller.jwksUrl },
        ],
      },
      { agents: [{ type: HOSTILE, url: seller.agentUrl, jwks_uri: `https://${HOSTILE}` }] },
    ],
  };
  for (const [path, published] of seller.documents) {
    const given: unknown = typeof published === 'function' ? await (published as () => unknown)() : published;
    const whole = everywhere(given);
    // Of members alone and together, and of what none of them is.
    for (const document of [...whole.slice(-4), ...(odd[path] ?? []), { [HOSTILE]: HOSTILE }, HOSTILE]) {
      seller.documents.set(path, document);
      // What a publisher pins leaves no other document to read.
      const publishers = path.endsWith('adagents.json') ? [host] : [];
      const senders = [{ ...seller.sender, publishers }];
      const made = await listened(to, { allowLoopback: true, senders });
      const body = { ...payloads.tool('completed'), idempotency_key: randomUUID() };
      to.hear((await made.send(await signDelivery({ url: URL_GIVEN, body, key: privateJwk }))).response);
      await made.receiver.stop();
    }
    seller.documents.set(path, published);
  }
  to.expectClean(1);
});

it('what a registry answers: in the errors of its client', async () => {
  const to = ears();
  const badge = {
    agent_url: 'https://s.example/mcp',
    role: 'sales',
    verified: true,
    error: 'no',
    later: ['x'],
  };
  for (const status of [200, 400, 401, 503]) {
    for (const answer of [...everywhere(badge), HOSTILE, [HOSTILE], `{"${HOSTILE}":1,"${HOSTILE}":2}`]) {
      const text = typeof answer === 'string' ? answer : JSON.stringify(answer);
      const transport = async (): Promise<Response> => new Response(text, { status });
      const registry = createRegistry({ baseUrl: 'https://registry.example', fetch: transport, attempts: 1 });
      await registry.badge('https://s.example/mcp', 'sales').catch(to.hear);
      await registry.diagnostics('https://s.example/mcp').catch(to.hear);
    }
  }
  to.expectClean(4);
});

it('the check hears what is written: hostile text is found where nothing makes it printable', () => {
  const to = ears();
  to.hear({ err: new Error('a', { cause: HOSTILE }) });
  expect(() => to.expectClean(1)).toThrow();
});
