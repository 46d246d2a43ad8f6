import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import type { Jwk, KeyPair } from '../../src/sender/sign.ts';
import { ACCEPTED, deliveryBench, keyNamed, UNAVAILABLE } from './delivery-bench.ts';
import { type Answerer, sends, startKeyServer } from './key-server.ts';
import { BRAND, JWKS_PATH, MINUTE, PATIENT, type Seller, startSeller } from './setup.ts';

/** Never ends, and never pauses. */
const endless: Answerer = (_req, res) => {
  res.writeHead(200, { 'content-type': 'application/json' });
  const more = (): void => {
    if (!res.destroyed) res.write('{"keys":['.padEnd(16_384), more);
  };
  more();
};

const truncated: Answerer = (_req, res) => {
  res.writeHead(200, { 'content-length': '1000' }).write('{"keys":[', () => res.destroy());
};

const redirect: Answerer = (_req, res) => {
  res.writeHead(302, { location: '/elsewhere' }).end();
};

/** What may come instead of any key document. */
const ANY: readonly (readonly [string, Answerer])[] = [
  ['HTML with 200', sends('<!doctype html><title>Welcome</title>', { 'content-type': 'text/html' })],
  ['an empty answer', sends('')],
  ['an array', sends('[]')],
  ['a BOM', sends('\uFEFF{"keys":[],"agents":[]}')],
  ['no UTF-8', (_req, res) => res.writeHead(200).end(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]))],
  ['a duplicate JSON key', sends('{"keys":[],"keys":[],"agents":[],"agents":[]}')],
  [
    'a duplicate JSON key within',
    sends('{"keys":[{"kid":"a","\\u006bid":"b"}],"agents":[{"url":"a","url":"b"}]}'),
  ],
  ['deep nesting', sends(`{"keys":${'['.repeat(5000)}${']'.repeat(5000)},"agents":[]}`)],
  ['over the cap', sends(JSON.stringify({ keys: [], agents: [], pad: 'x'.repeat(2_097_152) }))],
  ['endless', endless],
  ['cut off', truncated],
  [
    'gzip',
    (_req, res) =>
      res.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('{"keys":[],"agents":[]}')),
  ],
  ['a redirect', redirect],
  ['204', (_req, res) => res.writeHead(204).end()],
  ['500', (_req, res) => res.writeHead(500).end()],
];

const JWKS_ONLY: readonly (readonly [string, (key: KeyPair) => unknown])[] = [
  ['10,000 keys', () => ({ keys: Array.from({ length: 10_000 }, () => ({})) })],
  ['a duplicate kid', ({ publicJwk }) => ({ keys: [publicJwk, { ...publicJwk, use: 'enc' }] })],
  ['private members', ({ publicJwk, privateJwk }) => ({ keys: [{ ...publicJwk, d: privateJwk['d'] }] })],
  ['keys that is not an array', ({ publicJwk }) => ({ keys: { k: publicJwk } })],
  ['no keys', () => ({})],
];

const BRAND_ONLY: readonly (readonly [string, unknown])[] = [
  ['agents that is not an array', { agents: {} }],
  ['a house that is no domain', { house: 'https://house.example/x' }],
  ['a pointer that is not a URL', { authoritative_location: '/brand.json' }],
];

/** The previous copy stays in force, with an alarm; where there is none the answer is 503. */
async function check(path: string, answererFor: (key: KeyPair) => Answerer): Promise<void> {
  const key = await keyNamed('k');
  const start = async (): Promise<Seller> => await startSeller(key.publicJwk);
  const warm = await start();
  const kept = deliveryBench({ agentUrl: warm.sender.agentUrl });
  expect(await kept.deliver(key)).toBe(ACCEPTED);
  warm.server.answer(path, answererFor(key));
  kept.advance(6 * MINUTE);
  expect(await kept.deliver(key)).toBe(ACCEPTED);
  await expect.poll(() => alarms(kept), PATIENT).toBeGreaterThan(0);

  const cold = await start();
  cold.server.answer(path, answererFor(key));
  const none = deliveryBench({ agentUrl: cold.sender.agentUrl });
  expect(await none.deliver(key)).toBe(UNAVAILABLE);
  expect(alarms(none)).toBeGreaterThan(0);
}

