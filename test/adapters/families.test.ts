import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { webhookHandler as fetchHandler } from '../../src/adapters/fetch.ts';
import { webhookHandler } from '../../src/adapters/node.ts';
import type { Event } from '../../src/events/index.ts';
import { createReceiver, type Outcome, type Receiver, type ReceiverOptions } from '../../src/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { SAMPLE_FAMILIES } from '../../src/testing/for-tests.ts';
import {
  createFakeSeller,
  type FakeSeller,
  type SampleFamily,
  samplePayloads,
} from '../../src/testing/index.ts';
import { listening, type Listening } from './raw-client.ts';
import { SILENT_LOGGER } from '../support/silent-logger.ts';

type Body = Readonly<Record<string, unknown>>;

const samples = samplePayloads();

interface Case {
  readonly name: string;
  readonly body: () => Body;
  /** Whose event it was; absent: refused. */
  readonly handler?: string;
  readonly event?: Readonly<Record<string, unknown>>;
  readonly code?: string;
  /** Refused alike, though the sender of this format may lack a key. */
  readonly agentCode?: string;
}

const HANDLERS: Readonly<Record<SampleFamily, string>> = {
  impairment: 'impairment',
  'creative.status_changed': 'creative.status_changed',
  'creative.purged': 'creative.purged',
  'creative.assignment_changed': 'creative.assignment_changed',
  'indicators.changed': 'indicators.changed',
  'account.status_changed': 'account.status_changed',
  'capabilities.changed': 'capabilities.changed',
  'account.change_recorded': 'account.change_recorded',
  'principal.changed': 'principal.changed',
  'reporting.ledger_changed': 'reporting.ledger_changed',
  'reporting.status_changed': 'reporting.status_changed',
  'reporting.delivery_ready': 'reporting.delivery_ready',
  'product.updated': 'wholesale_feed',
  collection_list_changed: 'collection_list_changed',
  property_list_changed: 'property_list_changed',
  artifact_push: 'artifact_push',
  'revocation-notification': 'revocation-notification',
};

const KNOWN: readonly Case[] = SAMPLE_FAMILIES.flatMap((family) => [
  {
    name: family,
    body: () => samples.family(family, { vendor: [{ a: null }] }),
    handler: HANDLERS[family],
    event: { kind: 'other', family, warnings: [], notification: { vendor: [{ a: null }] } },
  },
  {
    name: `${family}, of which the payload is another's`,
    body: () => ({ idempotency_key: crypto.randomUUID(), event_type: family, vendor: 1 }),
    handler: 'other',
    event: { kind: 'other', family, warnings: [{ code: 'invalid_notification' }] },
  },
]);

const keyed =
  (members: Body): (() => Body) =>
  () => ({ idempotency_key: crypto.randomUUID(), ...members });
const feed = (event_type: string): (() => Body) => keyed({ event: { event_id: 'e', event_type } });

const OTHERS: readonly Case[] = [
  { name: 'signal.removed', body: feed('signal.removed'), handler: 'wholesale_feed' },
  { name: 'wholesale_feed.bulk', body: feed('wholesale_feed.bulk'), handler: 'wholesale_feed' },
  {
    name: 'product.priced, which has a handler of its own',
    body: feed('product.priced'),
    handler: 'product.priced',
  },
  { name: 'products.priced', body: feed('products.priced'), handler: 'other', event: { warnings: [] } },
  {
    name: 'a name that this version does not know',
    body: keyed({ event: 'vendor.known_to_owner', a: 1 }),
    handler: 'vendor.known_to_owner',
    event: { family: 'vendor.known_to_owner', envelope: { a: 1 } },
  },
  {
    name: 'a name that nobody knows',
    body: keyed({ notification_type: 'x.y', task_id: 't', status: 'active' }),
    handler: 'other',
    event: { family: 'x.y', taskId: 't', status: 'active', warnings: [] },
  },
  { name: 'no name', body: keyed({ a: 1 }), handler: 'other', event: { warnings: [] } },
  ...['constructor', '__proto__', 'toString', 'hasOwnProperty'].map((family) => ({
    name: `the name ${family}`,
    body: keyed({ event_type: family }),
    handler: 'other',
    event: { family },
  })),
  {
    name: 'an impairment in a task envelope',
    body: () => samples.tool('completed', { task_type: 'impairment', result: { impairment_id: 'i' } }),
    handler: 'impairment',
    event: { notification: { impairment_id: 'i' } },
  },
];

