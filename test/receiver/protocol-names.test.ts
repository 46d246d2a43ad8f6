import { describe, expect, it } from 'vitest';
import { generateKey, type Jwk, type SignedDelivery, signHmac } from '../../src/sender/sign.ts';
import type { Outcome } from '../../src/index.ts';
import { createFakeSeller } from '../../src/testing/index.ts';
import {
  AGENT,
  alarmsTold,
  payloads,
  said,
  testReceiver,
  type TestReceiverOptions,
  URL_GIVEN,
} from './setup.ts';

const NAMES = ['proto', 'adcp'] as const;
type Name = (typeof NAMES)[number];

const OTHER: Readonly<Record<Name, Name>> = { proto: 'adcp', adcp: 'proto' };
const SECRET = 's-'.repeat(16);
const HMAC: TestReceiverOptions = { senders: [{ agentUrl: AGENT, auth: { hmac: { secret: SECRET } } }] };

const TAG = 'refused webhook_signature_tag_invalid 401';
const PURPOSE = 'refused webhook_signature_key_purpose_invalid 401';
const MISMATCH = 'refused webhook_mode_mismatch 401';
const MALFORMED = 'refused webhook_signature_header_malformed 401';

const completed = (): object => payloads.tool('completed');

const hmac = (protocol: Name, body: object = completed()): SignedDelivery =>
  signHmac({ url: URL_GIVEN, body, secret: SECRET, protocol });

/** The delivery with fields of another one put beside its own. */
function beside(delivery: SignedDelivery, fields: Readonly<Record<string, string>>): SignedDelivery {
  return { ...delivery, headers: { ...delivery.headers, ...fields } };
}

function fieldsOf({ headers }: SignedDelivery, name: RegExp): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([field]) => name.test(field)));
}

/** A receiver of one seller that publishes this key, and a delivery of it under a name. */
async function receiverOf(publicJwk: Jwk, privateJwk: Jwk, options: TestReceiverOptions = {}) {
  const made = await testReceiver({ senders: [{ agentUrl: AGENT, pins: [publicJwk] }], ...options });
  const under = async (protocol: Name, body: object = completed()): Promise<Outcome> =>
    made.deliver(body, { key: privateJwk, protocol });
  return { ...made, under };
}

describe('either known name is taken without any setting (verification.md §1.1)', () => {
  it.each(NAMES)('%s: signed, by a key that has its purpose alone', async (name) => {
    const { publicJwk, privateJwk } = await generateKey('ed25519', 'webhook-signing', { protocol: name });
    const { under, seen } = await receiverOf(publicJwk, privateJwk);
    expect(said(await under(name))).toBe('accepted 200');
    expect(seen).toHaveLength(1);
  });

  it.each(NAMES)('%s: HMAC', async (name) => {
    const { send, seen } = await testReceiver(HMAC);
    expect(said(await send(hmac(name)))).toBe('accepted 200');
    expect(seen).toHaveLength(1);
  });

  it.each(NAMES)('%s: the error of a result is on the event', async (name) => {
    const { send, seen } = await testReceiver(HMAC);
    await send(hmac('proto', payloads.tool('failed', { result: { [`${name}_error`]: { code: 'X' } } })));
    expect(seen[0]?.event).toMatchObject({ error: { code: 'X' } });
  });

  it('a key that is made without a name has both purposes, and counts under each tag', async () => {
    const { publicJwk, privateJwk } = await generateKey('ed25519');
    expect(publicJwk).toMatchObject({ proto_use: 'webhook-signing', adcp_use: 'webhook-signing' });
    const { under } = await receiverOf(publicJwk, privateJwk);
    for (const name of NAMES) expect(said(await under(name))).toBe('accepted 200');
  });

  it('an event is one event under both names, and a nonce is used once', async () => {
    const { publicJwk, privateJwk } = await generateKey('ed25519');
    const { under, deliver, seen } = await receiverOf(publicJwk, privateJwk);
    const body = completed();
    expect(said(await under('proto', body))).toBe('accepted 200');
    expect(said(await under('adcp', body))).toBe('duplicate 200');
    const nonce = 'A'.repeat(24);
    const options = { key: privateJwk, params: { nonce } };
    expect(said(await deliver(completed(), { ...options, protocol: 'proto' }))).toBe('accepted 200');
    expect(said(await deliver(completed(), { ...options, protocol: 'adcp' }))).toBe(
      'refused webhook_signature_replayed 401',
    );
    expect(seen).toHaveLength(2);
  });
});

