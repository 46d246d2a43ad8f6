import { describe, expect, test } from 'vitest';
import { claimsToBeList, parsePublished } from '../../src/keys/for-tests.ts';
import { MINUTE, START } from './setup.ts';

const AT = 'https://seller.example:8443/r.json';
const good = {
  version: 1,
  issuer: 'https://seller.example:8443',
  updated: '2026-03-01T12:00:00Z',
  next_update: '2026-03-01T14:10:00.5+02:00',
  revoked_kids: ['a'],
  revoked_jtis: ['j'],
};
const value = {
  kids: new Set(['a']),
  updated: START,
  nextUpdate: START + 10 * MINUTE + 500,
  interval: 10 * MINUTE + 500,
};

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const base64url = (json: unknown): string =>
  Buffer.from(typeof json === 'string' ? json : JSON.stringify(json)).toString('base64url');
const parse = (json: unknown): ReturnType<typeof parsePublished> =>
  parsePublished(bytes(JSON.stringify(json)), AT);

const header = { alg: 'EdDSA', kid: 'k' };
const flattened = (head: unknown = header, payload: unknown = good): object => ({
  protected: base64url(head),
  payload: base64url(payload),
  signature: 'c2ln',
});

describe('a plain list', () => {
  test('is read', () => {
    expect(parse(good)).toEqual({ ok: true, value: { list: value } });
  });

  test.each([
    ['issuer', 'https://seller.example', 'issuer is not the origin of the list'],
    ['issuer', 'https://seller.example:8443/', 'issuer is not the origin of the list'],
    ['issuer', undefined, 'issuer is not the origin of the list'],
    ['next_update', 'tomorrow', 'next_update is not a timestamp'],
    ['next_update', '2026-13-01T12:00:00Z', 'next_update is not a timestamp'],
    ['next_update', 1_770_000_000, 'next_update is not a timestamp'],
    ['updated', undefined, 'updated is not a timestamp'],
    ['revoked_kids', 'a', 'revoked_kids is not an array of strings'],
    ['revoked_kids', undefined, 'revoked_kids is not an array of strings'],
    ['revoked_kids', ['a', 1], 'revoked_kids is not an array of strings'],
    ['revoked_jtis', {}, 'revoked_jtis is not an array of strings'],
  ])('%s: %j is refused', (member, wrong, reason) => {
    expect(parse({ ...good, [member]: wrong })).toEqual({ ok: false, reason });
    expect(parse(flattened(header, { ...good, [member]: wrong }))).toEqual({ ok: false, reason });
  });

  test('with a member twice is refused', () => {
    expect(parsePublished(bytes(`{"issuer":"x",${JSON.stringify(good).slice(1)}`), AT).ok).toBe(false);
  });
});

describe('a signed list', () => {
  const jws = { protected: base64url(header), payload: base64url(good), signature: 'c2ln' };
  const read = { ok: true, value: { list: value, signature: { kid: 'k', alg: 'EdDSA', jws } } };

  test('is read in flattened form, its unprotected header left alone', () => {
    expect(parse(jws)).toEqual(read);
    expect(parse({ ...jws, header: { kid: 'other' } })).toEqual(read);
  });

  test('is read in general form with one signature, its unprotected header left alone', () => {
    const { protected: head, payload, signature } = jws;
    expect(parse({ payload, signatures: [{ protected: head, signature }] })).toEqual(read);
    const entry = { protected: head, signature, header: { kid: 'other' }, payload: 'e30' };
    expect(parse({ payload, signatures: [entry] })).toEqual(read);
  });

  test('is read in compact form', () => {
    expect(parsePublished(bytes(`${Object.values(jws).join('.')}\n`), AT)).toEqual(read);
  });

  test.each([
    ['alg none', { ...header, alg: 'none' }, /alg/],
    ['a MAC', { ...header, alg: 'HS256' }, /alg/],
    ['RSA', { ...header, alg: 'RS256' }, /alg/],
    ['no alg', { kid: 'k' }, /alg/],
    ['no kid', { alg: 'EdDSA', jwk: {} }, /kid/],
    ['critical extensions', { ...header, crit: ['b64'], b64: false }, /critical/],
    ['a header that is not an object', '[]', /header/],
    ['a header with a member twice', '{"alg":"EdDSA","alg":"EdDSA","kid":"k"}', /header/],
  ])('with %s is refused', (_what, head, reason) => {
    expect(parse(flattened(head))).toEqual({ ok: false, reason: expect.stringMatching(reason) });
  });

  test.each([
    ['no signature', [base64url({ ...header, alg: 'none' }), base64url(good), ''], /alg/],
    ['a detached payload', [base64url(header), '', 'c2ln'], /payload/],
  ])('in compact form with %s is refused', (_what, parts, reason) => {
    const parsed = parsePublished(bytes(parts.join('.')), AT);
    expect(parsed).toEqual({ ok: false, reason: expect.stringMatching(reason) });
  });

  test.each([
    ['no signature of several', { payload: base64url(good), signatures: [] }, /exactly one/],
    ['two signatures', { payload: base64url(good), signatures: [jws, jws] }, /exactly one/],
    ['a signature and null', { payload: base64url(good), signatures: [jws, null] }, /exactly one/],
    ['signatures that are no array', { payload: base64url(good), signatures: jws }, /exactly one/],
    ['a signature that is no object', { payload: base64url(good), signatures: ['c2ln'] }, /exactly one/],
    ['both forms', { ...jws, signatures: [jws] }, /at once/],
    ['a general form without payload', { signatures: [jws] }, /without protected/],
    ['no protected header', { payload: base64url(good), signature: 'c2ln' }, /without protected/],
    ['a detached payload', { protected: base64url(header), signature: 'c2ln' }, /without protected/],
    ['no signature', { ...flattened(), signature: undefined }, /without protected/],
    ['a signature that is not text', { ...flattened(), signature: 1 }, /without protected/],
    ['a payload that is not an object', flattened(header, '"text"'), /payload/],
    ['a payload with a member twice', flattened(header, '{"a":1,"a":2}'), /payload/],
  ])('with %s is refused', (_what, document, reason) => {
    expect(parse(document)).toEqual({ ok: false, reason: expect.stringMatching(reason) });
  });
});

test.each([
  ['{"revoked_kids":', true],
  [' {"x":1,\n "payload" : ""', true],
  ['eyJh.e30.AA', true],
  // Unsecured, and detached: revocation is on, and the list is no good.
  ['eyJh.e30.', true],
  ['eyJh..AA', true],
  ['<html>{"revoked_kids":[]}', false],
  ['{"error":"revoked_kids"}', false],
  ['example.com is for sale', false],
  ['', false],
])('%j looks like a list: %s', (text, expected) => {
  expect(claimsToBeList(bytes(text))).toBe(expected);
});
