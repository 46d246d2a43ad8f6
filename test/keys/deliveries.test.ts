import { describe, expect, test } from 'vitest';
import { generateKey, type KeyPair } from '../../src/sender/sign.ts';
import { said } from '../receiver/setup.ts';
import {
  ACCEPTED,
  deliveryBench,
  type DeliveryBench,
  INVALID,
  keyNamed,
  UNAVAILABLE,
  UNKNOWN,
} from './delivery-bench.ts';
import { gate, sends, startKeyServer } from './key-server.ts';
import { BRAND, JWKS_PATH, MINUTE, type Seller, startSeller } from './setup.ts';

interface Bench extends DeliveryBench {
  readonly seller: Seller;
  readonly publish: (...keys: readonly KeyPair[]) => void;
  readonly jwksFetches: () => number;
}

/** A receiver before a seller that publishes these keys. */
async function bench(...keys: readonly KeyPair[]): Promise<Bench> {
  const seller = await startSeller(...keys.map(({ publicJwk }) => publicJwk));
  return {
    ...deliveryBench({ agentUrl: seller.sender.agentUrl }),
    seller,
    publish: (...published) => {
      seller.publish(...published.map(({ publicJwk }) => publicJwk));
    },
    jwksFetches: () => seller.server.count(JWKS_PATH),
  };
}

const outage = ({ seller }: Bench): void => {
  for (const path of [BRAND, JWKS_PATH]) seller.server.answer(path, (_req, res) => res.writeHead(502).end());
};

