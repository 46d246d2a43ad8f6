import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { onTestFinished, vi } from 'vitest';
import {
  type Alarm,
  type CallSeller,
  createRegistrations,
  type Sender,
} from '../../src/registrations/index.ts';
import { type AlarmCode, Fault, PermanentError, type Store } from '../../src/index.ts';
import { generateKey, type Jwk } from '../../src/sender/sign.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createFakeSeller } from '../../src/testing/index.ts';
import { sampleChallenge } from '../../src/testing/for-tests.ts';
import {
  AGENT,
  testReceiver,
  payloads,
  sellerKey,
  URL_GIVEN,
  type TestReceiver,
  type TestReceiverOptions,
} from '../receiver/setup.ts';
import { declares, world } from '../reconcile/kit.ts';
import { createReconciler, type ReconcilerOptions } from '../../src/reconcile/index.ts';
import { BRAND, JWKS, MINUTE, rehearse, REVOCATIONS } from '../testing/rehearsal.ts';
import { createForwarder, httpSink } from '../../src/serve/sink/for-tests.ts';
import { eventOf, idOf, SECRET } from '../serve/sink/kit.ts';
import { freePort } from '../support/free-port.ts';
import { SILENT_LOGGER } from '../support/silent-logger.ts';
import { sodiumNative } from '../crypto/sodium-native.ts';
import type { Row } from './row.ts';
import { ready, serving, world as serveWorld } from '../serve/kit.ts';
import { anyClient, pollerBy, startBy } from '../support/any-client.ts';

type Alarms = readonly Alarm[];

const TOKEN = 'a-token-of-thirty-two-characters';
const completed = (): ReturnType<typeof payloads.tool> => payloads.tool('completed');

/** The alarms of a receiver to which something was done. */
const after =
  (options: TestReceiverOptions, ...deliveries: readonly object[]) =>
  async (): Promise<Alarms> => {
    const at = await testReceiver(options);
    for (const delivery of deliveries) await at.deliver(delivery);
    return at.alarms;
  };

/** The same, by a seller whose documents are fetched. */
const rehearsed =
  (act: (at: Awaited<ReturnType<typeof rehearse>>) => Promise<unknown>, more: TestReceiverOptions = {}) =>
  async (): Promise<Alarms> => {
    const at = await rehearse(more);
    await act(at);
    return at.alarms;
  };

/** Headers of a signed delivery, changed on the way to us. */
const changed = (headers: Record<string, string>) => async (): Promise<Alarms> => {
  const at = await testReceiver();
  const signed = await at.sign(completed());
  await at.receiver.verifyAndDispatch(signed.body, { ...signed.headers, ...headers });
  return at.alarms;
};

/** The alarms of registrations that repeat a call whose process has died. */
async function repeating(requestKeyMs: number, call: CallSeller): Promise<Alarms> {
  const alarms: Alarm[] = [];
  const store = memoryStore();
  const registrations = createRegistrations({
    call: anyClient,
    store,
    baseUrl: 'https://buyer.example/webhooks',
    secrets: ['a-secret-of-forty-characters-and-no-more'],
    // Due at once.
    callMs: 1,
    logger: { debug() {}, info() {}, warn() {}, error() {} },
    onAlarm: (alarm) => void alarms.push(alarm),
  });
  const { receiver } = await testReceiver({
    store,
    publicUrl: registrations.publicUrl,
    senders: registrations.senders,
    registrations,
  });
  onTestFinished(async () => {
    await registrations.stop();
    await receiver.stop();
  });
  const request = { agentUrl: AGENT, taskType: 'create_media_buy', arguments: {}, requestKeyMs };
  await registrations.create(request);
  void startBy(registrations, call);
  return alarms;
}

/** The alarms of registrations that subscribe to two types, one after the other, at a seller that answers so. */
async function subscribing(call: CallSeller): Promise<Alarms> {
  const alarms: Alarm[] = [];
  const registrations = createRegistrations({
    call,
    store: memoryStore(),
    baseUrl: 'https://buyer.example/webhooks',
    secrets: ['a-secret-of-forty-characters-and-no-more'],
    logger: { debug() {}, info() {}, warn() {}, error() {} },
    onAlarm: (alarm) => void alarms.push(alarm),
  });
  for (const ref of ['first', 'second']) {
    const request = {
      agentUrl: AGENT,
      account: { account_id: 'acc-1' },
      eventTypes: ['creative.purged'],
      ref,
    };
    await registrations.subscribe(request).catch(() => undefined);
  }
  return alarms;
}

