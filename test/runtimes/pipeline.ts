import { AGENT, setup, type SetupOptions, URL_GIVEN } from './setup.ts';
import { type Check, type Checks, envelope, gate, type Library, newId, same, until } from './kit.ts';

const SECRET = 'a secret of at least thirty-two characters';
const SECONDS = (): number => Math.floor(Date.now() / 1000);

const accepted: Check = async (lib) => {
  const { handled, sign, post, deliver, receiver, outcomes } = await setup(lib);
  await receiver.ready();
  const event = envelope();
  const first = await sign(event);
  same(await post(first), '200');
  same(await deliver(event), '200', 'a duplicate:');
  same(await post(first), '401 webhook_signature_replayed', 'the same bytes:');
  same(await deliver({ ...event, result: { media_buy_id: 'another' } }), '200', 'a changed payload:');
  same(
    handled.map(({ idempotencyKey }) => idempotencyKey),
    [event.idempotency_key],
  );
  same(
    outcomes.map(({ kind }) => kind),
    ['accepted', 'duplicate', 'refused', 'duplicate'],
  );
  same(outcomes[0]?.deliveryId?.[14], '8', 'a UUID of version 8:');
  same(await deliver(envelope(), { alphabet: 'base64' }), '200', 'padded standard base64:');
  await receiver.stop();
  same(await deliver(), '503', 'after stop:');
};

const transports: Check = async (lib) => {
  const { handled, deliver, receiver } = await setup(lib);
  const data = { kind: 'data', data: { media_buy_id: 'mb_2' } };
  const status = { state: 'TASK_STATE_COMPLETED', timestamp: new Date().toISOString() };
  same(await deliver({ id: newId(), status, artifacts: [{ artifactId: 'a', parts: [data] }] }), '200');
  same(await deliver(envelope({ status: 'working', result: { percentage: 40, total_steps: 5 } })), '200');
  const report = { notification_type: 'scheduled', media_buy_deliveries: [{ media_buy_id: 'mb' }] };
  same(await deliver(envelope({ task_type: 'media_buy_delivery', result: report })), '200');
  same(
    handled.map(({ kind, transport }) => `${kind} ${transport}`),
    ['task agent', 'task tool', 'delivery-report tool'],
  );
  same(handled[0]?.data, data.data);
  same(await deliver(envelope({ idempotency_key: undefined })), '400 missing_idempotency_key');
  same(await deliver(envelope({ status: 'paused' })), '400 invalid_envelope_status');
  same(await deliver({}), '400 missing_idempotency_key');
  await receiver.stop();
};

const atTheDoor: Check = async (lib) => {
  const { handled, sign, post, receiver } = await setup(lib, {
    maxBodyBytes: 2000,
    advanced: { bodyDeadlineMs: 50 },
  });
  const delivery = await sign();
  const { headers, body } = delivery;
  same(await post(delivery, { headers: { ...headers, 'Content-Type': 'text/plain' } }), '415');
  same(await post(delivery, { headers: { ...headers, 'Content-Encoding': 'gzip' } }), '415');
  same(await post(delivery, { method: 'PUT' }), '405');
  same(await post({ headers, body: new Uint8Array(2001) }), '413');
  const chunks = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new Uint8Array(512)),
  });
  same(await post(delivery, { body: chunks, duplex: 'half' }), '413', 'while reading:');
  const stalled = new ReadableStream<Uint8Array>({
    pull: () => new Promise<void>(() => {}),
  });
  same(await post(delivery, { body: stalled, duplex: 'half' }), '503', 'a body that stalls:');
  const request = new Request(URL_GIVEN, { method: 'POST', headers, body: new Uint8Array(body) });
  await request.text();
  same((await lib.fetch.webhookHandler(receiver)(request)).status, 503, 'a body that was read before:');
  same(handled.length, 0);
  same(await post(delivery), '200', 'and then as it should be:');
  await receiver.stop();
};