describe('faults on our side are never 4xx (verification.md §2.25 to §2.28)', () => {
  test('cold cache and outage: 503, and the same bytes are accepted when the seller is back', async () => {
    const key = await keyNamed('k');
    const made = await bench(key);
    outage(made);
    const delivery = await made.sign(key);
    const outcome = await made.send(delivery);
    expect(said(outcome)).toBe(UNAVAILABLE);
    expect(outcome.response.headers).toEqual({ 'Retry-After': '5' });
    expect(outcome.response.body).not.toContain('127.0.0.1');
    made.publish(key);
    made.seller.server.serve(BRAND, { agents: [{ url: made.seller.sender.agentUrl }] });
    made.advance(MINUTE);
    expect(said(await made.send(delivery))).toBe(ACCEPTED);
  });

  test('known key and outage: accepted within the hard limit, 503 beyond it', async () => {
    const key = await keyNamed('k');
    const made = await bench(key);
    expect(await made.deliver(key)).toBe(ACCEPTED);
    outage(made);
    made.advance(30 * MINUTE - 1);
    expect(await made.deliver(key)).toBe(ACCEPTED);
    made.advance(1);
    expect(await made.deliver(key)).toBe(UNAVAILABLE);
    expect(made.alarmsOf('key_fetch_failing').length).toBeGreaterThan(0);
  });

  test('a new keyid during an outage: 503, and accepted later', async () => {
    const [old, next] = [await keyNamed('old'), await keyNamed('new')];
    const made = await bench(old);
    await made.deliver(old);
    outage(made);
    expect(await made.deliver(next)).toBe(UNAVAILABLE);
    made.publish(old, next);
    made.advance(MINUTE);
    expect(await made.deliver(next)).toBe(ACCEPTED);
  });

  test('a new keyid while a refetch cools down: 503, and accepted later', async () => {
    const [old, next] = [await keyNamed('old'), await keyNamed('new')];
    const made = await bench(old);
    await made.deliver(old);
    expect(await made.deliver(await keyNamed('never'))).toBe(UNKNOWN);
    made.publish(old, next);
    made.advance(1000);
    expect(await made.deliver(next)).toBe(UNAVAILABLE);
    expect(made.jwksFetches()).toBe(2);
    made.advance(30_000);
    expect(await made.deliver(next)).toBe(ACCEPTED);
  });

  test('absent from a document fetched after the arrival: 401, and nothing but the code', async () => {
    const made = await bench(await keyNamed('k'));
    const outcome = await made.send(await made.sign(await keyNamed('x')));
    expect(said(outcome)).toBe(UNKNOWN);
    expect(outcome.response).toEqual({
      status: 401,
      headers: { 'WWW-Authenticate': 'Signature error="webhook_signature_key_unknown"' },
      body: '',
    });
  });

  test('key material replaced under its kid: one forced refetch, then accepted', async () => {
    const [first, second] = [await keyNamed('k'), await keyNamed('k')];
    const made = await bench(first);
    await made.deliver(first);
    made.publish(second);
    made.advance(30_000);
    expect(await made.deliver(second)).toBe(ACCEPTED);
    expect(made.jwksFetches()).toBe(2);
    expect(await made.deliver(second)).toBe(ACCEPTED);
    expect(made.jwksFetches()).toBe(2);
  });

  test('replaced by one of another algorithm: one forced refetch too, then accepted', async () => {
    const first = await keyNamed('k');
    const second = await generateKey('ecdsa-p256-sha256', 'webhook-signing', { kid: 'k' });
    const made = await bench(first);
    await made.deliver(first);
    made.publish(second);
    made.advance(30_000);
    expect(await made.deliver(second)).toBe(ACCEPTED);
    expect(made.jwksFetches()).toBe(2);
  });

  test('a purpose that was corrected under the same kid: one forced refetch, then accepted', async () => {
    const key = await keyNamed('k');
    const made = await bench();
    made.seller.publish({ ...key.publicJwk, proto_use: 'request-signing' });
    expect(await made.deliver(key)).toMatch(/key_purpose_invalid/);
    made.publish(key);
    made.advance(30_000);
    expect(await made.deliver(key)).toBe(ACCEPTED);
  });

  test('forged under a known key: 401, at most one refetch in 30 s', async () => {
    const [key, forger] = [await keyNamed('k'), await keyNamed('k')];
    const made = await bench(key);
    await made.deliver(key);
    expect(await made.deliver(forger)).toBe(INVALID);
    expect(made.jwksFetches()).toBe(1);
    made.advance(30_000);
    for (let count = 0; count < 20; count += 1) expect(await made.deliver(forger)).toBe(INVALID);
    expect(made.jwksFetches()).toBe(2);
    made.advance(30_000);
    expect(await made.deliver(forger)).toBe(INVALID);
    expect(made.jwksFetches()).toBe(3);
  });

  test('an invalid signature while the key may have been replaced and cannot be fetched: 503', async () => {
    const [key, next] = [await keyNamed('k'), await keyNamed('k')];
    const made = await bench(key);
    await made.deliver(key);
    outage(made);
    made.advance(MINUTE);
    expect(await made.deliver(next)).toBe(UNAVAILABLE);
    expect(await made.deliver(key)).toBe(ACCEPTED);
  });

  test.each([
    ['no entry', 'agent_not_listed', (url: string) => [{ url: `${url}/` }]],
    ['an ambiguous one', 'agent_not_listed', (url: string) => [{ url }, { url, jwks_uri: `${url}/keys` }]],
  ] as const)('brand.json has %s for the agent: 503 and an alarm', async (_what, code, agents) => {
    const key = await keyNamed('k');
    const made = await bench(key);
    made.seller.server.serve(BRAND, { agents: agents(made.seller.sender.agentUrl) });
    expect(await made.deliver(key)).toBe(UNAVAILABLE);
    expect(made.alarmsOf(code).length).toBeGreaterThan(0);
  });
});

