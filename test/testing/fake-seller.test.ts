import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { webhookHandler } from '../../src/adapters/node.ts';
import { type Alarm, createReceiver, type Receiver, type ReceiverOptions } from '../../src/index.ts';
import type { Event } from '../../src/events/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import {
  createFakeSeller,
  type FakeSeller,
  type FakeSellerOptions,
  MISTAKES,
} from '../../src/testing/index.ts';
import { listening, type Listening } from '../adapters/raw-client.ts';
import { SILENT_LOGGER } from '../support/silent-logger.ts';

const SECRET = 'a shared secret of 32 characters';
interface Pair extends AsyncDisposable {
  readonly seller: FakeSeller;
  readonly receiver: Receiver;
  readonly server: Listening;
  readonly handled: readonly Event[];
  readonly alarms: readonly Alarm[];
}

type More = Partial<Pick<ReceiverOptions, 'handlers' | 'protocol' | 'senders' | 'onChallenge'>>;

/** A seller and a receiver with real HTTP between them. */
async function pair(options: FakeSellerOptions = {}, more: More = {}): Promise<Pair> {
  const handled: Event[] = [];
  const alarms: Alarm[] = [];
  const late: { receiver?: Receiver } = {};
  const server = await listening((req, res) => late.receiver && webhookHandler(late.receiver)(req, res));
  const url = `${server.url}/hook?a=1`;
  const seller = await createFakeSeller({ url, retry: { sleep: async () => undefined }, ...options });
  const receiver = createReceiver({
    publicUrl: url,
    senders: [seller.sender],
    store: memoryStore(),
    allowLoopback: true,
    logger: SILENT_LOGGER,
    onAlarm: (alarm) => alarms.push(alarm),
    handlers: { other: (event) => void handled.push(event) },
    ...more,
  });
  late.receiver = receiver;
  return {
    seller,
    receiver,
    server,
    handled,
    alarms,
    [Symbol.asyncDispose]: async () => {
      await seller.close();
      await server[Symbol.asyncDispose]();
      await receiver.stop();
    },
  };
}

describe('deliveries that a receiver accepts', () => {
  test.each(['ed25519', 'p256'] as const)('signed with %s', async (key) => {
    await using both = await pair();
    const { seller, handled } = both;
    const result = await seller.deliver(seller.payloads.tool('completed'), { key });
    expect(result).toMatchObject({ delivered: true, last: { attempt: 1, status: 200, outcome: 'success' } });
    expect(handled).toMatchObject([{ kind: 'task', status: 'completed', sender: seller.agentUrl }]);
  });

  test('of every kind', async () => {
    await using both = await pair();
    const { seller, handled } = both;
    const { payloads } = seller;
    for (const payload of [
      payloads.tool('working'),
      payloads.agent('input-required'),
      payloads.report('final'),
      payloads.family('impairment'),
    ]) {
      expect((await seller.deliver(payload)).delivered).toBe(true);
    }
    expect(handled.map(({ kind, transport }) => [kind, transport])).toEqual([
      ['task', 'tool'],
      ['task', 'agent'],
      ['delivery-report', 'tool'],
      ['other', 'tool'],
    ]);
  });

  test('in standard base64, padded', async () => {
    await using both = await pair();
    const { seller } = both;
    const result = await seller.deliver(seller.payloads.tool('completed'), { sign: { alphabet: 'base64' } });
    expect(result.delivered).toBe(true);
  });

  test.each([
    ['hmac', { hmac: { secret: SECRET } }],
    ['bearer', { bearer: { token: SECRET } }],
  ])('with the legacy scheme %s', async (_, auth) => {
    await using both = await pair({ auth });
    const { seller, handled } = both;
    expect((await seller.deliver(seller.payloads.tool('completed'))).delivered).toBe(true);
    expect(handled).toHaveLength(1);
    const signed = await seller.deliver(seller.payloads.tool('completed'), { auth: 'signature' });
    expect(signed.last).toMatchObject({ status: 401 });
  });

  test('under another protocol name', async () => {
    await using both = await pair({ protocol: 'other' }, { protocol: 'other' });
    expect((await both.seller.deliver(both.seller.payloads.tool('completed'))).delivered).toBe(true);
  });

  test('connected to another host than the URL’s', async () => {
    await using both = await pair();
    const { seller, server } = both;
    const result = await seller.deliver(seller.payloads.tool('completed'), {
      to: `${server.url}/other-path`,
    });
    expect(result.delivered).toBe(true);
  });
});