const refusals: Check = async (lib) => {
  const { handled, sign, post, deliver, receiver } = await setup(lib);
  const foreign = await lib.sender.generateKey('ed25519', 'webhook-signing', { kid: 'seller-1' });
  const { headers, body } = await sign();
  const { Signature: _, ...unsigned } = headers as { Signature: string };
  const hmac = { ...headers, 'X-PROTO-Signature': `sha256=${'0'.repeat(64)}` };
  const refused = (code: string): string => `401 webhook_${code}`;
  same(await post({ headers: unsigned, body }), refused('signature_header_malformed'));
  same(await deliver(envelope(), { params: { nonce: undefined } }), refused('signature_params_incomplete'));
  same(await deliver(envelope(), { params: { tag: 'x' } }), refused('signature_tag_invalid'));
  same(await deliver(envelope(), { params: { alg: 'rsa' } }), refused('signature_alg_not_allowed'));
  same(
    await deliver(envelope(), { params: { expires: SECONDS() - 100, created: SECONDS() - 300 } }),
    refused('signature_window_invalid'),
  );
  same(await deliver(envelope(), { components: ['@method'] }), refused('signature_components_incomplete'));
  same(await deliver(envelope(), { params: { keyid: 'other' } }), refused('signature_key_unknown'));
  same(await deliver(envelope(), { key: foreign.privateJwk }), refused('signature_invalid'));
  same(await deliver(envelope(), { url: 'https://other.example/' }), refused('signature_invalid'));
  same(await post({ headers, body: new TextEncoder().encode('{}') }), refused('signature_digest_mismatch'));
  same(await post({ headers: hmac, body }), refused('mode_mismatch'));
  const twice = new TextEncoder().encode('{"a":1,"\\u0061":2}');
  const doubled = await sign(undefined, { body: twice, allowMalformed: true });
  same(await post(doubled), refused('body_malformed'));
  same(handled.length, 0);
  await receiver.stop();
};

/** V8 may give an escaped name as one that it parsed before in its place; the objects that had it must still be there. */
const escapedNames: Check = async (lib) => {
  const before = ['{"first":1,"statu\\\\":0}', '{"first":1,"second":{"first":1,"statu\\\\":0}}'].map(
    (text) => JSON.parse(text) as object,
  );
  const { post, handled, receiver, pair } = await setup(lib);
  const said = async (text: string): Promise<string> =>
    post(
      await lib.sender.signDelivery({
        url: URL_GIVEN,
        body: new TextEncoder().encode(text),
        key: pair.privateJwk,
        allowMalformed: true,
      }),
    );
  const nested = (inner: string): string =>
    JSON.stringify(envelope({ result: 0 })).replace('"result":0', `"result":{"first":1,"second":${inner}}`);
  same(await said(nested('{"first":1,"statu\\u0073":2}')), '200');
  same(handled[0]?.envelope['result'], { first: 1, second: { first: 1, status: 2 } });
  same(
    await said(nested('{"status":1,"statu\\u0073":2}')),
    '401 webhook_body_malformed',
    'a name twice, once escaped:',
  );
  const reading = lib.events.readEvent(new TextEncoder().encode('{"first":1,"statu\\u0073":"completed"}'));
  same(reading.ok ? 'read' : reading.code, 'missing_idempotency_key');
  same([before.length, handled.length], [2, 1]);
  await receiver.stop();
};

const badKeys: Check = async (lib) => {
  // The identity: some OpenSSL versions accept R = A, S = 0 under it for every message.
  const identity = `AQ${'A'.repeat(41)}`;
  const { pair } = await setup(lib);
  const jwk = { ...pair.publicJwk, x: identity };
  const { sign, post, deliver, receiver } = await setup(lib, { senders: [{ agentUrl: AGENT, pins: [jwk] }] });
  const { headers, body } = await sign();
  const forged = new Uint8Array(64);
  forged[0] = 1;
  const signature = btoa(String.fromCharCode(...forged));
  const refused = '401 webhook_signature_key_purpose_invalid';
  same(await post({ headers: { ...headers, Signature: `sig1=:${signature}:` }, body }), refused);
  same(await deliver(), refused);
  await receiver.stop();
};

