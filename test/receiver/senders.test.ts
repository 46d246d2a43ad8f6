import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, vi } from 'vitest';
import {
  createReceiver,
  Fault,
  type Handled,
  type Outcome,
  PermanentError,
  type Sender,
} from '../../src/index.ts';
import { channel } from '../inbox/setup.ts';
import {
  bearerDelivery,
  generateKey,
  type KeyPair,
  type PayloadInput,
  signDelivery,
  signHmac,
} from '../../src/sender/sign.ts';
import { createRegistrations } from '../../src/registrations/index.ts';
import { createFakeSeller } from '../../src/testing/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createMemoryState } from '../../src/stores/for-tests.ts';
import {
  AGENT,
  testReceiver,
  type TestReceiverOptions,
  payloads,
  said,
  sellerKey,
  URL_GIVEN,
} from './setup.ts';
import { SILENT_LOGGER } from '../support/silent-logger.ts';

const SECRET = 'a-shared-secret-of-32-characters';
describe('senders by path (admission.md §2.10)', () => {
  it('each path is its sellers’ alone', async () => {
    const pins = [(await sellerKey()).publicJwk];
    const { sign, receiver } = await testReceiver({
      publicUrl: 'https://buyer.example/webhooks/*',
      senders: {
        '/webhooks/a': [{ agentUrl: AGENT, pins }],
        '/webhooks/b': [{ agentUrl: 'https://other.example/mcp', auth: { bearer: { token: SECRET } } }],
      },
    });
    const sent = async (path: string): Promise<string> => {
      const url = `https://buyer.example${path}`;
      const { body, headers } = await sign(payloads.tool('completed'), { url });
      return said(await receiver.verifyAndDispatch(body, headers, { url: path }));
    };
    expect(await sent('/webhooks/a')).toBe('accepted 200');
    expect(await sent('/webhooks/a?from=1')).toBe('accepted 200');
    expect(await sent('/webhooks/b')).toBe('refused webhook_mode_mismatch 401');
    expect(await sent('/webhooks/c')).toBe('refused webhook_signature_key_unknown 401');
    expect(await sent('/webhooks/toString')).toBe('refused webhook_signature_key_unknown 401');
  });

  it('a function that gives somebody where registrations are is heard, and 503', async () => {
    const store = memoryStore();
    const registrations = createRegistrations({
      store,
      baseUrl: 'https://buyer.example/webhooks/r',
      secrets: [SECRET],
    });
    const pins = [(await sellerKey()).publicJwk];
    const { sign, receiver, alarms } = await testReceiver({
      store,
      registrations,
      publicUrl: 'https://buyer.example/webhooks/*',
      senders: () => [{ agentUrl: AGENT, pins }],
    });
    const sent = async (path: string): Promise<string> => {
      const url = `https://buyer.example${path}`;
      const { body, headers } = await sign(payloads.tool('completed'), { url });
      return said(await receiver.verifyAndDispatch(body, headers, { url: path }));
    };
    expect(await sent('/webhooks/own')).toBe('accepted 200');
    expect(await sent('/webhooks/r/own')).toBe('unavailable misconfigured 503');
    expect(alarms.at(-1)).toMatchObject({
      code: 'senders_failed',
      message: expect.stringContaining('the baseUrl of registrations'),
    });
  });
});