describe('a name is whole: a mixture is refused (verification.md §1.3)', () => {
  it.each(NAMES)('a tag of %s under a key with the other name’s purpose alone', async (name) => {
    const key = await generateKey('ed25519', 'webhook-signing', { protocol: OTHER[name] });
    const { under, seen } = await receiverOf(key.publicJwk, key.privateJwk);
    expect(said(await under(name))).toBe(PURPOSE);
    expect(seen).toEqual([]);
  });

  it.each(NAMES)(
    'a key for webhooks under %s alone, and for something else under the other',
    async (name) => {
      const { publicJwk, privateJwk } = await generateKey('ed25519');
      const own = { ...publicJwk, [`${OTHER[name]}_use`]: 'response-signing' };
      const { under } = await receiverOf(own, privateJwk);
      expect(said(await under(name))).toBe('accepted 200');
      expect(said(await under(OTHER[name]))).toBe(PURPOSE);
    },
  );

  it.each(NAMES)('what was signed as %s and is passed on as the other', async (name) => {
    const { publicJwk, privateJwk } = await generateKey('ed25519');
    const { sign, send } = await receiverOf(publicJwk, privateJwk);
    const signed = await sign(completed(), { key: privateJwk, protocol: name });
    const input = (signed.headers['Signature-Input'] ?? '').replace(`"${name}/`, `"${OTHER[name]}/`);
    expect(input).toContain(`tag="${OTHER[name]}/webhook-signing/v1"`);
    expect(said(await send(beside(signed, { 'Signature-Input': input })))).toBe(
      'refused webhook_signature_invalid 401',
    );
  });

  it.each(['other', 'PROTO', 'adcp ', 'proto/webhook-signing/v1,adcp'])('the tag of %j', async (name) => {
    const { deliver } = await testReceiver();
    expect(said(await deliver(completed(), { params: { tag: `${name}/webhook-signing/v1` } }))).toBe(TAG);
  });

  it.each<[string, (name: Name, body: object) => SignedDelivery]>([
    ['all of both, each right', (name, body) => beside(hmac(name, body), hmac(OTHER[name], body).headers)],
    [
      'a right one beside a wrong one',
      (name, body) =>
        beside(hmac(name, body), { [`X-${OTHER[name]}-Signature`]: `sha256=${'0'.repeat(64)}` }),
    ],
    [
      'a timestamp of the other beside a right one',
      (name, body) => beside(hmac(name, body), { [`X-${OTHER[name]}-Timestamp`]: '1' }),
    ],
    [
      'the signature by one name and the timestamp by the other',
      (name, body) => ({
        ...hmac(name, body),
        headers: {
          'Content-Type': 'application/json',
          ...fieldsOf(hmac(name, body), /signature/i),
          ...fieldsOf(hmac(OTHER[name], body), /timestamp/i),
        },
      }),
    ],
  ])('HMAC fields of both names: %s', async (_, make) => {
    for (const name of NAMES) {
      const { send, seen } = await testReceiver(HMAC);
      expect(said(await send(make(name, completed())))).toBe(MALFORMED);
      expect(seen).toEqual([]);
    }
  });

  it.each(NAMES)(
    'the HMAC field of %s at a sender that signs, beside a signature of either name',
    async (name) => {
      const { sign, send } = await testReceiver();
      for (const protocol of NAMES) {
        const stray = { [`X-${name}-Signature`]: `sha256=${'0'.repeat(64)}` };
        expect(said(await send(beside(await sign(completed(), { protocol }), stray)))).toBe(MISMATCH);
      }
    },
  );

  it.each(NAMES)('the HMAC of %s, or a signature with its tag, at senders of other schemes', async (name) => {
    const { sign } = await testReceiver();
    const signed = await sign(completed(), { protocol: name });
    const bearer = await testReceiver({
      senders: [{ agentUrl: AGENT, auth: { bearer: { token: SECRET } } }],
    });
    expect(said(await bearer.send(beside(hmac(name), { Authorization: `Bearer ${SECRET}` })))).toBe(MISMATCH);
    expect(said(await bearer.send(beside(signed, { Authorization: `Bearer ${SECRET}` })))).toBe(MISMATCH);
    const legacy = await testReceiver(HMAC);
    expect(said(await legacy.send(beside(signed, hmac(OTHER[name]).headers)))).toBe(MISMATCH);
  });

  it.each(NAMES)('a bearer token in an HMAC field of %s is refused at construction', async (name) => {
    const auth = { bearer: { token: SECRET, header: `X-${name}-Signature` } };
    await expect(testReceiver({ senders: [{ agentUrl: AGENT, auth }] })).rejects.toThrow(/field of its own/);
  });
});

