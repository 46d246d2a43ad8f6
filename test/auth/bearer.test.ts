import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { authenticateBearer, type AuthResult, bearerToken } from '../../src/auth/for-tests.ts';
import type { HeadersInput } from '../../src/index.ts';
import { bench, request, sender } from './make-context.ts';

const TOKEN = 'tok_0123456789abcdef0123456789abcdef';
const PREVIOUS = 'tok_fedcba9876543210fedcba9876543210';
const OTHER = 'an-other-seller.of~ours+with/32chars==';

const seller = sender('seller.example', { scheme: 'bearer', tokens: [TOKEN, PREVIOUS] });
const other = sender('other.example', { scheme: 'bearer', tokens: [OTHER] });

const run = async (headers: HeadersInput, senders = [seller, other]): Promise<AuthResult> =>
  await authenticateBearer(bench().context, request(senders, headers, new Uint8Array()));
const withToken = (token: string): Promise<AuthResult> => run({ Authorization: `Bearer ${token}` });

/** Section 6: whatever a bearer delivery fails for here, sellers must see the challenge that they retry. */
const MALFORMED = { kind: 'refused', code: 'webhook_signature_header_malformed', challenge: 'bearer' };
const INVALID = { kind: 'refused', code: 'webhook_signature_invalid', challenge: 'bearer' };

describe('authenticateBearer', () => {
  it('finds the sender whose token it is', async () => {
    expect(await withToken(TOKEN)).toEqual({ kind: 'authentic', sender: seller, scheme: 'bearer' });
    expect(await withToken(OTHER)).toEqual({ kind: 'authentic', sender: other, scheme: 'bearer' });
  });

  it('takes the previous token while it is rotated', async () => {
    expect(await withToken(PREVIOUS)).toMatchObject({ kind: 'authentic', sender: seller });
  });

  it('takes the scheme in any case and any number of spaces (RFC 9110 §11.1)', async () => {
    for (const scheme of ['bearer', 'BEARER', 'bEaReR  ']) {
      expect(await run({ Authorization: `${scheme} ${TOKEN}` })).toMatchObject({ kind: 'authentic' });
    }
  });

  it('takes a token with any characters that its owner chose', async () => {
    const token = 'spaces, commas and "quotes" are no b64token!';
    const sellers = [sender('s.example', { scheme: 'bearer', tokens: [token] })];
    expect(await run({ Authorization: `Bearer ${token}` }, sellers)).toMatchObject({ kind: 'authentic' });
  });

  it.each([
    ['another', 'tok_ffffffffffffffffffffffffffffffff'],
    ['a prefix', TOKEN.slice(0, -1)],
    ['a longer one', `${TOKEN}0`],
    ['another case', TOKEN.toUpperCase()],
    ['two', `${TOKEN} ${TOKEN}`],
  ])('refuses a wrong token: %s', async (_, token) => {
    expect(await withToken(token)).toMatchObject(INVALID);
  });

  it.each<[string, HeadersInput]>([
    ['no field', {}],
    ['an empty field', { Authorization: '' }],
    ['the scheme alone', { Authorization: 'Bearer' }],
    ['the scheme and spaces', { Authorization: 'Bearer   ' }],
    ['another scheme', { Authorization: `Basic ${TOKEN}` }],
    ['no scheme', { Authorization: TOKEN }],
    ['no space', { Authorization: `Bearer${TOKEN}` }],
    [
      'a repeated line',
      [
        ['Authorization', `Bearer ${TOKEN}`],
        ['authorization', `Bearer ${TOKEN}`],
      ],
    ],
  ])('refuses a missing token: %s', async (_, headers) => {
    expect(await run(headers)).toMatchObject(MALFORMED);
  });

  it.each<[string, HeadersInput, string, string]>([
    ['authorization', {}, 'webhook_signature_header_malformed', 'authorization has no bearer token'],
    ['x-token', {}, 'webhook_signature_header_malformed', 'x-token has no bearer token'],
    ['x-token', { 'X-Token': '' }, 'webhook_signature_header_malformed', 'x-token has no bearer token'],
    [
      'x-token',
      [
        ['X-Token', TOKEN],
        ['x-token', TOKEN],
      ],
      'webhook_signature_header_malformed',
      'x-token came more than once',
    ],
    [
      'authorization',
      { Authorization: `Bearer ${TOKEN}x` },
      'webhook_signature_invalid',
      'the bearer token is not registered',
    ],
    [
      'x-token',
      { 'X-Token': `Bearer ${TOKEN}` },
      'webhook_signature_invalid',
      'the bearer token is not registered',
    ],
  ])('says why it refuses, in %s %o: %s, %s', async (header, headers, code, detail) => {
    const own = header === 'authorization' ? {} : { header };
    const sellers = [sender('s.example', { scheme: 'bearer', tokens: [TOKEN], ...own })];
    expect(await run(headers, sellers)).toEqual({ kind: 'refused', code, detail, challenge: 'bearer' });
  });

  it('takes no token of a sender registered otherwise', async () => {
    const hmac = sender('h.example', { scheme: 'hmac', secrets: [TOKEN] });
    expect(await run({ Authorization: `Bearer ${TOKEN}` }, [hmac])).toMatchObject(INVALID);
  });

  it('refuses everything but the tokens', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string(), async (token) => {
        expect(await run({ Authorization: `Bearer ${token}` })).toMatchObject({
          kind: 'refused',
          challenge: 'bearer',
        });
      }),
    );
  });
});

describe('bearerToken', () => {
  it('gives the token as written', () => {
    expect(bearerToken('Bearer  a b')).toBe('a b');
  });

  it('finds none in spaces and a line break', () => {
    expect(bearerToken(`bearer${' '.repeat(9)}\n`)).toBeUndefined();
  });
});
