import { describe, expect, test } from 'vitest';
import type { AlarmCode } from '../../src/index.ts';
import { defaultFetch } from '../../src/keys/for-tests.ts';
import type { NamedFault, SellerFault } from '../../src/testing/index.ts';
import { BRAND, JWKS, MINUTE, rehearse, REVOCATIONS } from './rehearsal.ts';

const FAILING = 'key_fetch_failing';
const INVALID = 'key_document_invalid';

/** The alarm that a receiver raises where the JWKS has the fault. */
const ALARMS: Readonly<Record<Exclude<NamedFault, 'silent' | 'drip'>, AlarmCode>> = {
  down: FAILING,
  unavailable: FAILING,
  endless: FAILING,
  huge: FAILING,
  gzip: FAILING,
  html: INVALID,
  'duplicate-member': INVALID,
  'duplicate-kid': INVALID,
  'secret-key': INVALID,
};

const UNAVAILABLE = 'unavailable keys_unavailable 503';
const ACCEPTED = 'accepted 200';

describe.each(Object.entries(ALARMS))('JWKS fault %s', (fault, alarm) => {
  test('without a cached copy: 503, and accepted once it is over', async () => {
    const { seller, deliver, advance, alarmsOf } = await rehearse();
    seller.faults.set(JWKS, fault as NamedFault);
    expect(await deliver()).toBe(UNAVAILABLE);
    expect(alarmsOf(alarm)).toMatchObject([{ url: seller.jwksUrl, document: 'JWKS' }]);
    seller.faults.delete(JWKS);
    advance(MINUTE);
    expect(await deliver()).toBe(ACCEPTED);
  });

  test('with a cached copy: accepted until its hard limit, then 503', async () => {
    const { seller, deliver, advance, alarmsOf } = await rehearse();
    expect(await deliver()).toBe(ACCEPTED);
    seller.faults.set(JWKS, fault as NamedFault);
    advance(29 * MINUTE);
    expect(await deliver()).toBe(ACCEPTED);
    expect(alarmsOf(alarm)).toMatchObject([{ url: seller.jwksUrl }]);
    advance(2 * MINUTE);
    expect(await deliver()).toBe(UNAVAILABLE);
  });
});

test.each(['silent', 'drip'] as const)('JWKS fault %s: given up at the deadline, 503', async (fault) => {
  // The fetcher's own deadline is 10 s; the transport's is shorter here.
  const patient = defaultFetch(true);
  const transport: typeof patient = (url, init) =>
    patient(url, { ...init, signal: AbortSignal.any([init.signal, AbortSignal.timeout(1_000)]) });
  const { seller, deliver, alarmsOf } = await rehearse({ fetch: transport });
  seller.faults.set(JWKS, fault);
  expect(await deliver()).toBe(UNAVAILABLE);
  expect(alarmsOf(FAILING)).toMatchObject([{ url: seller.jwksUrl }]);
});

test('a redirect is not followed', async () => {
  const { seller, deliver, alarmsOf } = await rehearse();
  seller.documents.set('/elsewhere', seller.documents.get(JWKS));
  seller.faults.set(JWKS, { redirect: '/elsewhere' });
  expect(await deliver()).toBe(UNAVAILABLE);
  expect(alarmsOf(FAILING)).toMatchObject([{ message: expect.stringContaining('redirect') }]);
  expect(seller.fetches('/elsewhere')).toBe(0);
});

test('a custom answer', async () => {
  const { seller, deliver, alarmsOf } = await rehearse();
  seller.faults.set(BRAND, { answer: (_request, response) => response.writeHead(418).end() });
  expect(await deliver()).toBe(UNAVAILABLE);
  expect(alarmsOf(FAILING)).toMatchObject([{ message: expect.stringContaining('418') }]);
});

test('* applies to every path without a fault of its own', async () => {
  const { seller } = await rehearse();
  seller.faults.set('*', 'unavailable').set(JWKS, 'html');
  const status = async (url: string): Promise<number> => (await fetch(url)).status;
  expect([await status(seller.brandJsonUrl), await status(seller.jwksUrl)]).toEqual([503, 200]);
  seller.faults.clear();
  expect([await status(seller.brandJsonUrl), await status(seller.revocationsUrl)]).toEqual([200, 404]);
});