const faults: Check = async (lib) => {
  let fails = true;
  const failing = await setup(lib, {
    handler: () => {
      if (fails) throw new Error('not now');
    },
  });
  const event = envelope();
  same(await failing.deliver(event), '503', 'the handler failed:');
  fails = false;
  same(await failing.deliver(event), '200', 'its retry:');
  same(failing.handled.length, 2);
  const codeOf = async (options: SetupOptions): Promise<string> => {
    const { deliver, outcomes } = await setup(lib, options);
    return `${await deliver()} ${outcomes[0]?.code}`;
  };
  const unreachable = { senders: [{ agentUrl: AGENT }], fetch: () => Promise.reject(new Error('down')) };
  same(await codeOf(unreachable), '503 keys_unavailable');
  const broken = lib.memory.memoryStore();
  same(
    await codeOf({ store: { ...broken, accept: () => Promise.reject(new Error('x')) } }),
    '503 misconfigured',
  );
  same(await codeOf({ senders: () => Promise.reject(new Error('no database')) }), '503 misconfigured');
  same(await codeOf({ durability: { require: 'disk' } }), '503 misconfigured', 'a store that is too weak:');
};

const legacy: Check = async (lib) => {
  const { handled, post, deliver, receiver } = await setup(lib, {
    senders: [{ agentUrl: AGENT, auth: { hmac: { secret: SECRET } } }],
  });
  const signed = (secret: string, body: object = envelope()) =>
    lib.sender.signHmac({ url: URL_GIVEN, body, secret });
  same(await post(signed(SECRET)), '200');
  same(await post(signed(`${SECRET}!`)), '401 webhook_signature_invalid');
  same(await deliver(), '401 webhook_mode_mismatch');
  await receiver.stop();
  const bearer = await setup(lib, { senders: [{ agentUrl: AGENT, auth: { bearer: { token: SECRET } } }] });
  const sent = (token: string) => lib.sender.bearerDelivery({ url: URL_GIVEN, body: envelope(), token });
  same(await bearer.post(sent(SECRET)), '200');
  same(await bearer.post(sent(`${SECRET}!`)), '401 invalid_token');
  same([handled.length, bearer.handled.length], [1, 1]);
};

const concurrent: Check = async (lib) => {
  const { handled, deliver, receiver } = await setup(lib);
  const event = envelope();
  const tasks = [...Array.from({ length: 10 }, () => event), ...Array.from({ length: 20 }, () => envelope())];
  const answers = await Promise.all(tasks.map((body) => deliver(body)));
  same(new Set(answers).size, 1);
  same([answers[0], handled.length], ['200', 21]);
  await receiver.stop();
  const { opened, open } = gate();
  const slow = await setup(lib, { advanced: { waitMs: 0 }, handler: () => opened });
  const first = slow.deliver(event);
  await until(() => slow.handled.length === 1);
  same(await slow.deliver(event), '503', 'its first copy is in flight:');
  open();
  same([await first, await slow.deliver(event), slow.handled.length], ['200', '200', 1]);
};

const editions: Check = async (lib) => {
  const { deliver, handled } = await setup(lib, { edition: '3.2' });
  const event = envelope();
  same([await deliver(event), await deliver({ ...event, message: 'x' })], ['200', '409 payload_changed']);
  same(handled.length, 1);
};

const json = (value: unknown): Response => new Response(JSON.stringify(value));