describe('by which URL a delivery came (admission.md §2.15)', () => {
  const PREFIX = 'https://buyer.example/webhooks/*';
  const at = (path: string): string => `https://buyer.example${path}`;

  /** Under a prefix that takes any path; what handler and hooks were told. */
  async function told(options: TestReceiverOptions = {}) {
    const handled: Handled[] = [];
    const done = channel<Handled>();
    const made = await testReceiver({
      publicUrl: PREFIX,
      onHandled: (one) => {
        handled.push(one);
        done.push(one);
      },
      ...options,
    });
    const sent = async (payload: PayloadInput, path: string, to = made.receiver): Promise<Outcome> => {
      const { body, headers } = await made.sign(payload, { url: at(path) });
      return to.verifyAndDispatch(body, headers, { url: path });
    };
    return { ...made, handled, done, sent };
  }

  it('stands in the event, in ctx, in the outcome and in onHandled', async () => {
    const { sent, seen, handled } = await told();
    const outcome = await sent(payloads.tool('completed'), '/webhooks/a?from=1');
    const url = at('/webhooks/a?from=1');
    expect(outcome).toMatchObject({ kind: 'accepted', url, event: { url } });
    expect(seen).toMatchObject([{ event: { url }, ctx: { url } }]);
    expect(handled).toMatchObject([{ state: 'applied', url }]);
  });

  it('is publicUrl where that is one URL', async () => {
    const { deliver, seen } = await testReceiver();
    expect(await deliver(payloads.tool('completed'))).toMatchObject({ url: URL_GIVEN });
    expect(seen).toMatchObject([{ event: { url: URL_GIVEN }, ctx: { url: URL_GIVEN } }]);
  });

  it('stands in refusals and faults once it is known who may call, and not before', async () => {
    const pins = [(await sellerKey()).publicJwk];
    const { sent, receiver } = await told({
      senders: { '/webhooks/a': [{ agentUrl: AGENT, pins }] },
      handler: () => Promise.reject(new Error('not now')),
    });
    const fault = await sent(payloads.tool('completed'), '/webhooks/a');
    expect(fault).toMatchObject({ kind: 'unavailable', code: 'handler_failed', url: at('/webhooks/a') });
    const json = { 'content-type': 'application/json' };
    const unsigned = await receiver.verifyAndDispatch(new Uint8Array(2), json, { url: '/webhooks/a' });
    expect(unsigned).toMatchObject({ kind: 'refused', url: at('/webhooks/a') });
    const nobody = await receiver.verifyAndDispatch(new Uint8Array(2), json, { url: '/webhooks/b' });
    expect(nobody).toMatchObject({ kind: 'refused' });
    expect(nobody).not.toHaveProperty('url');
  });

  it('is kept for a worker, also one whose own publicUrl is another', async () => {
    const state = createMemoryState();
    const door = await told({ state, mode: 'inbox' });
    const url = at('/webhooks/a?from=1');
    const payload = payloads.tool('completed');
    await door.sent(payload, '/webhooks/a?from=1');
    await door.sent(payload, '/webhooks/b');
    const listed = await door.receiver.inbox.list({ state: 'queued' });
    expect(listed.records).toMatchObject([{ url }]);
    const worker = await told({ state, mode: 'inbox', publicUrl: 'https://other.example/hook' });
    await worker.receiver.start();
    expect(await worker.done.next()).toMatchObject({ state: 'applied', url });
    expect(worker.seen).toMatchObject([{ event: { url }, ctx: { url } }]);
    await worker.receiver.stop();
    const record = await door.receiver.inbox.inspect(AGENT, payload.idempotency_key);
    expect(record).toMatchObject({ state: 'applied' });
    expect(record).not.toHaveProperty('url');
  });

  it.each(['inline', 'inbox'] as const)('mode %s: a redrive has it', async (mode) => {
    let isDead = true;
    const { sent, seen, receiver, done } = await told({
      mode,
      retry: { attempts: 1 },
      handler: () => {
        if (isDead) throw new PermanentError('not this one');
      },
    });
    const payload = payloads.tool('completed');
    const url = at('/webhooks/a');
    await sent(payload, '/webhooks/a');
    if (mode === 'inbox') await receiver.start();
    expect(await done.next()).toMatchObject({ state: 'dead', url });
    isDead = false;
    await receiver.inbox.redrive(AGENT, payload.idempotency_key);
    expect(await done.next()).toMatchObject({ state: 'applied', url });
    expect(seen.map(({ event }) => event.url)).toEqual([url, url]);
    await receiver.stop();
  });

  it.each(['inline', 'inbox'] as const)('mode %s: one that is too long is not kept', async (mode) => {
    const { sent, seen, receiver, done } = await told({ mode });
    const kept = `/webhooks/${'a'.repeat(1_024 - at('/webhooks/').length)}`;
    await sent(payloads.tool('completed'), kept);
    await sent(payloads.tool('failed'), `${kept}a`);
    if (mode === 'inbox') await receiver.start();
    const urls = [(await done.next()).url, (await done.next()).url];
    expect(new Set(urls)).toEqual(new Set([at(kept), undefined]));
    for (const { event, ctx } of seen) expect(ctx.url).toBe(event.url);
    await receiver.stop();
  });
});