describe('retries', () => {
  test('the same bytes with a fresh nonce, after a handler that failed', async () => {
    let failures = 2;
    const other = (): void => {
      if (failures-- > 0) throw new Error('not yet');
    };
    await using both = await pair({}, { handlers: { other } });
    const told: number[] = [];
    const { attempts, delivered } = await both.seller.deliver(both.seller.payloads.tool('completed'), {
      onAttempt: ({ attempt }) => told.push(attempt),
    });
    expect([delivered, attempts.map(({ status }) => status), told]).toEqual([
      true,
      [503, 503, 200],
      [1, 2, 3],
    ]);
    const nonces = attempts.map(
      ({ delivery }) => /nonce="([^"]+)"/.exec(delivery.headers['Signature-Input'] ?? '')?.[1],
    );
    expect(new Set(nonces).size).toBe(3);
    expect(new Set(attempts.map(({ delivery }) => new TextDecoder().decode(delivery.body))).size).toBe(1);
  });

  test('the same event again is a duplicate, the same delivery again is a replay', async () => {
    await using both = await pair();
    const { seller, handled } = both;
    const payload = seller.payloads.tool('completed');
    const { last } = await seller.deliver(payload);
    expect((await seller.deliver(payload)).last.status).toBe(200);
    expect(await seller.send(last.delivery)).toMatchObject({
      status: 401,
      code: 'webhook_signature_replayed',
    });
    expect(handled).toHaveLength(1);
  });

  test('end when the seller is closed', async () => {
    await using both = await pair(
      {
        retry: { sleep: (_, signal) => new Promise((_, reject) => signal.addEventListener('abort', reject)) },
      },
      { handlers: { other: () => Promise.reject(new Error('never')) } },
    );
    const { seller } = both;
    const result = await seller.deliver(seller.payloads.tool('completed'), {
      onAttempt: () => setImmediate(() => void seller.close()),
    });
    expect(result).toMatchObject({ delivered: false, last: { attempt: 1, status: 503 } });
  });
});

describe('planted mistakes get the answer of their row', () => {
  let both: Pair;
  beforeAll(async () => {
    both = await pair();
  });
  afterAll(() => both[Symbol.asyncDispose]());

  test.each(Object.entries(MISTAKES))('%s', async (mistake, { status, code }) => {
    // Each may ask for the JWKS again, which a receiver does once in 30 s.
    await using own = code === 'webhook_signature_key_unknown' ? await pair() : undefined;
    const { seller, handled } = own ?? both;
    const { last, attempts } = await seller.deliver(seller.payloads.tool('completed'), { mistake });
    expect({ status: last.status, code: last.code }).toEqual({ status, code });
    expect([attempts.length, handled.length]).toEqual([1, 0]);
  });
});

describe('a proof of control', () => {
  const auths = [undefined, { hmac: { secret: SECRET } }, { bearer: { token: SECRET } }] as const;

  test.each(auths)('is signed, and verified by the echo: %j', async (auth) => {
    const answers = [true, false];
    await using both = await pair(auth && { auth }, { onChallenge: () => answers.shift() ?? false });
    const { seller } = both;
    const yes = await seller.challenge({ subscriber_id: 'sub_2' });
    expect(yes).toMatchObject({ verified: true, attempt: { status: 200 } });
    expect(new TextDecoder().decode(yes.attempt.delivery.body)).toContain('"subscriber_id":"sub_2"');
    expect(await seller.challenge()).toMatchObject({
      verified: false,
      attempt: { status: 403, code: 'challenge_refused' },
    });
  });

  test.each([
    ['another one', (text: string) => text.replace('chl_', 'chx_')],
    ['more than it', (text: string) => text.replace('}', ',"ok":true}')],
    ['no JSON', () => 'ok'],
    ['nothing', () => ''],
  ])('an answer with %s is none', async (_what, spoil) => {
    await using seller = await createFakeSeller();
    await using server = await listening((req, res) => {
      let body = '';
      req.on('data', (chunk: Buffer) => (body += chunk.toString()));
      req.on('end', () => {
        const { challenge } = JSON.parse(body) as { challenge: string };
        res.end(spoil(JSON.stringify({ challenge })));
      });
    });
    expect(await seller.challenge({}, { url: server.url })).toMatchObject({
      verified: false,
      attempt: { status: 200 },
    });
  });
});