test('documents are JSON, bytes, or a function asked at each fetch', async () => {
  const { seller } = await rehearse();
  let asked = 0;
  seller.documents.set('/json', { a: 1 });
  seller.documents.set('/bytes', new TextEncoder().encode('plain'));
  seller.documents.set('/function', async () => ({ asked: (asked += 1) }));
  const text = async (path: string): Promise<string> => (await fetch(new URL(path, seller.jwksUrl))).text();
  expect([await text('/json'), await text('/bytes')]).toEqual(['{"a":1}', 'plain']);
  expect([await text('/function'), await text('/function')]).toEqual(['{"asked":1}', '{"asked":2}']);
});

test.each<[string, SellerFault]>([
  ['duplicate-member', 'duplicate-member'],
  ['duplicate-kid', 'duplicate-kid'],
  ['secret-key', 'secret-key'],
  ['huge', 'huge'],
  ['gzip', 'gzip'],
])('%s on a path without a document is an answer all the same', async (_name, fault) => {
  const { seller } = await rehearse();
  seller.faults.set('/nothing', fault);
  expect((await fetch(new URL('/nothing', seller.jwksUrl))).status).toBe(200);
});

describe('rotation', () => {
  test('with overlap: both keys verify', async () => {
    const { seller, deliver, advance } = await rehearse();
    const old = seller.keys.ed25519.privateJwk;
    expect(await deliver()).toBe(ACCEPTED);
    await seller.rotate('ed25519', { overlap: true });
    advance(MINUTE);
    expect([await deliver(), await deliver({ key: old })]).toEqual([ACCEPTED, ACCEPTED]);
  });

  test('without overlap the old key is unknown when the copy has expired', async () => {
    const { seller, deliver, advance } = await rehearse();
    const old = seller.keys.ed25519.privateJwk;
    expect(await deliver()).toBe(ACCEPTED);
    await seller.rotate('ed25519', { overlap: true });
    await seller.rotate('ed25519');
    advance(6 * MINUTE);
    expect(await deliver()).toBe(ACCEPTED);
    // Within the cooldown no set is decisive.
    expect(await deliver({ key: old })).toBe(UNAVAILABLE);
    advance(MINUTE);
    expect(await deliver({ key: old })).toBe('refused webhook_signature_key_unknown 401');
  });

  test('under the same kid: one forced refetch, then accepted', async () => {
    const { seller, deliver, advance } = await rehearse();
    const old = seller.keys.ed25519.publicJwk;
    expect(await deliver()).toBe(ACCEPTED);
    const { publicJwk } = await seller.rotate('ed25519', { kid: String(old['kid']) });
    expect([publicJwk['kid'] === old['kid'], publicJwk['x'] === old['x']]).toEqual([true, false]);
    advance(MINUTE);
    expect([await deliver(), seller.fetches(JWKS)]).toEqual([ACCEPTED, 2]);
  });
});

describe('revocation', () => {
  test.each(['plain', 'flattened', 'compact'] as const)('by a %s list', async (form) => {
    const { seller, deliver, advance, alarms } = await rehearse();
    seller.revoke([], { form });
    expect(await deliver()).toBe(ACCEPTED);
    seller.revoke([String(seller.keys.ed25519.publicJwk['kid'])], { form, key: 'p256' });
    expect(await deliver()).toBe(ACCEPTED);
    advance(5 * MINUTE);
    expect([await deliver(), await deliver({ key: 'p256' })]).toEqual([
      'refused webhook_signature_key_revoked 401',
      ACCEPTED,
    ]);
    expect(alarms).toEqual([]);
  });

  test('by a list that cannot be refreshed: 503 once it is stale, and accepted when it is back', async () => {
    const { seller, deliver, advance, alarmsOf } = await rehearse();
    seller.revoke([]);
    expect(await deliver()).toBe(ACCEPTED);
    seller.faults.set(REVOCATIONS, 'down');
    advance(25 * MINUTE);
    expect(await deliver()).toBe(ACCEPTED);
    advance(1);
    expect(await deliver()).toBe('unavailable webhook_signature_revocation_stale 503');
    expect(alarmsOf('revocation_stale')).toHaveLength(1);
    seller.faults.delete(REVOCATIONS);
    advance(MINUTE);
    expect(await deliver()).toBe(ACCEPTED);
  });

  test('by a list of another issuer, or signed by another key: ignored', async () => {
    for (const options of [
      { members: { issuer: 'https://other.example' } },
      { form: 'compact', key: (await rehearse()).seller.keys.p256.privateJwk },
    ] as const) {
      const { seller, deliver, alarmsOf } = await rehearse();
      seller.revoke([], options);
      expect(await deliver()).toBe('unavailable webhook_signature_revocation_stale 503');
      expect(alarmsOf('key_document_invalid')).toMatchObject([{ url: seller.revocationsUrl }]);
    }
  });
});