function alarms({ alarmsOf }: ReturnType<typeof deliveryBench>): number {
  return alarmsOf('key_document_invalid').length + alarmsOf('key_fetch_failing').length;
}

describe('a hostile or broken document leaves the previous copy in force, else 503; with an alarm', () => {
  test.each(ANY)('JWKS: %s', async (_what, answerer) => {
    await check(JWKS_PATH, () => answerer);
  });

  test.each(JWKS_ONLY)('JWKS: %s', async (_what, json) => {
    await check(JWKS_PATH, (key) => sends(JSON.stringify(json(key))));
  });

  test.each(ANY)('brand.json: %s', async (_what, answerer) => {
    await check(BRAND, () => answerer);
  });

  test.each(BRAND_ONLY)('brand.json: %s', async (_what, json) => {
    await check(BRAND, () => sends(JSON.stringify(json)));
  });
});

describe('a JWKS with a kid of several keys that differ', () => {
  const twins = async (kid: string): Promise<KeyPair[]> => Promise.all([keyNamed(kid), keyNamed(kid)]);

  test('harms no other key of the set; that kid is 503, with an alarm that names it', async () => {
    const [key, [one, two]] = [await keyNamed('k'), await twins('twice')];
    if (!one || !two) throw new Error('two keys');
    const seller = await startSeller(one.publicJwk, key.publicJwk, two.publicJwk);
    const bench = deliveryBench({ agentUrl: seller.sender.agentUrl });
    expect([await bench.deliver(key), await bench.deliver(one), await bench.deliver(two)]).toEqual([
      ACCEPTED,
      UNAVAILABLE,
      UNAVAILABLE,
    ]);
    bench.advance(MINUTE);
    expect([await bench.deliver(two), await bench.deliver(key)]).toEqual([UNAVAILABLE, ACCEPTED]);
    const [alarm] = bench.alarmsOf('key_document_invalid');
    expect(alarm).toMatchObject({ document: 'JWKS', message: expect.stringContaining('"twice"') as unknown });
    seller.publish(key.publicJwk, two.publicJwk);
    bench.advance(MINUTE);
    expect(await bench.deliver(two)).toBe(ACCEPTED);
  });

  test.each<[string, (key: KeyPair) => Promise<readonly object[]>, string]>([
    ['several', async ({ publicJwk }) => [publicJwk, (await keyNamed('k')).publicJwk], UNAVAILABLE],
    [
      'one that cannot verify',
      async ({ publicJwk }) => [{ ...publicJwk, kty: 'RSA' }],
      'refused webhook_signature_key_purpose_invalid 401',
    ],
  ])('that had one takes no other along when it has %s: new keys, revoked ones', async (_what, odd, then) => {
    const [key, other, fresh] = await Promise.all([keyNamed('k'), keyNamed('other'), keyNamed('fresh')]);
    const seller = await startSeller(key.publicJwk, other.publicJwk);
    const bench = deliveryBench({ agentUrl: seller.sender.agentUrl });
    expect([await bench.deliver(key), await bench.deliver(other)]).toEqual([ACCEPTED, ACCEPTED]);
    const revoked = { ...other.publicJwk, revoked_at: '2020-01-01T00:00:00Z' };
    seller.publish(...((await odd(key)) as Jwk[]), revoked, fresh.publicJwk);
    for (let minutes = 6; minutes < 30; minutes += 6) {
      bench.advance(6 * MINUTE);
      expect([await bench.deliver(fresh), await bench.deliver(other), await bench.deliver(key)]).toEqual([
        ACCEPTED,
        'refused webhook_signature_key_revoked 401',
        ACCEPTED,
      ]);
    }
    expect(bench.alarmsOf('key_document_invalid')).not.toEqual([]);
    bench.advance(7 * MINUTE);
    await bench.deliver(fresh);
    expect([await bench.deliver(fresh), await bench.deliver(key)]).toEqual([ACCEPTED, then]);
  });

  test('is no answer to a signature that fails under an older key of that kid', async () => {
    const [old, [one, two]] = [await keyNamed('k'), await twins('k')];
    if (!one || !two) throw new Error('two keys');
    const seller = await startSeller(old.publicJwk);
    const bench = deliveryBench({ agentUrl: seller.sender.agentUrl });
    expect(await bench.deliver(old)).toBe(ACCEPTED);
    seller.publish(one.publicJwk, two.publicJwk);
    bench.advance(MINUTE);
    expect(await bench.deliver(one)).toBe(UNAVAILABLE);
    expect(await bench.deliver(old)).toBe(ACCEPTED);
    bench.advance(31 * MINUTE);
    expect([await bench.deliver(one), await bench.deliver(old)]).toEqual([UNAVAILABLE, UNAVAILABLE]);
  });

  test('that is listed twice alike verifies', async () => {
    const key = await keyNamed('k');
    const seller = await startSeller(key.publicJwk, { ...key.publicJwk });
    const bench = deliveryBench({ agentUrl: seller.sender.agentUrl });
    expect([await bench.deliver(key), bench.alarmsOf('key_document_invalid')]).toEqual([ACCEPTED, []]);
  });
});