describe('a kid that two names have (verification.md §1.3)', () => {
  it.each(NAMES)('is revoked for both, wherever its tag says %s', async (name) => {
    const { publicJwk, privateJwk } = await generateKey('ed25519', 'webhook-signing', { kid: 'k' });
    const { under } = await receiverOf(publicJwk, privateJwk, {
      senders: [{ agentUrl: AGENT, pins: [publicJwk], revocation: { revokedKids: ['k'] } }],
    });
    expect(said(await under(name))).toBe('refused webhook_signature_key_revoked 401');
  });

  it.each(NAMES)('is revoked for both by the list of %s', async (name) => {
    await using seller = await createFakeSeller({ url: URL_GIVEN });
    const { origin } = new URL(seller.agentUrl);
    const kid = String(seller.keys.p256.publicJwk['kid']);
    seller.documents.set(`/.well-known/${name}-revocations.json`, {
      version: 1,
      issuer: origin,
      updated: new Date().toISOString(),
      next_update: new Date(Date.now() + 300_000).toISOString(),
      revoked_kids: [kid],
      revoked_jtis: [],
    });
    const { deliver } = await testReceiver({ senders: [seller.sender], allowLoopback: true });
    for (const protocol of NAMES) {
      const revoked = await deliver(completed(), { key: seller.keys.p256.privateJwk, protocol });
      expect(said(revoked)).toBe('refused webhook_signature_key_revoked 401');
      const good = await deliver(completed(), { key: seller.keys.ed25519.privateJwk, protocol });
      expect(said(good)).toBe('accepted 200');
    }
  });

  it.each(NAMES)(
    'is nobody’s where two sellers pin its key, one under %s and one under the other',
    async (name) => {
      const { publicJwk, privateJwk } = await generateKey('ed25519', 'webhook-signing', { kid: 'k' });
      const under = (protocol: Name): Jwk => {
        const { proto_use: _proto, adcp_use: _adcp, ...material } = publicJwk;
        return { ...material, [`${protocol}_use`]: 'webhook-signing' };
      };
      const copier = 'https://copier.example/mcp';
      const { deliver, seen } = await testReceiver({
        senders: [
          { agentUrl: copier, pins: [under(OTHER[name])] },
          { agentUrl: AGENT, pins: [under(name)] },
        ],
      });
      // A key that two sellers have is nobody's, whatever name each of them gives it.
      const own = await deliver(completed(), { key: privateJwk, protocol: name });
      const copied = await deliver(completed(), { key: privateJwk, protocol: OTHER[name] });
      expect([said(own), said(copied)]).toEqual(
        Array.from({ length: 2 }, () => 'unavailable keys_unavailable 503'),
      );
      expect(seen).toEqual([]);
    },
  );
});

describe('the option protocol restricts to one name', () => {
  it.each(NAMES)('%s', async (name) => {
    const { publicJwk, privateJwk } = await generateKey('ed25519');
    const { under, sign, send } = await receiverOf(publicJwk, privateJwk, { protocol: name });
    expect(said(await under(name))).toBe('accepted 200');
    expect(said(await under(OTHER[name]))).toBe(TAG);
    // A field that is none of this receiver's is any field.
    const stray = { [`X-${OTHER[name]}-Signature`]: 'x' };
    expect(
      said(await send(beside(await sign(completed(), { key: privateJwk, protocol: name }), stray))),
    ).toBe('accepted 200');
    const legacy = await testReceiver({ ...HMAC, protocol: name });
    expect(said(await legacy.send(hmac(OTHER[name])))).toBe(MALFORMED);
    expect(said(await legacy.send(hmac(name)))).toBe('accepted 200');
  });
});

describe('a refusal that another setting would not have given is heard (verification.md §2.37)', () => {
  it('once a minute, however the URL is spelled', async () => {
    const { sign, receiver, alarms } = await testReceiver({
      publicUrl: 'https://buyer.example/webhooks/*',
      protocol: 'proto',
    });
    const { body, headers } = await sign(completed(), { protocol: 'adcp' });
    const stray = { ...headers, 'X-PROTO-Signature': 'sha256=0' };
    for (const path of ['a', 'b', 'c?d', 'e?f']) {
      await receiver.verifyAndDispatch(body, headers, { url: `/webhooks/${path}` });
      await receiver.verifyAndDispatch(body, stray, { url: `/webhooks/${path}` });
    }
    await alarmsTold();
    expect(alarms.map(({ code, registered }) => [code, registered])).toEqual([
      ['webhook_signature_tag_invalid', AGENT],
      ['webhook_mode_mismatch', AGENT],
    ]);
  });

  it('not for the tag of something else', async () => {
    const { deliver, alarms } = await testReceiver();
    await deliver(completed(), { params: { tag: 'proto/request-signing/v1' } });
    await alarmsTold();
    expect(alarms).toEqual([]);
  });
});