describe('legacy authentication, by registration only (verification.md §6.6)', () => {
  it('HMAC: accepted, deprecated once per sender, tampering refused', async () => {
    const { receiver, alarms } = await testReceiver({
      senders: [{ agentUrl: AGENT, auth: { hmac: { secret: SECRET } } }],
    });
    const send = async (secret: string) => {
      const made = signHmac({ url: URL_GIVEN, body: payloads.tool('completed'), secret });
      return receiver.verifyAndDispatch(made.body, made.headers);
    };
    expect(said(await send(SECRET))).toBe('accepted 200');
    expect(said(await send(SECRET))).toBe('accepted 200');
    expect(said(await send('another-secret-of-32-characters!!'))).toBe(
      'refused webhook_signature_invalid 401',
    );
    expect(alarms.filter(({ code }) => code === 'legacy_auth_used')).toHaveLength(1);
  });

  it('bearer: its own challenge, so that sellers retry', async () => {
    const { receiver } = await testReceiver({
      senders: [{ agentUrl: AGENT, auth: { bearer: { token: SECRET } } }],
    });
    const good = bearerDelivery({ url: URL_GIVEN, body: payloads.tool('completed'), token: SECRET });
    expect(said(await receiver.verifyAndDispatch(good.body, good.headers))).toBe('accepted 200');
    const bad = bearerDelivery({ url: URL_GIVEN, body: payloads.tool('completed'), token: `${SECRET}x` });
    const outcome = await receiver.verifyAndDispatch(bad.body, bad.headers);
    expect(said(outcome)).toBe('refused webhook_signature_invalid 401');
    expect(outcome.response.headers).toEqual({ 'WWW-Authenticate': 'Bearer error="invalid_token"' });
  });

  it('the scheme of another registration is webhook_mode_mismatch, never a second attempt', async () => {
    const signature = await testReceiver();
    const hmac = await testReceiver({ senders: [{ agentUrl: AGENT, auth: { hmac: { secret: SECRET } } }] });
    const signed = await signature.sign(payloads.tool('completed'));
    expect(said(await signature.send(signed, hmac.receiver))).toBe('refused webhook_mode_mismatch 401');
    const made = signHmac({ url: URL_GIVEN, body: payloads.tool('completed'), secret: SECRET });
    expect(said(await signature.receiver.verifyAndDispatch(made.body, made.headers))).toBe(
      'refused webhook_mode_mismatch 401',
    );
  });

  it('the same event under HMAC and then under a signature is one event', async () => {
    const state = createMemoryState();
    const hmac = await testReceiver({
      state,
      senders: [{ agentUrl: AGENT, auth: { hmac: { secret: SECRET } } }],
    });
    const signature = await testReceiver({ state });
    const payload = payloads.tool('completed');
    const made = signHmac({ url: URL_GIVEN, body: payload, secret: SECRET });
    expect(said(await hmac.receiver.verifyAndDispatch(made.body, made.headers))).toBe('accepted 200');
    expect(said(await signature.deliver(payload))).toBe('duplicate 200');
    expect(signature.seen).toEqual([]);
  });

  it('an unreadable body of an HMAC sender is refused without a nonce to use up', async () => {
    const { receiver } = await testReceiver({
      senders: [{ agentUrl: AGENT, auth: { hmac: { secret: SECRET } } }],
    });
    const made = signHmac({ url: URL_GIVEN, body: '{"a":1,"a":2}', secret: SECRET, allowMalformed: true });
    expect(said(await receiver.verifyAndDispatch(made.body, made.headers))).toBe(
      'refused webhook_body_malformed 401',
    );
  });
});