/** The seller's account has the entry of somebody else until it is set, which fails as `sync` says. */
const withAnothers = (sync: () => unknown): CallSeller => {
  let entries = [{ subscriber_id: 'theirs' }];
  return async (_agentUrl, operation) => {
    if (operation === 'list_accounts')
      return { accounts: [{ account_id: 'acc-1', notification_configs: entries }] };
    entries = [];
    return sync();
  };
};

/** The alarms of a receiver whose tasks are polled; by what their seller answers. */
async function usingRetired(): Promise<Alarms> {
  const store = memoryStore();
  const registrations = createRegistrations({ store, baseUrl: 'https://buyer.example', secrets: [TOKEN] });
  const { publicUrl, senders } = registrations;
  const at = await testReceiver({ store, registrations, publicUrl, senders });
  onTestFinished(() => at.receiver.stop());
  const request = { agentUrl: AGENT, taskType: 'create_media_buy', arguments: {}, scheme: 'Bearer' } as const;
  const { toolArguments } = await registrations.create(request);
  const { url } = toolArguments['push_notification_config'] as unknown as { readonly url: string };
  const [known] = (await registrations.state()).urls;
  if (known) await registrations.retire(known, { force: true });
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${TOKEN}` };
  await at.receiver.verifyAndDispatch(new Uint8Array(), headers, { url: new URL(url).pathname });
  await at.receiver.stop();
  return at.alarms;
}

async function polling(answer: CallSeller): Promise<Alarms> {
  const store = memoryStore();
  const registrations = createRegistrations({
    call: anyClient,
    store,
    baseUrl: 'https://buyer.example',
    secrets: [TOKEN],
  });
  const at = await testReceiver({ store, registrations });
  const poller = pollerBy({ receiver: at.receiver, registrations, call: answer, fastMs: 1 });
  onTestFinished(async () => {
    await poller.stop();
    await at.receiver.stop();
  });
  const made = await registrations.create({
    agentUrl: AGENT,
    taskType: 'create_media_buy',
    arguments: {},
  });
  await made.settle({ status: 'submitted', task_id: 'task-1' });
  await poller.start();
  return at.alarms;
}

const DAY_MS = 86_400_000;

const FLIGHT = { start_time: '2026-03-01T00:00:00Z', end_time: '2026-03-02T00:00:00Z' };

/** A media buy of one day in the past, as its seller describes it. */
const buysOf: CallSeller = async () => ({
  media_buys: [{ media_buy_id: 'buy-1', status: 'completed', ...FLIGHT, packages: [] }],
});

/** A seller that answers for the lifetime of a media buy alone. */
const lifetimeOf: CallSeller = async (_agentUrl, _operation, args) =>
  'start_date' in args
    ? { error: { code: 'DATE_RANGE_NOT_SUPPORTED', message: 'no' } }
    : { media_buy_deliveries: [{ media_buy_id: 'buy-1', totals: { impressions: 2, spend: 3 } }] };

interface Owing extends Pick<ReconcilerOptions, 'ours'> {
  /** As the call has it. */
  readonly flight?: object;
  /** The store's clock moves on so far behind the call. Ms. */
  readonly aheadMs?: number;
}

/** The alarms of a receiver whose media buy has ended without its report; by what the seller answers. */
async function owing(
  buys: CallSeller,
  delivery: CallSeller,
  { ours, flight = FLIGHT, aheadMs = 0 }: Owing = {},
): Promise<Alarms> {
  let offsetMs = 0;
  const store = memoryStore({ clockOffsetMs: () => offsetMs });
  const call: CallSeller = (agentUrl, operation, ...rest) =>
    (operation === 'get_media_buys' ? buys : delivery)(agentUrl, operation, ...rest);
  const registrations = createRegistrations({
    call,
    store,
    baseUrl: 'https://buyer.example',
    secrets: [TOKEN],
  });
  const at = await testReceiver({ store, registrations });
  const reconciler = createReconciler({ receiver: at.receiver, registrations, ours });
  onTestFinished(async () => {
    await reconciler.stop();
    await at.receiver.stop();
  });
  const reporting_webhook = { url: 'https://buyer.example/r', reporting_frequency: 'daily' };
  const made = await registrations.create({
    agentUrl: AGENT,
    taskType: 'create_media_buy',
    arguments: { ...flight, reporting_webhook },
  });
  await made.settle({ status: 'completed', media_buy_id: 'buy-1' });
  offsetMs = aheadMs;
  await reconciler.start();
  return at.alarms;
}

/** The alarms where a seller does not know the media buy that was adopted. */
async function unverifiable(): Promise<Alarms> {
  const here = world('2026-03-01T12:00:00Z');
  const { reconciler, registrations, alarms } = await here.process();
  await registrations.adopt({ agentUrl: AGENT, mediaBuyId: 'buy-1', reporting: { frequency: 'daily' } });
  await reconciler.start();
  await here.until('2026-03-01T13:00:00Z');
  await here.end();
  return alarms;
}

/** The alarms where a seller that promises webhooks shows an impairment of which none came. */
async function missed(): Promise<Alarms> {
  const here = world('2026-03-01T12:00:00Z');
  declares(here, { adcp: {}, media_buy: { propagation_surfaces: ['snapshot', 'webhook'] } });
  const impairment = { impairment_id: 'imp-1', observed_at: '2026-03-01T12:01:00Z' };
  here.seller.buys = () => ({
    media_buys: [{ media_buy_id: 'buy-1', status: 'active', health: 'impaired', impairments: [impairment] }],
  });
  const { reconciler, registrations, alarms } = await here.process();
  await registrations.adopt({ agentUrl: AGENT, mediaBuyId: 'buy-1' });
  await reconciler.start();
  await here.until('2026-03-01T13:00:00Z');
  await here.end();
  return alarms;
}

/** A store that is the memory store but for something. */
const storeWith = (change: (store: Store) => Partial<Store>): Store => {
  const store = memoryStore();
  return { ...store, ...change(store) };
};

/** Two sellers at one URL, whose JWKS the test writes. */
async function two() {
  const start = Date.now();
  const clock = { now: start };
  const now = (): number => clock.now;
  const sellers = await Promise.all([0, 1].map(() => createFakeSeller({ url: URL_GIVEN, now })));
  const [one, other] = sellers as [(typeof sellers)[0], (typeof sellers)[0]];
  const at = await testReceiver({ senders: [one.sender, other.sender], allowLoopback: true, now });
  onTestFinished(async () => {
    await at.receiver.stop();
    await Promise.all(sellers.map((seller) => seller.close()));
  });
  const deliver = async (seller: typeof one): Promise<void> => {
    const timestamp = new Date(start).toISOString();
    const { body, headers } = await seller.sign(seller.payloads.tool('completed', { timestamp }));
    await at.receiver.verifyAndDispatch(body, headers);
  };
  return { ...at, one, other, deliver, clock };
}

/** The public JWK that a seller signs with. */
const publicOf = (seller: Awaited<ReturnType<typeof two>>['one']): Jwk => seller.keys.ed25519.publicJwk;

/** Deliveries of which each fails, so many ms after the one before. */
const outage =
  (deliveries: number, everyMs: number, options: TestReceiverOptions) => async (): Promise<Alarms> => {
    const clock = { now: Date.now() };
    const { sign, send, alarms } = await testReceiver({ now: () => clock.now, ...options });
    for (let sent = 0; sent < deliveries; sent += 1, clock.now += everyMs) {
      await send(await sign(completed(), { now: () => clock.now }));
    }
    return alarms;
  };

/** Every alarm: how it comes about, and what it says. */
export const ALARMS: Readonly<Record<AlarmCode, Row<Alarms>>> = {
  payload_changed: {
    test: async () => {
      const event = completed();
      return after({}, event, { ...event, message: 'something else' })();
    },
    message: 'the first copy is kept',
  },
  payload_too_large: { test: after({ maxBodyBytes: 100 }, completed()), message: 'over 100' },
  unsupported_media_type: {
    test: changed({ 'Content-Type': 'application/a2a+json' }),
    message: "set contentTypes: ['application/a2a+json']",
  },
  webhook_signature_header_malformed: {
    test: async () => {
      const { receiver, alarms } = await testReceiver();
      const headers = { 'Content-Type': 'application/json', 'X-A2A-Notification-Token': TOKEN };
      await receiver.verifyAndDispatch(new Uint8Array(2), headers);
      return alarms;
    },
    message: "auth: { bearer: { token, header: 'X-A2A-Notification-Token' } }",
  },
  webhook_signature_key_unknown: {
    test: async () => {
      const at = await testReceiver();
      await at.deliver(completed(), { params: { keyid: 'next-1' } });
      return at.alarms;
    },
    message: 'Only the pins of',
  },
  webhook_signature_key_revoked: {
    test: async () => {
      const { publicJwk } = await sellerKey();
      const revocation = { revokedKids: ['seller-1'] };
      return after({ senders: [{ agentUrl: AGENT, pins: [publicJwk], revocation }] }, completed())();
    },
    message: `It is in revokedKids of ${AGENT}`,
  },
  webhook_signature_invalid: {
    test: async () => {
      const stranger = await generateKey('ed25519', 'webhook-signing', { kid: 'seller-1' });
      const at = await testReceiver();
      await at.deliver(completed(), { key: stranger.privateJwk });
      return at.alarms;
    },
    message: 'Compare publicUrl with the URL that you gave the seller',
  },
  webhook_signature_digest_mismatch: {
    test: async () => {
      const at = await testReceiver();
      const { headers } = await at.sign(completed());
      await at.receiver.verifyAndDispatch(new TextEncoder().encode('{"changed":true}'), headers);
      return at.alarms;
    },
    message: 'your proxy, parser or middleware',
  },
  webhook_mode_mismatch: {
    test: changed({ 'X-ADCP-Signature': 'sha256=0' }),
    message: 'change the auth of its sender',
  },
  webhook_signature_tag_invalid: {
    test: async () => {
      const at = await testReceiver({ protocol: 'proto' });
      await at.deliver(completed(), { protocol: 'adcp' });
      return at.alarms;
    },
    message: "Leave protocol out, or set protocol: 'adcp'",
  },
  unsupported_content_encoding: {
    test: changed({ 'Content-Encoding': 'gzip' }),
    message: 'your proxy may: turn that off for this path',
  },
  dead: {
    test: after(
      {
        handler: () => {
          throw new PermanentError('no such account');
        },
      },
      completed(),
    ),
    message: 'an event is DEAD and kept for you',
  },
  cap_near: {
    test: after({ maxRecordsPerSender: 2 }, payloads.report(), payloads.report()),
    message: "80 % of the sender's cap of records is used",
  },
  cap_reached: {
    test: after({ maxRecordsPerSender: 1 }, payloads.report(), payloads.report()),
    message: 'the sender is over its cap of records: deliveries are answered 429',
  },
  second_terminal_status: {
    test: after(
      {},
      payloads.tool('completed', { task_id: 't', timestamp: '2026-01-01T00:00:00Z' }),
      payloads.tool('failed', { task_id: 't', timestamp: '2026-01-01T00:01:00Z' }),
    ),
    message: 'a second terminal status of one task',
  },
  end_dropped: {
    test: after(
      {},
      payloads.tool('working', { task_id: 't', idempotency_key: 'one-key-an-operation' }),
      payloads.tool('completed', { task_id: 't', idempotency_key: 'one-key-an-operation' }),
    ),
    message: 'Poll the task (docs/poll.md)',
  },
  timestamp_ahead: {
    test: after({}, payloads.tool('working', { timestamp: '2999-01-01T00:00:00Z' })),
    message: "more than 5 min ahead of the store's clock",
  },
  nonconforming_sender: {
    test: after({}, payloads.family('impairment', { impairment_id: 5 })),
    message: "the payload is not its family's",
  },
  challenge_refused: {
    test: after({}, sampleChallenge(AGENT, undefined, {})),
    message: 'A proof of control was answered 403',
  },
  token_mismatch: {
    test: async () => {
      const { publicJwk } = await sellerKey();
      const sender = { agentUrl: AGENT, pins: [publicJwk], notificationToken: { token: TOKEN } };
      return after({ senders: [sender] }, { ...completed(), token: 'another' })();
    },
    message: 'during a rotation set previousToken',
  },
  clock_skew: {
    test: async () => {
      const now = Date.now();
      const store = storeWith(() => ({ clock: async () => now }));
      const at = await testReceiver({ store, now: () => now - 10 * MINUTE });
      await at.deliver(completed(), { now: () => now });
      return at.alarms;
    },
    message: 'until it is corrected (NTP)',
  },
  clock_stepped: {
    test: async () => {
      const store = storeWith((memory) => ({
        accept: async (request) => ({ ...(await memory.accept(request)), clockSteppedMs: 90_400 }),
      }));
      return after({ store }, completed())();
    },
    message: "the store's clock was set back by 90 s",
  },
  legacy_auth_used: {
    test: async () => {
      const at = await testReceiver({ senders: [{ agentUrl: AGENT, auth: { bearer: { token: TOKEN } } }] });
      const body = new TextEncoder().encode(JSON.stringify(completed()));
      const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${TOKEN}` };
      await at.receiver.verifyAndDispatch(body, headers);
      return at.alarms;
    },
    message: 'removed in 4.0: ask it to sign',
  },
  host_rewritten: { test: changed({ Host: 'internal.example' }), message: "set hostCheck: 'off'" },
  public_url_mismatch: {
    test: async () => {
      const at = await testReceiver({ publicUrl: `${URL_GIVEN}/` });
      const { body, headers } = await at.sign(completed());
      await at.receiver.verifyAndDispatch(body, headers, { url: '/webhooks/proto' });
      return at.alarms;
    },
    message: 'set publicUrl to https://buyer.example/webhooks/proto',
  },
  agent_not_listed: {
    test: rehearsed(async ({ seller, deliver }) => {
      seller.documents.set(BRAND, { agents: [{ url: `${seller.agentUrl}/` }] });
      await deliver();
    }),
    message: 'differs in trailing slash',
  },
  key_purpose_refused: {
    test: async () => {
      const { publicJwk, privateJwk } = await generateKey('ed25519', 'request-signing', { kid: 'k' });
      const at = await testReceiver({ senders: [{ agentUrl: AGENT, pins: [publicJwk] }] });
      await at.deliver(completed(), { key: privateJwk });
      return at.alarms;
    },
    message: "set edition: '3.1' for it",
  },
  key_shared: {
    test: async () => {
      const { one, other, deliver, alarms } = await two();
      // Before either was ever seen.
      other.documents.set(JWKS, { keys: [publicOf(other), publicOf(one)] });
      await deliver(one);
      return alarms;
    },
    message: 'Give each seller a webhook URL of its own',
  },
  key_owner_unchecked: {
    test: async () => {
      const { one, other, deliver, alarms } = await two();
      other.faults.set('*', 'down');
      await deliver(one);
      return alarms;
    },
    message: 'could not be asked whether it is its own',
  },
  jwks_uri_moved: {
    test: rehearsed(async ({ seller, deliver, advance }) => {
      await deliver();
      const jwks_uri = `${seller.jwksUrl}?moved`;
      seller.documents.set(BRAND, { agents: [{ url: seller.agentUrl, jwks_uri }] });
      advance(6 * MINUTE);
      await deliver();
      await deliver();
    }),
    message: 'first learned was',
  },
  publisher_pins: {
    test: async () => {
      const agentUrl = 'http://127.0.0.1:9/mcp';
      const { publicJwk } = await sellerKey();
      const listed = { authorized_agents: [{ url: agentUrl, signing_keys: [publicJwk] }] };
      const publisher = createServer((_request, response) => response.end(JSON.stringify(listed)));
      publisher.listen(0, '127.0.0.1');
      await once(publisher, 'listening');
      onTestFinished(() => void publisher.close());
      const host = `127.0.0.1:${(publisher.address() as AddressInfo).port}`;
      const sender: Sender = { agentUrl, publishers: [host], revocation: { discover: false } };
      return after({ senders: [sender], allowLoopback: true }, completed())();
    },
    message: 'only pinned keys verify now',
  },
  pin_not_published: {
    test: async () => {
      const seller = await createFakeSeller({ url: URL_GIVEN });
      onTestFinished(() => seller.close());
      const { agentUrl, documents } = seller;
      const key = await generateKey('ed25519', 'webhook-signing');
      const pinning = { url: agentUrl, signing_keys: [key.publicJwk] };
      documents.set('/.well-known/adagents.json', { authorized_agents: [pinning] });
      const sender = { agentUrl, publishers: [new URL(agentUrl).host] };
      const at = await testReceiver({ senders: [sender], allowLoopback: true });
      await at.deliver(completed(), { key: key.privateJwk });
      return at.alarms;
    },
    message: 'the JWKS of the seller does not have it',
  },
  key_document_invalid: {
    test: rehearsed(async ({ seller, deliver }) => {
      seller.faults.set(JWKS, 'html');
      await deliver();
    }),
    message: 'the body is not JSON',
  },
  key_fetch_failing: {
    test: rehearsed(async ({ seller, deliver }) => {
      seller.faults.set('*', 'down');
      await deliver();
    }),
    message: 'There is no earlier copy',
  },
  revocation_stale: {
    test: rehearsed(async ({ seller, deliver, advance }) => {
      seller.revoke([]);
      await deliver();
      seller.faults.set(REVOCATIONS, 'unavailable');
      advance(26 * MINUTE);
      await deliver();
    }),
    message: 'it is past next_update and its grace',
  },
  revocation_overflow: {
    test: rehearsed(async ({ seller, deliver, advance, now }) => {
      const [updated, next_update] = [now(), now() + 5 * MINUTE].map((ms) => new Date(ms).toISOString());
      const issuer = new URL(seller.revocationsUrl).origin;
      const publish = (name: string, count: number): void => {
        const revoked_kids = Array.from({ length: count }, (_, index) => `${name}-${index}`);
        seller.documents.set(REVOCATIONS, { version: 1, issuer, updated, next_update, revoked_kids });
      };
      publish('a', 10_000);
      await deliver();
      publish('b', 1);
      advance(6 * MINUTE);
      await deliver();
    }),
    message: 'The seller has to raise updated with each list',
  },
  admission_pressure: {
    test: rehearsed(
      async ({ seller, deliver, advance }) => {
        await deliver();
        advance(6 * MINUTE);
        for (let rotation = 1; rotation <= 2; rotation += 1) {
          await seller.rotate('ed25519', { overlap: true });
          advance(MINUTE);
          await deliver();
        }
      },
      { advanced: { admissionPressure: { ceiling: { absolute: 1, proportional: 0 }, longRatio: 1 } } },
    ),
    message: '2 key ids came into use within 5 minutes',
  },
  senders_failed: {
    test: after(
      {
        senders: () => {
          throw new Error('no connection to the database of sellers');
        },
      },
      completed(),
    ),
    message: 'no connection to the database of sellers',
  },
  queue_unattended: {
    test: async () => {
      // An event that came due an hour ago, as the store says.
      const store = storeWith(({ inbox }) => ({
        inbox: { ...inbox, overdueMs: async () => 3_600_000 } as NonNullable<Store['inbox']>,
      }));
      const at = await testReceiver({ store, mode: 'inbox', advanced: { queueUnattendedMs: 1 } });
      onTestFinished(() => at.receiver.stop());
      await at.deliver(completed());
      return at.alarms;
    },
    message: 'Call receiver.start() on this store in a process that keeps running',
  },
  answer_refused: {
    test: () => repeating(86_400_000, async () => ({ status: 'completed', result: 1n })),
    message: 'The answer is refused: it cannot be kept (observe: data is a bigint, which JSON cannot keep).',
  },
  operation_orphaned: {
    test: () => repeating(0, async () => ({})),
    message: 'It is unknown whether create_media_buy was done',
  },
  operation_refused: {
    test: () => repeating(60_000, async () => ({ error: { code: 'AUTH_INVALID' } })),
    message: 'AUTH_INVALID. Get a new token from the seller',
  },
  subscription_lost: {
    test: () => subscribing(withAnothers(() => ({ accounts: [{ account_id: 'acc-1', action: 'updated' }] }))),
    message:
      'The subscription "theirs" of somebody else was there before ours was changed, and is there no more',
  },
  subscription_refused: {
    test: () => {
      const answers = [{}, { errors: [{ code: 'VALIDATION_ERROR', message: 'no answer' }] }];
      return subscribing(withAnothers(() => answers.shift()));
    },
    message: 'The subscription "first" is refused: The seller answers VALIDATION_ERROR: no answer.',
  },
  retired_url_used: {
    test: () => usingRetired(),
    message: 'The seller sends to a URL below https://buyer.example under credentials that were retired',
  },
  registration_drift: {
    test: async () => {
      const alarms: Alarm[] = [];
      const registrations = createRegistrations({
        call: async () => ({
          media_buys: [{ media_buy_id: 'buy-1', webhook_activity: [{ url: 'https://old.example/x' }] }],
        }),
        store: memoryStore(),
        baseUrl: 'https://buyer.example/webhooks',
        secrets: ['a-secret-of-forty-characters-and-no-more'],
        logger: { debug() {}, info() {}, warn() {}, error() {} },
        onAlarm: (alarm) => void alarms.push(alarm),
      });
      const request = { agentUrl: AGENT, taskType: 'create_media_buy', arguments: {} };
      const { settle } = await registrations.create(request);
      await settle({ status: 'completed', media_buy_id: 'buy-1', packages: [] });
      await registrations.state({ check: true });
      return alarms;
    },
    message: '1 media buys (buy-1); it shows https://old.example/…. Ask it, or tell it again',
  },
  task_unresolved: {
    test: () => polling(async () => ({ status: 'completed', task_id: 'task-1' })),
    message: 'It is unknown how create_media_buy ended: the seller answers completed without a result',
  },
  task_unknown: {
    test: () => polling(async () => ({ error: { code: 'TASK_NOT_FOUND', message: 'who?' } })),
    message: 'The seller answers TASK_NOT_FOUND: who?. This does not say how the task ended',
  },
  poll_failing: {
    test: () => polling(async () => ({ error: { code: 'AUTH_INVALID', message: 'expired' } })),
    message: 'AUTH_INVALID: expired. Get a new token from the seller',
  },
  report_missing: {
    test: () => owing(buysOf, async () => ({ media_buy_deliveries: [] })),
    message: 'did not come, and the first pull failed: the answer has no data of the period. They are pulled',
  },
  report_unrecoverable: {
    test: () => owing(buysOf, async () => ({ error: { code: 'DATE_RANGE_NOT_SUPPORTED', message: 'no' } })),
    message: 'cannot be pulled: the seller answers for the lifetime of a media buy alone. Ask the seller',
  },
  final_absent: {
    test: () => {
      const day = (days: number): string => new Date(Date.now() + days * DAY_MS).toISOString();
      const flight = { start_time: day(-1), end_time: day(1) };
      const buys: CallSeller = async () => ({
        media_buys: [
          {
            media_buy_id: 'buy-1',
            status: 'completed',
            ...flight,
            updated_at: flight.end_time,
            packages: [],
          },
        ],
      });
      const delivery: CallSeller = async () => ({
        error: { code: 'DATE_RANGE_NOT_SUPPORTED', message: 'no' },
      });
      return owing(buys, delivery, { flight, aheadMs: 10 * DAY_MS });
    },
    message: 'Media buy buy-1 has ended, and its final report did not come',
  },
  totals_differ: {
    test: () => owing(buysOf, lifetimeOf, { ours: () => ({ impressions: 1, spend: 3, currency: 'USD' }) }),
    message: '1 impressions and 3 USD spent are booked, the seller has 2 impressions and 3 spent',
  },
  impairment_missed: {
    test: missed,
    message:
      'impairment imp-1 of buy-1 was read from a snapshot: no webhook brought it. Handlers are told now.',
  },
  stream_unverifiable: {
    test: () => unverifiable(),
    message:
      'is not known: get_media_buys fails (the answer does not have the media buy). Give start, end and',
  },
  terminal_differs: {
    test: async () => {
      const store = memoryStore();
      const registrations = createRegistrations({
        call: anyClient,
        store,
        baseUrl: 'https://buyer.example',
        secrets: [TOKEN],
      });
      const at = await testReceiver({ store, registrations });
      onTestFinished(() => at.receiver.stop());
      const done = payloads.tool('completed', { task_id: 'task-1' });
      await at.deliver(done);
      await at.receiver.observe({
        sender: AGENT,
        taskId: 'task-1',
        status: 'failed',
        askedAt: Date.now(),
        source: 'poll',
        observation: '1',
      });
      return at.alarms;
    },
    message: 'differs from the one that webhook reported first',
  },
  store_away: {
    test: outage(2, 10_000, {
      store: storeWith(() => ({ accept: () => Promise.reject(new Fault('store_unavailable', 'refused')) })),
    }),
    message: 'the store has not answered for 10 s: deliveries are answered 503, and sellers deliver again',
  },
  handlers_failing: {
    test: outage(20, 4_000, {
      handlers: {
        other: () => {
          throw new Error('the ad server is away');
        },
      },
    }),
    message: 'the last 20 runs of handlers failed, for 76 s',
  },
  sink_unavailable: {
    test: async () => {
      const alarms: Alarm[] = [];
      const told = new AbortController();
      let now = 0;
      const url = `http://127.0.0.1:${await freePort()}/events`;
      const forwarder = createForwarder(httpSink({ url, secrets: [SECRET], timeoutMs: 5_000 }), {
        logger: SILENT_LOGGER,
        concurrency: 16,
        onAlarm: (alarm) => {
          alarms.push(alarm);
          told.abort();
        },
        // Time passes while it waits.
        clock: { now: () => now, sleep: async (ms) => void (now += ms) },
      });
      const ctx = { deliveryId: idOf(1), run: 1, signal: told.signal, log: SILENT_LOGGER };
      await forwarder.handle(eventOf(completed()), ctx).catch(() => undefined);
      return alarms;
    },
    message: 'has taken no event for 10 s',
  },
  sodium_unusable: {
    test: async () => {
      const broken = vi.spyOn(sodiumNative, 'crypto_sign_verify_detached').mockReturnValue(true);
      onTestFinished(() => broken.mockRestore());
      const at = await testReceiver();
      await at.receiver.ready();
      return at.alarms;
    },
    message: 'sodium-native is installed and not used',
  },
  store_created: {
    test: async () => {
      const store = storeWith(() => ({ identity: async () => ({ id: 'a-new-one', isNew: true }) }));
      const at = await testReceiver({ store });
      await at.receiver.ready();
      return at.alarms;
    },
    message: 'was made just now and remembers no event',
  },
  config_rejected: {
    test: async () => {
      const at = await serveWorld();
      const process = serving(at.folder.file('webhooks.yaml', at.yaml()), at.folder.path);
      await ready(at);
      at.folder.file('webhooks.yaml', '');
      process.signals.emit('SIGHUP');
      await vi.waitUntil(() => process.alarms('config_rejected').length > 0, 30_000);
      return process
        .alarms('config_rejected')
        .map(({ msg: message }) => ({ code: 'config_rejected', message }));
    },
    message:
      'the configuration was not taken, and the former one holds: webhooks.yaml:1:1 publicUrl: is missing.',
  },
  durability_lowered: {
    test: async () => {
      const refuse = async (): Promise<never> => {
        throw new Fault('not_durable', 'its disk keeps nothing');
      };
      return after({ store: storeWith(() => ({ accept: refuse })) }, completed())();
    },
    message: 'its disk keeps nothing',
  },
  overloaded: {
    test: async () => {
      const at: TestReceiver = await testReceiver({
        maxBodyBytes: 4_096,
        advanced: { maxBufferedBytes: 8_192 },
      });
      const large = JSON.stringify(completed()).padEnd(4_096);
      for (let count = 0; count < 3; count += 1) {
        const signed = await at.sign(large);
        const opened = await at.receiver.open(signed.headers);
        if (opened.kind !== 'ticket') break;
        opened.add(signed.body);
        onTestFinished(() => opened.abort());
      }
      return at.alarms;
    },
    message: 'fill maxBufferedBytes (8192)',
  },
  misconfigured: {
    test: after({ durability: { require: 'disk' } }, completed()),
    message: 'lower durability.require',
  },
};
