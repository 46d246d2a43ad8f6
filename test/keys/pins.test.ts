import { describe, expect, test } from 'vitest';
import { createEngine } from '../../src/auth/rfc9421/index.ts';
import { ConfigError, type Jwk } from '../../src/index.ts';
import { protocolsFor } from '../../src/for-tests.ts';
import { checkPins, createPins, type PinnedSender } from '../../src/keys/for-tests.ts';
import { publicJwk, senderEntry } from './setup.ts';

const AGENT = 'https://seller.example/mcp';
const pinned = (...pins: readonly unknown[]): PinnedSender => ({
  ...senderEntry(AGENT),
  pins: pins as readonly Jwk[],
});
const OFF_CURVE: Jwk = { kid: 'bad', kty: 'EC', crv: 'P-256', x: 'A'.repeat(43), y: 'A'.repeat(43) };

test('a sender without pins, or with good ones, passes', () => {
  expect(() => {
    checkPins({ agentUrl: AGENT });
    checkPins(pinned(publicJwk('a'), publicJwk('b')));
  }).not.toThrow();
});

describe('a pin that is evidently wrong is a ConfigError that names the sender', () => {
  test.each([
    ['no pins at all', [], 'empty'],
    ['not a JWK', ['x'], 'entry 0 is not a JWK'],
    ['no kid', [publicJwk('a'), { kty: 'OKP' }], 'entry 1 has no kid'],
    ['an empty kid', [publicJwk('')], 'entry 0 has no kid'],
    [
      'a revoked_at that is none',
      [{ ...publicJwk('a'), revoked_at: 'soon' }],
      'revoked_at of the kid "a" is not a timestamp',
    ],
    ['a kid twice', [publicJwk('a'), publicJwk('a')], 'the kid "a" occurs twice'],
  ])('%s', (_what, pins, message) => {
    const check = (): void => {
      checkPins(pinned(...pins));
    };
    expect(check).toThrow(ConfigError);
    expect(check).toThrow(`pins of ${AGENT}: ${message}`);
  });

  test('not an array', () => {
    expect(() => {
      checkPins({ agentUrl: AGENT, pins: {} as readonly Jwk[] });
    }).toThrow('not an array');
  });
});

test('pins that check 8 always refuses give a message each, and do not stop the start', async () => {
  const pins = createPins(await createEngine(), protocolsFor());
  const noPurpose = { ...publicJwk('b'), proto_use: 'request-signing' };
  expect(await pins.importAll(pinned(publicJwk('a'), OFF_CURVE, noPurpose))).toEqual([
    expect.stringContaining(`pins of ${AGENT}: the key "bad" cannot be used`),
    expect.stringContaining('the key "b" cannot be used: proto_use is not webhook-signing'),
  ]);
});

test('the pin gives the key without its secret members', async () => {
  const pins = createPins(await createEngine(), protocolsFor());
  const jwk = publicJwk('a');
  const sender = pinned({ ...jwk, d: 'secret' });
  await pins.importAll(sender);
  expect(await pins.key(sender, 'a')).toMatchObject({ kid: 'a', jwk, verifyKey: { alg: 'ed25519' } });
  expect(JSON.stringify(await pins.key(sender, 'a'))).not.toContain('secret');
  expect(await pins.key(sender, 'b')).toBeUndefined();
});

test('pins from a function that are malformed give a reason, never an exception', async () => {
  const pins = createPins(await createEngine(), protocolsFor());
  expect(await pins.key(pinned(publicJwk('a'), publicJwk('a')), 'a')).toContain('occurs twice');
  expect(await pins.key(pinned(OFF_CURVE), 'bad')).toMatchObject({
    kid: 'bad',
    verifyKey: expect.any(String),
  });
  expect(await pins.key(pinned(OFF_CURVE, publicJwk('a')), 'a')).toMatchObject({ kid: 'a' });
});