describe('several senders on one endpoint', () => {
  it('a kid that two publish: each event belongs to the one whose key verifies', async () => {
    const shared = () => generateKey('ed25519', 'webhook-signing', { kid: 'shared' });
    const [one, two, thief] = await Promise.all([shared(), shared(), shared()]);
    const senders: Sender[] = [
      { agentUrl: 'https://one.example/mcp', pins: [one.publicJwk] },
      { agentUrl: 'https://two.example/mcp', pins: [two.publicJwk] },
    ];
    const { deliver } = await testReceiver({ senders });
    const payload = payloads.tool('completed');
    expect(await deliver(payload, { key: two.privateJwk })).toMatchObject({
      kind: 'accepted',
      sender: 'https://two.example/mcp',
    });
    // The same key of another sender: keyspaces are independent (contract.md §9.1).
    expect(await deliver(payload, { key: one.privateJwk })).toMatchObject({
      kind: 'accepted',
      sender: 'https://one.example/mcp',
    });
    expect(said(await deliver(payload, { key: thief.privateJwk }))).toBe(
      'refused webhook_signature_invalid 401',
    );
  });

  it('senders by URL: a path per seller, an unknown path is 401 key_unknown', async () => {
    const key = await sellerKey();
    const receiver = createReceiver({
      publicUrl: 'https://buyer.example/webhooks/*',
      senders: (url) =>
        url.pathname === '/webhooks/one' ? [{ agentUrl: AGENT, pins: [key.publicJwk] }] : [],
      store: memoryStore(),
      durability: { require: 'process' },
      logger: SILENT_LOGGER,
      handlers: { other: () => {} },
    });
    const call = async (path: string, signedPath = path) => {
      const made = await signDelivery({
        url: `https://buyer.example${signedPath}`,
        body: payloads.tool('completed'),
        key: key.privateJwk,
      });
      return said(await receiver.verifyAndDispatch(made.body, made.headers, { url: path }));
    };
    expect(await call('/webhooks/one')).toBe('accepted 200');
    expect(await call('/webhooks/one?a=1&b=%41')).toBe('accepted 200');
    // The absolute form (RFC 9112 §3.2.2).
    expect(await call('https://buyer.example/webhooks/one?c=1', '/webhooks/one?c=1')).toBe('accepted 200');
    expect(await call('/webhooks/two')).toBe('refused webhook_signature_key_unknown 401');
    expect(await call('/webhooks/one?b=2', '/webhooks/one?b=1')).toBe(
      'refused webhook_signature_invalid 401',
    );
    // A router of ours cut the path: our fault, so the seller is asked to retry.
    expect(await call('/one', '/webhooks/one')).toBe('unavailable misconfigured 503');
    await expect(receiver.verifyAndDispatch(new Uint8Array(2), {})).rejects.toThrow(
      /\{ url: request\.url \}/,
    );
  });

  describe('of more than 32 that a senders function gives (verification.md §5.9)', () => {
    const crowd = async (length: number) => {
      const keys = await Promise.all(
        Array.from({ length }, (_, i) => generateKey('ed25519', 'webhook-signing', { kid: `k${i}` })),
      );
      const senders = keys.map(({ publicJwk }, i) => ({
        agentUrl: `https://s${i}.example/mcp`,
        pins: [publicJwk],
      }));
      const made = await testReceiver({ senders: () => senders });
      const send = async (key: KeyPair | undefined, changes: object = {}) =>
        said(
          await made.deliver(payloads.tool('completed'), { ...(key && { key: key.privateJwk }), ...changes }),
        );
      return { ...made, keys, send, senders };
    };

    it('the first 32 are considered, with an alarm, and what none of them explains is 503, never 401', async () => {
      const { keys, send, alarms } = await crowd(34);
      expect(await send(keys[0])).toBe('accepted 200');
      expect(await send(keys[31])).toBe('accepted 200');
      expect(await send(keys[32])).toBe('unavailable misconfigured 503');
      const forged = await generateKey('ed25519', 'webhook-signing', { kid: 'k0' });
      expect(await send(forged)).toBe('unavailable misconfigured 503');
      expect(alarms).toMatchObject([
        { code: 'misconfigured', message: expect.stringContaining('its own path'), url: URL_GIVEN },
      ]);
    });

    it('a key id that one of them has revoked may be another’s', async () => {
      const made = await crowd(33);
      const [first, ...others] = made.senders;
      const revoked = { ...first, revocation: { revokedKids: ['k0'] } };
      const { deliver } = await testReceiver({ senders: () => [revoked, ...others] as Sender[] });
      const key = made.keys[0]?.privateJwk ?? {};
      expect(said(await deliver(payloads.tool('completed'), { key }))).toBe('unavailable misconfigured 503');
    });

    it('a delivery of one of them is refused as usual', async () => {
      const { keys, sign, send, receiver } = await crowd(33);
      const { headers } = await sign(payloads.tool('completed'), { key: keys[0]?.privateJwk ?? {} });
      expect(said(await receiver.verifyAndDispatch(new Uint8Array(2), headers))).toBe(
        'refused webhook_signature_digest_mismatch 401',
      );
      expect(await send(keys[32], { now: () => Date.now() - 3_600_000 })).toBe(
        'refused webhook_signature_window_invalid 401',
      );
    });

    it('applies to legacy senders too', async () => {
      const secret = (i: number) => `a-shared-secret-of-32-characters-${i}`;
      const senders = Array.from({ length: 33 }, (_, i) => ({
        agentUrl: `https://s${i}.example/mcp`,
        auth: { hmac: { secret: secret(i) } },
      }));
      const { receiver } = await testReceiver({ senders: () => senders });
      const send = async (i: number) => {
        const made = signHmac({ url: URL_GIVEN, body: payloads.tool('completed'), secret: secret(i) });
        return said(await receiver.verifyAndDispatch(made.body, made.headers));
      };
      expect(await send(31)).toBe('accepted 200');
      expect(await send(32)).toBe('unavailable misconfigured 503');
    });

    it('with 32 senders an unknown key is 401', async () => {
      const { send, alarms } = await crowd(32);
      expect(await send(undefined)).toBe('refused webhook_signature_key_unknown 401');
      expect(alarms.map(({ code }) => code)).not.toContain('misconfigured');
    });
  });

  it('a senders function that never settles is 503 after a bounded wait', async () => {
    const { receiver, deliver } = await testReceiver({ senders: () => new Promise(() => {}) });
    // What is waited for below is the function's own time limit, and no timer of the start.
    await receiver.ready();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const outcome = deliver(payloads.tool('completed'));
      while (vi.getTimerCount() === 0) await new Promise((resolve) => setImmediate(resolve));
      await vi.advanceTimersByTimeAsync(5_000);
      expect(said(await outcome)).toBe('unavailable misconfigured 503');
    } finally {
      vi.useRealTimers();
    }
  });

  it('a senders function that fails is 503 and an alarm', async () => {
    const { deliver, alarms } = await testReceiver({
      senders: () => {
        throw new Error('database down');
      },
    });
    expect(said(await deliver(payloads.tool('completed')))).toBe('unavailable misconfigured 503');
    expect(alarms.map(({ code }) => code)).toEqual(['senders_failed']);
  });

  it('a senders function whose store is away is 503 store_unavailable: nothing is misconfigured', async () => {
    const { deliver, alarms } = await testReceiver({
      senders: () => Promise.reject(new Fault('store_unavailable', 'Postgres: connection refused')),
    });
    const outcome = await deliver(payloads.tool('completed'));
    expect(said(outcome)).toBe('unavailable store_unavailable 503');
    expect(outcome).toMatchObject({ detail: 'Postgres: connection refused' });
    expect(alarms).toEqual([]);
  });

  it('a senders function that returns no array is an alarm that says so', async () => {
    const { deliver, alarms } = await testReceiver({ senders: () => ({ agentUrl: AGENT }) as never });
    expect(said(await deliver(payloads.tool('completed')))).toBe('unavailable misconfigured 503');
    expect(alarms).toMatchObject([
      { code: 'senders_failed', message: expect.stringContaining('must return an array of senders') },
    ]);
  });
});