describe('published documents', () => {
  test('brand.json names the JWKS, the JWKS has both keys; fetches are counted', async () => {
    await using seller = await createFakeSeller();
    const brand = (await (await fetch(seller.brandJsonUrl)).json()) as { agents: object[] };
    expect(brand.agents).toMatchObject([{ url: seller.agentUrl, jwks_uri: seller.jwksUrl }]);
    const jwks = (await (await fetch(seller.jwksUrl)).json()) as { keys: object[] };
    expect(jwks.keys).toEqual([seller.keys.ed25519.publicJwk, seller.keys.p256.publicJwk]);
    expect(JSON.stringify(jwks)).not.toContain('"d"');
    expect([seller.fetches(), seller.fetches('/.well-known/jwks.json')]).toEqual([2, 1]);
    expect(seller.sender).toEqual({ agentUrl: seller.agentUrl, brandJsonUrl: seller.brandJsonUrl });
  });

  test('a rotated key is published, and signs', async () => {
    await using both = await pair();
    const { seller } = both;
    const before = seller.keys.ed25519;
    await seller.rotate('ed25519');
    expect(seller.keys.ed25519.publicJwk['kid']).not.toBe(before.publicJwk['kid']);
    expect((await seller.deliver(seller.payloads.tool('completed'))).delivered).toBe(true);
    const old = await seller.deliver(seller.payloads.tool('completed'), {
      key: before.privateJwk,
      retry: { attempts: 1 },
    });
    expect(old.delivered).toBe(false);
  });

  test('a document taken away is a 404, and the receiver answers 503', async () => {
    await using both = await pair();
    const { seller } = both;
    seller.documents.delete('/.well-known/jwks.json');
    const { attempts } = await seller.deliver(seller.payloads.tool('completed'), { retry: { attempts: 2 } });
    expect(attempts.map(({ status }) => status)).toEqual([503, 503]);
    expect((await fetch(`${seller.jwksUrl}?x`)).status).toBe(404);
  });

  test('nothing after close, which may be called again', async () => {
    const seller = await createFakeSeller();
    await seller.close();
    await seller.close();
    await expect(fetch(seller.jwksUrl)).rejects.toThrow();
  });
});

describe('mistakes of the caller', () => {
  test('no URL, and a wrong protocol, are ConfigErrors', async () => {
    await using seller = await createFakeSeller();
    await expect(seller.deliver({})).rejects.toMatchObject({ code: 'config_error' });
    await expect(createFakeSeller({ protocol: 'Proto' })).rejects.toMatchObject({ code: 'config_error' });
  });

  test('an unknown option is an error that lists the known ones', async () => {
    await using seller = await createFakeSeller({ url: 'http://127.0.0.1:9/hook' });
    const { payloads } = seller;
    const event = payloads.tool('completed');
    const deliver = (more: object) => seller.deliver(event, more);
    const wrong: readonly (readonly [() => unknown, RegExp])[] = [
      [() => createFakeSeller({ uri: 'x' } as object), /createFakeSeller: uri is not known\. Known: url, to/],
      [() => deliver({ mistake: 'tamper' }), /mistake: "tamper" is not a name in MISTAKES/],
      [() => deliver({ mistake: 'constructor' }), /mistake: "constructor" is not a name in MISTAKES/],
      [
        () => deliver({ mistake: 'wrong-tag', auth: { hmac: { secret: SECRET } } }),
        /mistake: it needs a signature, and this delivery has none/,
      ],
      [() => deliver({ mistakes: 'tampered-body' }), /deliver: mistakes is not known/],
      [() => seller.sign(event, { mistakes: 'x' } as object), /sign: mistakes is not known/],
      [() => deliver({ key: 'rsa' }), /key: "rsa" is not one of ed25519, p256/],
      [() => seller.rotate('rsa' as 'p256'), /key: "rsa" is not one of ed25519, p256/],
      [() => payloads.tool('done' as 'completed'), /status: "done" is not one of submitted, working/],
      [() => payloads.agent('done' as 'completed'), /status: "done" is not one of submitted, working/],
      [() => seller.faults.set('*', 'dwon' as 'down'), /faults: "dwon" is not one of down, unavailable/],
    ];
    for (const [call, message] of wrong) {
      const calling = Promise.resolve().then(call);
      await expect(calling).rejects.toThrow(message);
      await expect(calling).rejects.toMatchObject({ code: 'config_error' });
    }
  });
});
