import { createPrivateKey, sign } from 'node:crypto';
import { FlattenedSign } from 'jose/jws/flattened/sign';
import { describe, expect, test } from 'vitest';
import { generateKey, type Jwk, type KeyPair } from '../../src/sender/sign.ts';
import type { SenderEntry } from '../../src/for-tests.ts';
import { deliveryBench } from './delivery-bench.ts';
import { gate, type KeyServer, sends } from './key-server.ts';
import { type Bench, JWKS_PATH, MINUTE, type Seller, setup, START, startSeller } from './setup.ts';

const LIST = '/.well-known/proto-revocations.json';
const GOVERNANCE = '/.well-known/governance-revocations.json';

interface ListOptions {
  readonly kids?: readonly string[];
  readonly at?: number;
  readonly header?: object;
  readonly form?: 'flattened' | 'compact' | 'general';
  readonly path?: string;
}

async function signed(server: KeyServer, { privateJwk }: KeyPair, options: ListOptions = {}): Promise<void> {
  const { kids = ['revoked'], at = START, header = {}, form = 'flattened', path = LIST } = options;
  const list = {
    version: 1,
    issuer: server.origin,
    updated: new Date(at).toISOString(),
    next_update: new Date(at + 5 * MINUTE).toISOString(),
    revoked_kids: kids,
    revoked_jtis: [],
  };
  const jws = await new FlattenedSign(new TextEncoder().encode(JSON.stringify(list)))
    .setProtectedHeader({ alg: String(privateJwk['alg']), kid: String(privateJwk['kid']), ...header })
    .sign(privateJwk);
  const { payload, ...signature } = jws;
  if (form === 'flattened') server.serve(path, jws);
  else if (form === 'general') server.serve(path, { payload, signatures: [signature] });
  else
    server.answer(path, (_req, res) => {
      res.end(`${jws.protected ?? ''}.${jws.payload}.${jws.signature}`);
    });
}

interface SignedBench extends Bench, Seller {
  readonly check: (keyid: string, sender?: SenderEntry) => Promise<string>;
}

async function seller(...keys: readonly Jwk[]): Promise<SignedBench> {
  const started = await startSeller(...keys);
  const bench = await setup();
  const check: SignedBench['check'] = async (keyid, sender = started.sender) =>
    await bench.keys.revocation(sender, keyid);
  return { ...started, ...bench, check };
}

const ed25519: KeyPair = await generateKey('ed25519', 'webhook-signing', { kid: 'ed' });
const p256: KeyPair = await generateKey('ecdsa-p256-sha256', 'request-signing', { kid: 'p256' });

