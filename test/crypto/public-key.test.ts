import { describe, expect, it } from 'vitest';
import type { Jwk } from '../../src/index.ts';
import { createEngine } from '../../src/auth/rfc9421/index.ts';
import { readPublicKey } from '../../src/crypto/for-tests.ts';
import { base64url, bigEndian, ec, ed, okp, p } from './make.ts';

const edPoint = ed.B.multiplyUnsafe(5n).toBytes();
const edKey = okp(edPoint);
const { x, y } = p.G.toAffine();
const ecKey = ec(x, y);
const edX = String(edKey['x']);

describe('readPublicKey', () => {
  it('reads OKP Ed25519 (RFC 8037 §2) and EC P-256 (RFC 7518 §6.2.1)', () => {
    expect(readPublicKey(edKey)).toEqual({ alg: 'ed25519', point: edPoint, jwk: edKey });
    expect(readPublicKey(ecKey)).toEqual({
      alg: 'ecdsa-p256-sha256',
      point: p.G.toBytes(false),
      jwk: ecKey,
    });
  });

  it('drops private members and those that state a purpose, and looks at none of them', () => {
    const more = { kid: 'k', use: 'enc', key_ops: ['sign'], alg: 'RS256', d: 'not a key', ext: false, y: 7 };
    expect(readPublicKey({ ...edKey, ...more })).toEqual(readPublicKey(edKey));
    expect(readPublicKey({ ...more, ...ecKey })).toEqual(readPublicKey(ecKey));
  });

  it.each<[string, Jwk]>([
    ['oct', { kty: 'oct', k: edX }],
    ['RSA', { kty: 'RSA', n: edX, e: 'AQAB' }],
    ['X25519', { ...edKey, crv: 'X25519' }],
    ['Ed448', { ...edKey, crv: 'Ed448' }],
    ['P-384', { ...ecKey, crv: 'P-384' }],
    ['secp256k1', { ...ecKey, crv: 'secp256k1' }],
    ['EC with Ed25519', { ...edKey, kty: 'EC' }],
    ['OKP with P-256', { ...ecKey, kty: 'OKP' }],
    ['okp in lower case', { ...edKey, kty: 'okp' }],
    ['no kty', { crv: 'Ed25519', x: edX }],
    ['nothing', {}],
    ['kty of another type', { ...edKey, kty: ['OKP'] }],
  ])('refuses %s', (_, jwk) => {
    expect(readPublicKey(jwk)).toBe('kty and crv are neither OKP and Ed25519 nor EC and P-256');
  });

  it.each<[string, unknown]>([
    ['missing', undefined],
    ['null', null],
    ['a number', 5],
    ['an array', [edX]],
    ['empty', ''],
    ['padded', `${edX}=`],
    ['in the standard alphabet', `${edX.slice(0, 20)}+/${edX.slice(22)}`],
    ['with trailing bits set', `${edX.slice(0, 42)}B`],
    ['31 bytes', base64url(edPoint.subarray(1))],
    ['33 bytes', base64url(new Uint8Array([...edPoint, 0xff]))],
    ['33 bytes, a sign byte first', base64url(new Uint8Array([0, ...edPoint]))],
    ['64 bytes', base64url(new Uint8Array([...edPoint, ...edPoint]))],
    // The first 43 characters alone, and the last 43, would be a value.
    ['followed by one character more', `${edX}A`],
    ['preceded by one character more', `A${edX}`],
    ['with white space', `${edX}\n`],
    ['with a character that is none', `${edX.slice(0, 42)}é`],
  ])('refuses x %s', (_, value) => {
    expect(readPublicKey({ ...edKey, x: value })).toBe('x is not the unpadded base64url of 32 bytes');
    expect(readPublicKey({ ...ecKey, x: value })).toBe('x is not the unpadded base64url of 32 bytes');
  });

  it('refuses y that is missing or without its leading zeros (RFC 7518 §6.2.1.2)', () => {
    expect(readPublicKey({ ...ecKey, y: undefined })).toBe('y is not the unpadded base64url of 32 bytes');
    expect(readPublicKey({ ...ecKey, y: base64url(bigEndian(y, 31)) })).toBe(
      'y is not the unpadded base64url of 32 bytes',
    );
  });

  it('refuses y of 33 bytes', () => {
    for (const bytes of [
      [0, ...bigEndian(y)],
      [...bigEndian(y), 0xff],
    ]) {
      const value = base64url(new Uint8Array(bytes));
      expect(readPublicKey({ ...ecKey, y: value })).toBe('y is not the unpadded base64url of 32 bytes');
    }
  });

  it.each(['A', 'AA', '\n'])('refuses y with %j around it', (more) => {
    for (const value of [`${String(ecKey['y'])}${more}`, `${more}${String(ecKey['y'])}`])
      expect(readPublicKey({ ...ecKey, y: value })).toBe('y is not the unpadded base64url of 32 bytes');
  });

  it.each([null, undefined, 'key', 5])('refuses %s instead of a JWK', (value) => {
    expect(readPublicKey(value as unknown as Jwk)).toBe('the JWK is not an object');
  });
});

describe.each(['native', 'webcrypto', 'noble'] as const)('importKey of %s', (name) => {
  it('gives what readPublicKey found wrong, and keys in all other cases', async () => {
    const engine = await createEngine(name);
    expect(await engine.importKey({ kty: 'oct' })).toBe(readPublicKey({ kty: 'oct' }));
    expect(await engine.importKey({ ...edKey, x: '' })).toBe(readPublicKey({ ...edKey, x: '' }));
    const purposes = { use: 'enc', key_ops: [], alg: 'none', d: '!', ext: false };
    expect(await engine.importKey({ ...edKey, ...purposes })).toMatchObject({ alg: 'ed25519' });
    expect(await engine.importKey({ ...ecKey, ...purposes })).toMatchObject({ alg: 'ecdsa-p256-sha256' });
  });
});