describe('dialect: another protocol name changes every identifier', () => {
  it('tag, purpose and headers', async () => {
    const key = await generateKey('ecdsa-p256-sha256', 'webhook-signing', { protocol: 'adx', kid: 'k' });
    const options = { protocol: 'adx', senders: [{ agentUrl: AGENT, pins: [key.publicJwk] }] };
    const { deliver } = await testReceiver(options);
    const payload = payloads.tool('completed');
    expect(said(await deliver(payload, { key: key.privateJwk, protocol: 'adx' }))).toBe('accepted 200');
    expect(said(await deliver(payload, { key: key.privateJwk }))).toBe(
      'refused webhook_signature_tag_invalid 401',
    );
    const proto = await testReceiver({ senders: options.senders });
    expect(said(await proto.deliver(payload, { key: key.privateJwk }))).toBe(
      'refused webhook_signature_key_purpose_invalid 401',
    );
  });
});

describe('editions decide which key purposes sign webhooks', () => {
  it.each([
    ['3.0', 'refused webhook_signature_key_purpose_invalid 401'],
    ['3.1', 'accepted 200'],
    ['3.2', 'accepted 200'],
    ['3.3', 'accepted 200'],
  ] as const)('%s and request-signing: %s', async (edition, expected) => {
    const key = await generateKey('ed25519', 'request-signing', { kid: 'k' });
    const { deliver, alarms } = await testReceiver({
      edition,
      senders: [{ agentUrl: AGENT, pins: [key.publicJwk] }],
    });
    expect(said(await deliver(payloads.tool('completed'), { key: key.privateJwk }))).toBe(expected);
    // The owner is told which option to set, once a minute: anybody can name that key.
    await deliver(payloads.tool('completed'), { key: key.privateJwk });
    const told = alarms.filter(({ code }) => code === 'key_purpose_refused').map(({ message }) => message);
    expect(told).toEqual(edition === '3.0' ? [expect.stringContaining("edition: '3.1'")] : []);
  });
});