describe('a signed list is in force', () => {
  test.each([
    ['flattened', 'EdDSA', ed25519],
    ['compact', 'EdDSA', ed25519],
    ['general', 'EdDSA', ed25519],
    ['flattened', 'ES256', p256],
    ['compact', 'ES256', p256],
  ] as const)(
    "in %s form, by %s, of a key of the operator's JWKS of any purpose",
    async (form, _alg, pair) => {
      const { server, check, alarms } = await seller(ed25519.publicJwk, p256.publicJwk);
      await signed(server, pair, { form });
      expect([await check('revoked'), await check('ed')]).toEqual(['revoked', 'valid']);
      expect(alarms).toEqual([]);
    },
  );

  test.each([
    ['after the list was made', START + 1000, 'revoked'],
    ['when the list was made', START, 'stale'],
  ])('only before the revoked_at of its key: %s', async (_when, at, state) => {
    const { server, check } = await seller({ ...ed25519.publicJwk, revoked_at: new Date(at).toISOString() });
    await signed(server, ed25519);
    expect(await check('revoked')).toBe(state);
  });

  test('at the path of all keys of the operator, beside the list of its own path', async () => {
    const { server, check, alarms } = await seller(ed25519.publicJwk);
    await signed(server, ed25519, { form: 'general', path: GOVERNANCE });
    expect([await check('revoked'), await check('ed')]).toEqual(['revoked', 'valid']);
    expect(alarms).toEqual([]);
  });

  test('whatever was parsed before, when its header has escapes in member names', async () => {
    // The fault of V8 that `readJson` tells of: it takes one name that is not `alg`, in the place of `alg`.
    const alike: unknown = JSON.parse('{"x-list":1,"al\\\\":2,"kid":3}');
    const { server, check } = await seller(ed25519.publicJwk);
    const encode = (text: string): string => Buffer.from(text).toString('base64url');
    const list = {
      issuer: server.origin,
      updated: new Date(START).toISOString(),
      next_update: new Date(START + 5 * MINUTE).toISOString(),
      revoked_kids: ['revoked'],
    };
    const head = encode('{"x-list":1,"al\\u0067":"EdDSA","kid":"ed"}');
    const payload = encode(JSON.stringify(list).replace('revoked_kids', 'revoked_kid\\u0073'));
    const key = createPrivateKey({ key: ed25519.privateJwk, format: 'jwk' });
    const signature = sign(null, Buffer.from(`${head}.${payload}`), key).toString('base64url');
    server.serve(LIST, { protected: head, payload, signature });
    expect(alike).toBeDefined();
    expect([await check('revoked'), await check('k')]).toEqual(['revoked', 'valid']);
  });

  test('when its key came into the JWKS with it', async () => {
    const { server, check, publish, keys, sender, advance } = await seller(p256.publicJwk);
    await keys.find('p256', { senders: [sender], arrivedAt: START });
    publish(p256.publicJwk, ed25519.publicJwk);
    await signed(server, ed25519, { at: START + 1000 });
    advance(1000);
    expect(await check('revoked')).toBe('revoked');
    expect(server.count(JWKS_PATH)).toBe(2);
  });

  test('when its key is new and an intermediary’s cache still has the JWKS without it', async () => {
    const { server, check, keys, sender } = await seller();
    server.answer(JWKS_PATH, (req, res) => {
      // Only who asks for the origin's own gets the set of now.
      if (req.headers['cache-control'] === 'no-cache') res.end(JSON.stringify({ keys: [ed25519.publicJwk] }));
      else res.setHeader('age', '100').end(JSON.stringify({ keys: [p256.publicJwk] }));
    });
    await signed(server, ed25519);
    await keys.warm([sender]);
    // Nobody waits for what is fetched ahead.
    await server.asked(JWKS_PATH, 1);
    expect(await check('revoked')).toBe('revoked');
    expect(server.count(JWKS_PATH)).toBe(2);
  });

  test('when a pin is the key, without the JWKS', async () => {
    const { server, check, sender } = await seller(p256.publicJwk);
    await signed(server, ed25519);
    const revocation = { url: `${server.origin}${LIST}` };
    expect(await check('revoked', { ...sender, pins: [ed25519.publicJwk], revocation })).toBe('revoked');
    expect(server.count(JWKS_PATH)).toBe(0);
  });

  test('when another agent of the operator has the key', async () => {
    const { server, check, keys, sender } = await seller(ed25519.publicJwk);
    const other = { ...sender, agentUrl: `${server.origin}/other` };
    server.serve('/.well-known/brand.json', {
      agents: [
        { url: sender.agentUrl },
        { url: other.agentUrl, jwks_uri: `${server.origin}/other-jwks.json` },
      ],
    });
    server.serve('/other-jwks.json', { keys: [p256.publicJwk] });
    await signed(server, ed25519);
    await keys.find('ed', { senders: [sender], arrivedAt: START });
    expect(await check('k')).toBe('valid');
    expect(await check('revoked', other)).toBe('revoked');
  });

  test('when another agent of the operator has the key, and its set is no longer cached', async () => {
    const { server, check, keys, sender, advance } = await seller(p256.publicJwk);
    const other = { ...sender, agentUrl: `${server.origin}/other` };
    server.serve('/.well-known/brand.json', {
      agents: [
        { url: sender.agentUrl },
        { url: other.agentUrl, jwks_uri: `${server.origin}/other-jwks.json` },
      ],
    });
    server.serve('/other-jwks.json', { keys: [ed25519.publicJwk] });
    await signed(server, ed25519);
    await keys.find('ed', { senders: [other], arrivedAt: START });
    expect(await check('revoked', other)).toBe('revoked');
    advance(31 * MINUTE);
    await signed(server, ed25519, { kids: ['k'], at: START + 31 * MINUTE });
    expect(await check('k', sender)).toBe('revoked');
  });

  test('whatever key another party that points at its brand.json publishes under that kid', async () => {
    const stranger = await startSeller(p256.publicJwk);
    const { server, check, keys, sender, advance } = await seller(p256.publicJwk);
    const { origin } = server;
    const forged = await generateKey('ed25519', 'webhook-signing', { kid: 'ed' });
    stranger.server.serve('/keys', { keys: [forged.publicJwk] });
    server.serve('/.well-known/brand.json', {
      agents: [
        { url: sender.agentUrl },
        { url: stranger.sender.agentUrl, jwks_uri: `${stranger.server.origin}/keys` },
      ],
    });
    stranger.server.serve('/.well-known/brand.json', {
      authoritative_location: `${origin}/.well-known/brand.json`,
    });
    await signed(server, p256);
    await keys.find('p256', { senders: [sender], arrivedAt: START });
    await keys.find('ed', { senders: [stranger.sender], arrivedAt: START });
    expect(await check('revoked', stranger.sender)).toBe('stale');
    expect([await check('revoked'), await check('revoked', stranger.sender)]).toEqual(['revoked', 'revoked']);
    server.serve(JWKS_PATH, { keys: [p256.publicJwk, ed25519.publicJwk] });
    advance(31 * MINUTE);
    await signed(server, ed25519, { kids: ['k'], at: START + 31 * MINUTE });
    expect(await check('k', stranger.sender)).toBe('revoked');
  });

  test('when its key was replaced under its kid', async () => {
    const { server, check, publish, keys, sender, advance } = await seller(ed25519.publicJwk);
    await keys.find('ed', { senders: [sender], arrivedAt: START });
    const next = await generateKey('ed25519', 'webhook-signing', { kid: 'ed' });
    publish(next.publicJwk);
    await signed(server, next, { at: START + MINUTE });
    advance(MINUTE);
    expect(await check('revoked')).toBe('revoked');
  });

  test('once its keys can be fetched', async () => {
    const { server, check, publish, advance } = await seller();
    await signed(server, ed25519);
    server.answer(JWKS_PATH, (_req, res) => res.writeHead(503).end());
    expect(await check('k')).toBe('stale');
    publish(ed25519.publicJwk);
    advance(MINUTE);
    expect([await check('k'), server.count(LIST)]).toEqual(['valid', 1]);
  });
});