const TASKS: readonly Case[] = [
  {
    name: 'auth-required in a tool envelope',
    body: () => samples.tool('auth-required'),
    handler: 'auth-required',
    event: { kind: 'task', status: 'auth-required', warnings: [] },
  },
  {
    name: 'a task that names itself',
    body: () => samples.tool('completed', { event_type: 'task.completed' }),
    handler: 'completed',
    event: { kind: 'task', status: 'completed' },
  },
  {
    name: 'a window_update report',
    body: () => samples.report('window_update', { partial_data: true }),
    handler: 'deliveryReport',
    event: { kind: 'delivery-report', report: { partial_data: true }, warnings: [] },
  },
];

const REFUSED: readonly Case[] = [
  {
    name: 'no key',
    body: () => ({ event_type: 'creative.purged', creative_id: 'c' }),
    code: 'missing_idempotency_key',
  },
  {
    name: 'a bad key',
    body: () => samples.family('impairment', { idempotency_key: 'short' }),
    code: 'invalid_envelope',
  },
  {
    name: 'a bare report',
    body: keyed({ notification_type: 'window_update', media_buy_deliveries: [] }),
    code: 'missing_envelope_fields',
  },
  {
    name: 'a nameless body with task_id',
    body: keyed({ task_id: 't', a: 1 }),
    code: 'missing_envelope_fields',
  },
  {
    name: 'a nameless body with a status',
    body: keyed({ status: 'active' }),
    code: 'missing_envelope_fields',
    agentCode: 'invalid_envelope',
  },
  { name: 'a nameless body with a result', body: keyed({ result: {} }), code: 'missing_envelope_fields' },
  {
    name: 'a media buy’s status in a task envelope',
    body: () => samples.tool('completed', { status: 'active' }),
    code: 'invalid_envelope_status',
  },
  {
    name: 'a wrapper in a wrapper',
    body: keyed({ task: { ...samples.agent('completed'), message: {} } }),
    code: 'invalid_envelope',
  },
];

const CASES = [...KNOWN, ...OTHERS, ...TASKS, ...REFUSED];

interface Handled {
  readonly name: string;
  readonly event: Event;
}

describe.each(['tool', 'agent'] as const)('signed, from a sender of format %s', (format) => {
  let seller: FakeSeller;
  let server: Listening;
  let receivers: readonly Receiver[];
  const handled: Handled[] = [];
  const outcomes: Outcome[] = [];

  const note = (name: string) => (event: Event) => void handled.push({ name, event });

  const receiverAt = (publicUrl: string, store: ReceiverOptions['store']): Receiver =>
    createReceiver({
      publicUrl,
      senders: [{ ...seller.sender, format }],
      store,
      durability: { require: 'process' },
      allowLoopback: true,
      logger: SILENT_LOGGER,
      onOutcome: (outcome) => void outcomes.push(outcome),
      handlers: {
        completed: note('completed'),
        'auth-required': note('auth-required'),
        deliveryReport: note('deliveryReport'),
        notifications: Object.fromEntries(
          [...Object.values(HANDLERS), 'product.priced', 'vendor.known_to_owner'].map((name) => [
            name,
            note(name),
          ]),
        ),
        other: note('other'),
      },
    });

  beforeAll(async () => {
    seller = await createFakeSeller({ retry: { attempts: 1 } });
    const late: { node?: Receiver } = {};
    server = await listening((req, res) => late.node && webhookHandler(late.node)(req, res));
    late.node = receiverAt(`${server.url}/hook`, memoryStore());
    receivers = [late.node, receiverAt('https://buyer.example/hook', memoryStore())];
  });
  afterAll(async () => {
    for (const receiver of receivers) await receiver.stop();
    await server[Symbol.asyncDispose]();
    await seller.close();
  });

  async function throughNode(body: Body): Promise<number | undefined> {
    return (await seller.deliver(body, { url: `${server.url}/hook` })).last.status;
  }

  async function throughFetch(payload: Body): Promise<number> {
    const [, receiver = expect.fail()] = receivers;
    const { method, url, headers, body } = await seller.sign(payload, { url: 'https://buyer.example/hook' });
    return (await fetchHandler(receiver)(new Request(url, { method, headers: { ...headers }, body }))).status;
  }

  test.each(CASES)('$name', async ({ body, handler, event = {}, code, agentCode }) => {
    for (const deliver of [throughNode, throughFetch]) {
      handled.length = 0;
      const sent = body();
      const status = await deliver(sent);
      const outcome = outcomes.at(-1);
      if (handler === undefined) {
        const expected = (format === 'agent' ? agentCode : undefined) ?? code;
        expect([status, outcome?.kind, outcome?.code]).toEqual([400, 'refused', expected]);
        expect(handled).toEqual([]);
      } else {
        expect([status, outcome?.kind]).toEqual([200, 'accepted']);
        expect(handled.map(({ name }) => name)).toEqual([handler]);
        expect(handled[0]?.event).toMatchObject({ ...event, envelope: sent });
        expect(outcome?.sender).toBe(seller.sender.agentUrl);
      }
    }
  });
});