describe('many deliveries at a time', () => {
  test('5,000 concurrent cold deliveries cause one brand.json and one JWKS fetch', async () => {
    const key = await keyNamed('k');
    const made = await bench(key);
    const deliveries = await Promise.all(Array.from({ length: 5000 }, () => made.sign(key)));
    const held = gate(sends(JSON.stringify({ keys: [key.publicJwk] })));
    made.seller.server.answer(JWKS_PATH, held.answerer);
    const answers = Promise.all(deliveries.map((delivery) => made.send(delivery)));
    await made.seller.server.asked(JWKS_PATH, 1);
    held.open();
    const told = (await answers).map(said);
    expect(told.filter((one) => one === ACCEPTED)).toHaveLength(5000);
    expect(made.seller.server.count(BRAND)).toBe(1);
    expect(made.jwksFetches()).toBe(1);
  });

  test('a flood of unknown keyids causes one refetch in 30 s and does not delay known ones', async () => {
    const [key, unknown] = [await keyNamed('k'), await keyNamed('x')];
    const made = await bench(key);
    await made.deliver(key);
    const held = gate(sends(JSON.stringify({ keys: [key.publicJwk] })));
    made.seller.server.answer(JWKS_PATH, held.answerer);
    const flood = Array.from({ length: 500 }, () => made.deliver(unknown));
    await made.seller.server.asked(JWKS_PATH, 2);
    // The refetch hangs on the server for as long as this takes.
    for (let count = 0; count < 20; count += 1) expect(await made.deliver(key)).toBe(ACCEPTED);
    held.open();
    const answers = new Set(await Promise.all(flood));
    expect([...answers].every((answer) => answer === UNKNOWN || answer === UNAVAILABLE)).toBe(true);
    made.advance(29_999);
    await Promise.all(Array.from({ length: 100 }, () => made.deliver(unknown)));
    expect(made.jwksFetches()).toBe(2);
    expect(made.seller.server.count(BRAND)).toBe(1);
  });
});

describe('publisher pins (verification.md §5.5)', () => {
  const ADAGENTS = '/.well-known/adagents.json';

  test('only the pin verifies: the JWKS is not consulted, its keys are unknown', async () => {
    const [published, swapped, pin] = await Promise.all(['a', 'k', 'k'].map(keyNamed));
    if (!published || !swapped || !pin) throw new Error('no keys');
    const seller = await startSeller(published.publicJwk, swapped.publicJwk);
    const { agentUrl } = seller.sender;
    const publisher = await startKeyServer();
    publisher.serve(ADAGENTS, { authorized_agents: [{ url: agentUrl, signing_keys: [pin.publicJwk] }] });
    const sender = { agentUrl, publishers: [publisher.host], edition: '3.0' } as const;
    const { deliver, advance } = deliveryBench(sender);
    expect(await deliver(pin)).toBe(ACCEPTED);
    expect(await deliver(swapped)).toBe(INVALID);
    advance(31_000);
    expect(await deliver(published)).toBe(UNKNOWN);
    expect(seller.server.count(JWKS_PATH)).toBe(0);
  });

  test('rotation with overlapping keys: both verify, then the new one alone', async () => {
    const [old, next] = [await keyNamed('old'), await keyNamed('new')];
    const { agentUrl } = (await startSeller()).sender;
    const publisher = await startKeyServer();
    const pin = (...keys: readonly KeyPair[]): void => {
      const signing_keys = keys.map(({ publicJwk }) => publicJwk);
      publisher.serve(ADAGENTS, { authorized_agents: [{ url: agentUrl, signing_keys }] });
    };
    pin(old);
    const { deliver, advance } = deliveryBench({ agentUrl, publishers: [publisher.host] });
    expect(await deliver(old)).toBe(ACCEPTED);
    pin(old, next);
    expect([await deliver(next), await deliver(old)]).toEqual([ACCEPTED, ACCEPTED]);
    pin(next);
    advance(60 * MINUTE);
    expect([await deliver(old), await deliver(next)]).toEqual([UNKNOWN, ACCEPTED]);
  });

  test('a publisher whose file cannot be fetched may pin: 503, until it is known not to', async () => {
    const key = await keyNamed('k');
    const seller = await startSeller(key.publicJwk);
    const { agentUrl } = seller.sender;
    const publisher = await startKeyServer();
    const { deliver, advance, alarmsOf } = deliveryBench({ agentUrl, publishers: [publisher.host] });
    expect(await deliver(key)).toBe(UNAVAILABLE);
    expect(alarmsOf('key_fetch_failing')).toMatchObject([{ document: 'adagents.json' }]);
    publisher.serve(ADAGENTS, { authorized_agents: [{ url: agentUrl }] });
    advance(MINUTE);
    expect(await deliver(key)).toBe(ACCEPTED);
  });
});