describe('a JWKS whose key has a wrong kty', () => {
  test('leaves the previous copy in force, with an alarm, if the key could verify before', async () => {
    const key = await keyNamed('k');
    const seller = await startSeller(key.publicJwk);
    const bench = deliveryBench({ agentUrl: seller.sender.agentUrl });
    await bench.deliver(key);
    seller.publish({ ...key.publicJwk, kty: 'RSA' });
    bench.advance(6 * MINUTE);
    expect(await bench.deliver(key)).toBe(ACCEPTED);
    expect(bench.alarmsOf('key_document_invalid')).toHaveLength(1);
  });

  test.each(['RSA', 'oct', 'EC'])('is refused by check 8 if there is none: %s', async (kty) => {
    const key = await keyNamed('k');
    const seller = await startSeller({ ...key.publicJwk, kty });
    const bench = deliveryBench({ agentUrl: seller.sender.agentUrl });
    expect(await bench.deliver(key)).toBe('refused webhook_signature_key_purpose_invalid 401');
  });

  test('harms no other key of the set', async () => {
    const [key, other] = [await keyNamed('k'), await keyNamed('other')];
    const seller = await startSeller(key.publicJwk, { ...other.publicJwk, kty: 'RSA' });
    expect(await deliveryBench({ agentUrl: seller.sender.agentUrl }).deliver(key)).toBe(ACCEPTED);
  });
});

describe('adagents.json of a configured publisher', () => {
  const ADAGENTS = '/.well-known/adagents.json';
  const broken: readonly (readonly [string, Answerer])[] = [
    ...ANY.filter(([what]) => what !== 'over the cap'),
    ['over the cap', sends(JSON.stringify({ authorized_agents: [], pad: 'x'.repeat(1_048_576) }))],
  ];

  test.each(broken)(
    '%s: the pins of the previous copy in force, else 503; with an alarm',
    async (_what, answerer) => {
      const [jwksKey, pin] = [await keyNamed('k'), await keyNamed('k')];
      const seller = await startSeller(jwksKey.publicJwk);
      const { agentUrl } = seller.sender;
      const publisher = await startKeyServer();
      publisher.serve(ADAGENTS, { authorized_agents: [{ url: agentUrl, signing_keys: [pin.publicJwk] }] });
      const sender = { agentUrl, publishers: [publisher.host], edition: '3.0' } as const;
      const kept = deliveryBench(sender);
      expect(await kept.deliver(pin)).toBe(ACCEPTED);
      publisher.answer(ADAGENTS, answerer);
      kept.advance(61 * MINUTE);
      expect(await kept.deliver(pin)).toBe(ACCEPTED);
      await expect.poll(() => alarms(kept), PATIENT).toBeGreaterThan(0);
      const none = deliveryBench(sender);
      expect(await none.deliver(pin)).toBe(UNAVAILABLE);
      expect(await none.deliver(jwksKey)).toBe(UNAVAILABLE);
      expect(seller.server.count(JWKS_PATH)).toBe(0);
    },
  );
});
