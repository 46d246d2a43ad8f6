import { describe, expect, it } from 'vitest';
import {
  makeRouteToken,
  operationToken,
  readRouteToken,
  routeTokenOf,
  secretsOf,
} from '../../src/registrations/for-tests.ts';
import { counted, FOREIGN, hashes, hkdf, hmac, idOf, NEWEST, OLDER } from './kit.ts';

const secrets = secretsOf([NEWEST, OLDER], hashes);
const before = secretsOf([OLDER], hashes);
const foreign = secretsOf([FOREIGN], hashes);

/** A token as the layout says, by node:crypto. */
function tokenBy(secret: string, random: Buffer): string {
  const signed = Buffer.concat([idOf(secret), random]);
  return Buffer.concat([signed, hmac(hkdf(secret, 'route'), signed).subarray(0, 16)]).toString('base64url');
}

const RANDOM = Buffer.from('000102030405060708090a0b0c0d0e0f', 'hex');

describe('a route token', () => {
  it('is base64url of the id of the newest secret, 16 random bytes and 16 bytes of their HMAC', () => {
    const token = makeRouteToken(secrets, hashes, counted());
    expect(token).toEqual({
      text: tokenBy(NEWEST, RANDOM),
      id: RANDOM.toString('base64url'),
      secretId: idOf(NEWEST).toString('base64url'),
    });
    expect(token.text).toMatch(/^[A-Za-z0-9_-]{48}$/);
  });

  it('is new each time', () => {
    const random = counted();
    expect(makeRouteToken(secrets, hashes, random).id).not.toBe(makeRouteToken(secrets, hashes, random).id);
  });

  it('reads as what it was made as, under the newest secret and older ones', () => {
    for (const made of [secrets, before].map((by) => makeRouteToken(by, hashes, counted()))) {
      expect(readRouteToken(secrets, hashes, made.text)).toEqual(made);
    }
  });

  it('is made again of its random part and the id of its secret', () => {
    const made = makeRouteToken(before, hashes, counted());
    expect(routeTokenOf(secrets, hashes, made)).toEqual(made);
    expect(routeTokenOf(foreign, hashes, made)).toBeUndefined();
    expect(routeTokenOf(secrets, hashes, { ...made, id: 'AAAA' })).toBeUndefined();
  });

  it('of somebody else is none, whatever secret it says it is of', () => {
    expect(readRouteToken(secrets, hashes, makeRouteToken(foreign, hashes, counted()).text)).toBeUndefined();
    const signed = Buffer.concat([idOf(NEWEST), RANDOM]);
    const forged = Buffer.concat([signed, hmac(hkdf(FOREIGN, 'route'), signed).subarray(0, 16)]);
    expect(readRouteToken(secrets, hashes, forged.toString('base64url'))).toBeUndefined();
  });

  it('with any one bit changed is none', () => {
    const bytes = Buffer.from(tokenBy(NEWEST, RANDOM), 'base64url');
    for (let bit = 0; bit < bytes.length * 8; bit += 1) {
      const changed = Buffer.from(bytes);
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(readRouteToken(secrets, hashes, changed.toString('base64url')), `bit ${bit}`).toBeUndefined();
    }
  });

  it('has one spelling', () => {
    // Random bytes that have both characters in which the alphabets differ.
    const text = tokenBy(NEWEST, Buffer.alloc(16, 0xfb));
    expect(readRouteToken(secrets, hashes, text)).toBeDefined();
    const others = [
      Buffer.from(text, 'base64url').toString('base64'),
      `${text}=`,
      `${text}A`,
      ` ${text}`,
      `${text}\n`,
      text.slice(0, -1),
      `${text}/`,
      '',
      'A'.repeat(48),
    ];
    for (const other of others) expect(readRouteToken(secrets, hashes, other), other).toBeUndefined();
  });
});

describe("an operation's token", () => {
  it('is the HMAC of its id, the same each time, of each secret another', () => {
    const id = '7b1c0f0e-3c57-4f0e-9a0b-6f8e1f6f2d11';
    const token = operationToken(secrets.newest, hashes, id);
    expect(token).toBe(hmac(hkdf(NEWEST, 'token'), id).toString('base64url'));
    expect(token).toHaveLength(43);
    expect(operationToken(before.newest, hashes, id)).not.toBe(token);
    expect(operationToken(secrets.newest, hashes, `${id}x`)).not.toBe(token);
  });
});
