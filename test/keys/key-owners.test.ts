import { describe, expect, test } from 'vitest';
import type { KeyPair } from '../../src/sender/sign.ts';
import type { Outcome } from '../../src/outcome.ts';
import { said } from '../receiver/setup.ts';
import { ACCEPTED, deliveryBench, type DeliveryBench, keyNamed, UNAVAILABLE } from './delivery-bench.ts';
import { JWKS_PATH, MINUTE, type Seller, startSeller } from './setup.ts';

/** A minute: the shortest life that a JWKS may have. */
const SHORT = { 'cache-control': 'max-age=60' };
const LONG = { 'cache-control': 'max-age=1800' };

const publish = ({ server }: Seller, headers: Readonly<Record<string, string>>, ...keys: KeyPair[]): void => {
  server.serve(JWKS_PATH, { keys: keys.map(({ publicJwk: jwk }) => jwk) }, headers);
};

/** Two sellers at one URL, each with a key that was used, and the next key of the first. */
async function twoSellers(order: 'victim first' | 'thief first' = 'thief first') {
  const [victim, thief] = [await startSeller(), await startSeller()];
  const [old, own, next] = [await keyNamed('2026-a'), await keyNamed('own'), await keyNamed('2026-b')];
  publish(victim, LONG, old);
  publish(thief, SHORT, own);
  const sellers = order === 'victim first' ? [victim, thief] : [thief, victim];
  const bench = deliveryBench(...sellers.map(({ sender: { agentUrl } }) => ({ agentUrl })));
  expect(await bench.deliver(old)).toBe(ACCEPTED);
  expect(await bench.deliver(own)).toBe(ACCEPTED);
  return { bench, victim, thief, old, own, next };
}

const deliver = async (bench: DeliveryBench, key: KeyPair): Promise<Outcome> =>
  bench.send(await bench.sign(key));

const both = (...sellers: readonly Seller[]): unknown =>
  expect.objectContaining({
    sender: expect.any(String) as unknown,
    message: expect.stringMatching(
      new RegExp(sellers.map(({ sender }) => `(?=.*${sender.agentUrl})`).join('')),
    ) as unknown,
  });

describe("a registered seller that publishes another's key has none of its events (verification.md §2.36)", () => {
  test.each(['victim first', 'thief first'] as const)(
    "at a rotation, while the victim's copy lacks the new key, 5 of 5 (%s)",
    async (order) => {
      const { bench, victim, thief, old, own, next } = await twoSellers(order);
      publish(victim, LONG, old, next);
      publish(thief, SHORT, own, next);
      bench.advance(MINUTE);
      // Its own delivery brings the thief's new set; the victim's copy is fresh.
      expect(await bench.deliver(own)).toBe(ACCEPTED);
      for (let event = 0; event < 5; event += 1) {
        const outcome = await deliver(bench, next);
        expect([outcome.kind, outcome.sender]).not.toEqual(['accepted', thief.sender.agentUrl]);
        expect(said(outcome)).toBe(UNAVAILABLE);
      }
      expect(bench.alarmsOf('key_shared')).toContainEqual(both(thief, victim));
    },
  );

  test('the one whose key was known before the other published it keeps it, and the alarm names both', async () => {
    const { bench, victim, thief, old, own, next } = await twoSellers();
    publish(victim, SHORT, old, next);
    bench.advance(30 * MINUTE);
    expect(await bench.deliver(old)).toBe(ACCEPTED);
    // After the victim's new set the thief's is fetched, still without it.
    bench.advance(MINUTE);
    expect(await bench.deliver(own)).toBe(ACCEPTED);
    publish(thief, SHORT, own, next);
    bench.advance(MINUTE);
    expect(await bench.deliver(own)).toBe(ACCEPTED);
    for (let event = 0; event < 5; event += 1) {
      const outcome = await deliver(bench, next);
      expect([said(outcome), outcome.sender]).toEqual([ACCEPTED, victim.sender.agentUrl]);
    }
    expect(bench.alarmsOf('key_shared')).toContainEqual(both(thief, victim));
  });
});