describe('without an edition what any edition accepts is accepted (verification.md §2.17)', () => {
  it('a key for requests, under AdCP’s name; the contract has it not', async () => {
    const key = await generateKey('ed25519', 'request-signing', { kid: 'k' });
    const { deliver, alarms } = await testReceiver({ senders: [{ agentUrl: AGENT, pins: [key.publicJwk] }] });
    const options = { key: key.privateJwk };
    expect(said(await deliver(payloads.tool('completed'), { ...options, protocol: 'adcp' }))).toBe(
      'accepted 200',
    );
    expect(alarms).toEqual([]);
    expect(said(await deliver(payloads.tool('completed'), options))).toBe(
      'refused webhook_signature_key_purpose_invalid 401',
    );
    expect(alarms).toMatchObject([
      {
        code: 'key_purpose_refused',
        message: expect.stringContaining('under the name proto signs no') as unknown,
      },
    ]);
  });

  it.each(['response-signing', 'governance-signing', '', 'WEBHOOK-SIGNING'])(
    'no key for %j, under either name',
    async (purpose) => {
      const { publicJwk, privateJwk } = await generateKey('ed25519');
      const own = { ...publicJwk, proto_use: purpose, adcp_use: purpose };
      const { deliver } = await testReceiver({ senders: [{ agentUrl: AGENT, pins: [own] }] });
      for (const protocol of ['proto', 'adcp'])
        expect(said(await deliver(payloads.tool('completed'), { key: privateJwk, protocol }))).toBe(
          'refused webhook_signature_key_purpose_invalid 401',
        );
    },
  );

  it('answers stay those of 3.0: a changed payload is 200, and 409 from 3.2 on', async () => {
    for (const [edition, status] of [
      [undefined, 200],
      ['3.3', 409],
    ] as const) {
      const { deliver } = await testReceiver({ ...(edition && { edition }) });
      const idempotency_key = `changed-payload-${String(edition)}`;
      await deliver(payloads.tool('completed', { idempotency_key, message: 'one' }));
      const second = await deliver(payloads.tool('completed', { idempotency_key, message: 'two' }));
      expect(second.response.status).toBe(status);
    }
  });
});