test('keys that do not arrive delay no delivery while the list in force is fresh', async () => {
  const { server, sender } = await startSeller(ed25519.publicJwk);
  // A caller that waited for the keys would wait longer than the test may take.
  const { keys, advance } = await setup({ limits: { patienceMs: 1, deadlineMs: 600_000 } });
  const check = async (keyid: string): Promise<string> => await keys.revocation(sender, keyid);
  await signed(server, ed25519);
  await keys.find('ed', { senders: [sender], arrivedAt: START });
  await expect.poll(() => check('revoked'), { timeout: 30_000 }).toBe('revoked');
  await signed(server, p256, { kids: ['k'], at: START + 5 * MINUTE });
  const held = gate(sends(JSON.stringify({ keys: [ed25519.publicJwk, p256.publicJwk] })));
  server.answer(JWKS_PATH, held.answerer);
  advance(5 * MINUTE);
  expect([await check('k'), await check('revoked')]).toEqual(['valid', 'revoked']);
  // The new list may come after the deliveries that asked for it went on: the next one looks at it.
  const asked = async (): Promise<[string, number]> => [await check('k'), server.count(JWKS_PATH)];
  await expect.poll(asked, { timeout: 30_000 }).toEqual(['valid', 2]);
  held.open();
  await expect.poll(() => check('k'), { timeout: 30_000 }).toBe('revoked');
});