async function discover(lib: Library, documents: Record<string, unknown>): Promise<string[]> {
  const { pair, ...seller } = await setup(lib);
  const published: Record<string, unknown> = { ...documents, '/jwks.json': { keys: [pair.publicJwk] } };
  const receiver = lib.core.createReceiver({
    publicUrl: URL_GIVEN,
    senders: [{ agentUrl: AGENT }],
    store: lib.memory.memoryStore(),
    durability: { require: 'process' },
    handlers: { other: () => {} },
    logger: { debug() {}, info() {}, warn() {}, error() {} },
    fetch: async (url) => {
      const document = published[new URL(url).pathname];
      return document === undefined ? new Response('', { status: 404 }) : json(document);
    },
  });
  const door = lib.fetch.webhookHandler(receiver);
  const answer = async (keyid: string): Promise<string> => {
    const { headers, body } = await seller.sign(envelope(), { params: { keyid } });
    const request = new Request(URL_GIVEN, { method: 'POST', headers, body: new Uint8Array(body) });
    const { status, headers: given } = await door(request);
    return `${status} ${given.get('www-authenticate') ?? ''}`.trim();
  };
  const answers = [await answer('seller-1'), await answer('unknown')];
  await receiver.stop();
  return answers;
}

const discovered: Check = async (lib) => {
  const brand = { agents: [{ url: AGENT, jwks_uri: 'https://seller.example/jwks.json' }] };
  same(await discover(lib, { '/.well-known/brand.json': brand }), [
    '200',
    '401 Signature error="webhook_signature_key_unknown"',
  ]);
  same(await discover(lib, {}), ['503', '503'], 'no brand.json:');
};

const overTheNetwork: Check = async (lib, { seller }) => {
  if (!seller) throw new Error('the runner gave no seller');
  const { deliver, handled, receiver } = await setup(lib, {
    senders: [{ agentUrl: seller.agentUrl }],
    allowLoopback: true,
  });
  await receiver.ready();
  same(await deliver(envelope(), { key: seller.privateJwk }), '200');
  same(
    await deliver(envelope(), { key: seller.privateJwk, params: { keyid: 'unknown' } }),
    '401 webhook_signature_key_unknown',
  );
  same(handled.length, 1);
  await receiver.stop();
};

const redirected: Check = async (lib, { redirecting }) => {
  for (const transport of [undefined, fetch] as const) {
    const registry = lib.registry.createRegistry({
      baseUrl: redirecting,
      allowLoopback: true,
      token: 'sk_1',
      ...(transport && { fetch: (url, init) => transport(url, init) }),
    });
    const code = await registry.diagnostics(AGENT).then(
      () => 'answered',
      (error: unknown) => (error instanceof lib.registry.RegistryError ? error.code : String(error)),
    );
    same(code, 'invalid_answer', transport ? 'over fetch:' : 'by default:');
  }
};

const configuration: Check = async (lib) => {
  const attempt = (options: object): string => {
    try {
      lib.core.createReceiver(options as never);
      return 'made';
    } catch (error) {
      return error instanceof lib.core.ConfigError ? error.name : String(error);
    }
  };
  const rest = { publicUrl: URL_GIVEN, store: lib.memory.memoryStore(), handlers: { other: () => {} } };
  same(attempt({}), 'ConfigError');
  same(attempt({ ...rest, senders: [{ agentUrl: AGENT, pins: [{}] }] }), 'ConfigError');
  same(
    attempt({ ...rest, senders: [{ agentUrl: AGENT, auth: { hmac: { secret: 'short' } } }] }),
    'ConfigError',
  );
  same(attempt({ ...rest, senders: [{ agentUrl: AGENT }] }), 'made');
};

export const PIPELINE_CHECKS: Checks = {
  'mistakes in the options are thrown at construction': configuration,
  'a registry that redirects is not followed': redirected,
  'accepted once; duplicate, replay, changed payload, shutdown': accepted,
  'both transports, progress, reports; envelope codes': transports,
  'the door: 405, 413, 415; 503 for a body that stalls or was read before': atTheDoor,
  'every kind of 401': refusals,
  'escaped member names are read as they are, whatever was parsed before': escapedNames,
  'an identity key is refused, whatever is signed': badKeys,
  'faults on our side are 503, and the retry is taken': faults,
  'HMAC and bearer': legacy,
  'deliveries at once: one handler an event': concurrent,
  'edition 3.2 answers 409': editions,
  'keys are discovered by the transport given': discovered,
  "keys are discovered by the runtime's own connections": overTheNetwork,
};