describe('keys through brand.json (verification.md §5)', () => {
  it('are found, and a keyid that a fresh document lacks is 401', async () => {
    await using seller = await createFakeSeller({ url: URL_GIVEN });
    const { receiver } = await testReceiver({ senders: [seller.sender], allowLoopback: true });
    const unknown = await seller.sign(payloads.tool('completed'), { mistake: 'unknown-key' });
    expect(said(await receiver.verifyAndDispatch(unknown.body, unknown.headers))).toBe(
      'refused webhook_signature_key_unknown 401',
    );
    for (const key of ['ed25519', 'p256'] as const) {
      const made = await seller.sign(payloads.tool('completed'), { key });
      expect(said(await receiver.verifyAndDispatch(made.body, made.headers)), key).toBe('accepted 200');
    }
    expect([seller.brandJsonUrl, seller.jwksUrl].map((url) => seller.fetches(new URL(url).pathname))).toEqual(
      [1, 1],
    );
    // A refetch, where the first answer rested on what was fetched at the start.
    await receiver.verifyAndDispatch(unknown.body, unknown.headers);
    // Within the cooldown no document can be decisive: 503, and the seller comes back.
    expect(said(await receiver.verifyAndDispatch(unknown.body, unknown.headers))).toBe(
      'unavailable keys_unavailable 503',
    );
  });

  it('an outage with a cold cache is 503, and accepted once it is over', async () => {
    await using seller = await createFakeSeller({ url: URL_GIVEN });
    let now = Date.now();
    const { receiver } = await testReceiver({
      senders: [seller.sender],
      allowLoopback: true,
      now: () => now,
    });
    const brand = seller.documents.get('/.well-known/brand.json');
    seller.documents.delete('/.well-known/brand.json');
    const made = await seller.sign(payloads.tool('completed'));
    expect(said(await receiver.verifyAndDispatch(made.body, made.headers))).toBe(
      'unavailable keys_unavailable 503',
    );
    seller.documents.set('/.well-known/brand.json', brand);
    now += 61_000;
    expect(said(await receiver.verifyAndDispatch(made.body, made.headers))).toBe('accepted 200');
  });

  it('a revoked kid is 401', async () => {
    const key = await sellerKey();
    const { deliver } = await testReceiver({
      senders: [{ agentUrl: AGENT, pins: [key.publicJwk], revocation: { revokedKids: ['seller-1'] } }],
    });
    expect(said(await deliver(payloads.tool('completed')))).toBe('refused webhook_signature_key_revoked 401');
  });

  it('an unavailable revocation list is 503 with its code', async () => {
    const server = createServer((_, res) => res.writeHead(500).end());
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    const { port } = server.address() as AddressInfo;
    const key = await sellerKey();
    const { deliver } = await testReceiver({
      allowLoopback: true,
      senders: [
        { agentUrl: AGENT, pins: [key.publicJwk], revocation: { url: `http://127.0.0.1:${port}/list.json` } },
      ],
    });
    const outcome = await deliver(payloads.tool('completed'));
    expect(said(outcome)).toBe('unavailable webhook_signature_revocation_stale 503');
    expect(outcome.response.headers).toEqual({ 'Retry-After': '5' });
    server.close();
  });
});

describe('Host (verification.md §4.11 to §4.13)', () => {
  const withHost = async (host: string, options: Parameters<typeof testReceiver>[0] = {}, sign = {}) => {
    const { receiver, sign: make, alarms } = await testReceiver(options);
    const made = await make(payloads.tool('completed'), sign);
    const outcome = await receiver.verifyAndDispatch(made.body, { ...made.headers, Host: host });
    return { said: said(outcome), alarms: alarms.map(({ code }) => code) };
  };

  it('equal after canonicalization: accepted', async () => {
    expect((await withHost('BUYER.example:443')).said).toBe('accepted 200');
  });

  it('rewritten by our proxy: 503 and an alarm that names hostCheck', async () => {
    expect(await withHost('internal:8080')).toEqual({
      said: 'unavailable webhook_target_uri_malformed 503',
      alarms: ['host_rewritten'],
    });
    expect((await withHost('internal:8080', { hostCheck: 'off' })).said).toBe('accepted 200');
  });

  it('another host and a signature for another URL: 401', async () => {
    expect((await withHost('evil.example', {}, { url: 'https://evil.example/webhooks/proto' })).said).toBe(
      'refused webhook_target_uri_malformed 401',
    );
  });
});