describe('a signed list is refused', () => {
  async function refused(bench: SignedBench, reason: RegExp): Promise<void> {
    expect(await bench.check('k')).toBe('stale');
    expect(await bench.check('revoked')).toBe('stale');
    expect(bench.alarmsOf('key_document_invalid')).toMatchObject([
      { message: expect.stringMatching(reason) },
    ]);
    expect(bench.alarmsOf('revocation_stale')).toMatchObject([{ message: expect.stringMatching(reason) }]);
  }

  test('when its key is not in the operator’s JWKS', async () => {
    const bench = await seller(p256.publicJwk);
    await signed(bench.server, ed25519);
    await refused(bench, /not in the operator's JWKS/);
  });

  test('when it carries its own key', async () => {
    const bench = await seller(p256.publicJwk);
    await signed(bench.server, ed25519, { header: { jwk: ed25519.publicJwk } });
    await refused(bench, /not in the operator's JWKS/);
  });

  test('when it is signed by another key of that kid', async () => {
    const bench = await seller(ed25519.publicJwk);
    await signed(bench.server, await generateKey('ed25519', 'webhook-signing', { kid: 'ed' }));
    await refused(bench, /does not verify/);
  });

  test('when its payload was changed', async () => {
    const bench = await seller(ed25519.publicJwk);
    await signed(bench.server, ed25519);
    const jws = (await (await fetch(`${bench.server.origin}${LIST}`)).json()) as { payload: string };
    const list: object = JSON.parse(Buffer.from(jws.payload, 'base64url').toString());
    const payload = Buffer.from(JSON.stringify({ ...list, revoked_kids: [] })).toString('base64url');
    bench.server.serve(LIST, { ...jws, payload });
    await refused(bench, /does not verify/);
  });

  test.each([
    ['use is not sig', { use: 'enc' }, /use is not sig/],
    ['no use', { use: undefined }, /use is not sig/],
    ['another alg', { alg: 'ES256' }, /does not verify/],
    ['operations without verify', { key_ops: ['sign'] }, /does not verify/],
    ['a small-order point', { x: `AQ${'A'.repeat(41)}` }, /cannot be used/],
  ])('when its key has %s', async (_what, members, reason) => {
    const bench = await seller({ ...ed25519.publicJwk, ...members });
    await signed(bench.server, ed25519);
    await refused(bench, reason);
  });

  test('when its key is revoked by configuration', async () => {
    const bench = await seller(ed25519.publicJwk);
    await signed(bench.server, ed25519);
    const sender = { ...bench.sender, revocation: { revokedKids: ['ed'] } };
    expect(await bench.check('k', sender)).toBe('stale');
    expect(bench.alarmsOf('key_document_invalid')).toMatchObject([
      { message: expect.stringMatching(/revoked/) },
    ]);
  });

  test('when its key is revoked by the list in force, which stays in force', async () => {
    const { server, check, advance, alarmsOf } = await seller(ed25519.publicJwk, p256.publicJwk);
    await signed(server, ed25519, { kids: ['p256'] });
    await check('k');
    await signed(server, p256, { kids: [], at: START + 5 * MINUTE });
    advance(5 * MINUTE);
    expect([await check('p256'), await check('ed')]).toEqual(['revoked', 'valid']);
    expect(alarmsOf('key_document_invalid')).toHaveLength(1);
  });

  test('and the earlier one stays in force until it is stale', async () => {
    const { server, check, advance, alarmsOf } = await seller(ed25519.publicJwk);
    await signed(server, ed25519);
    await check('k');
    await signed(server, p256, { kids: [], at: START + 5 * MINUTE });
    advance(20 * MINUTE);
    expect([await check('revoked'), await check('k')]).toEqual(['revoked', 'valid']);
    expect(alarmsOf('key_document_invalid')).toHaveLength(1);
    advance(5 * MINUTE + 1);
    expect([await check('revoked'), await check('k')]).toEqual(['revoked', 'stale']);
  });
});

test('a list that is signed by a key outside the JWKS: deliveries get 503, until one of the JWKS signs it', async () => {
  const { server, sender } = await startSeller(ed25519.publicJwk);
  const stranger = await generateKey('ed25519', 'webhook-signing', { kid: 'stranger' });
  const { deliver, advance, alarmsOf } = deliveryBench({ agentUrl: sender.agentUrl });
  await signed(server, stranger);
  expect(await deliver(ed25519)).toBe('unavailable webhook_signature_revocation_stale 503');
  expect(alarmsOf('revocation_stale')).toMatchObject([{ sender: sender.agentUrl }]);
  // Nor does the name of a key that is in it help.
  await signed(server, stranger, { header: { kid: 'ed' } });
  advance(10 * MINUTE);
  expect(await deliver(ed25519)).toBe('unavailable webhook_signature_revocation_stale 503');
  await signed(server, ed25519, { at: START + 20 * MINUTE });
  advance(10 * MINUTE);
  expect(await deliver(ed25519)).toBe('accepted 200');
});
