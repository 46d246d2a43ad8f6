import { generateKey } from '../../sender/sign.ts';
import { type ProbeCase, refused } from './case.ts';
import { COMPONENTS, HEADERS, type Refusal, WINDOW } from './refusals.ts';
import { editHeader, withBody, withHeader } from './spoil.ts';

const asCase = ({ name, sends, code, sign, spoil, needs }: Refusal): ProbeCase => ({
  name,
  sends,
  expect: refused(`webhook_signature_${code}`),
  ...(needs && { needs }),
  run: async (kit) => {
    const delivery = await kit.sign(kit.payloads.tool('completed'), sign?.(kit));
    return kit.send(spoil?.(delivery, kit) ?? delivery);
  },
});

const flipped = (value: string): string =>
  value.replace(/:(.)/, (_, digit: string) => (digit === 'A' ? ':B' : ':A'));

const KEYS: readonly Refusal[] = [
  {
    name: 'wrong-purpose',
    sends: 'a signature by a key for something else',
    code: 'key_purpose_invalid',
    needs: 'other',
    sign: ({ keys }) => (keys.other ? { key: keys.other } : {}),
  },
  {
    name: 'alg-mismatch',
    sends: 'an alg that is not the one of the key',
    code: 'key_purpose_invalid',
    needs: 'ed25519',
    sign: ({ keys }) => ({
      ...(keys.ed25519 && { key: keys.ed25519 }),
      params: { alg: 'ecdsa-p256-sha256' },
    }),
  },
  {
    name: 'revoked',
    sends: 'a signature by a revoked key',
    code: 'key_revoked',
    needs: 'revoked',
    sign: ({ keys }) => (keys.revoked ? { key: keys.revoked } : {}),
  },
  {
    name: 'tampered-signature',
    sends: 'a signature with one digit changed',
    code: 'invalid',
    spoil: (delivery) => editHeader(delivery, 'Signature', flipped),
  },
  {
    name: 'other-url',
    sends: 'a signature for another URL',
    code: 'invalid',
    sign: ({ url }) => ({ url: `${url}${url.includes('?') ? '&' : '?'}elsewhere` }),
    spoil: (delivery, { url }) => ({ ...delivery, url }),
  },
  {
    name: 'tampered-header',
    sends: 'a covered Content-Type that was changed',
    code: 'invalid',
    spoil: (delivery) => withHeader(delivery, 'Content-Type', 'application/json; charset=utf-8'),
  },
];

const DIGEST: readonly Refusal[] = [
  {
    name: 'tampered-body',
    sends: 'a body with one space more than was signed',
    code: 'digest_mismatch',
    spoil: (delivery) => withBody(delivery, `${new TextDecoder().decode(delivery.body)} `),
  },
  {
    name: 'tampered-not-json',
    sends: 'another body than was signed, and no JSON',
    code: 'digest_mismatch',
    spoil: (delivery) => withBody(delivery, '{"a":'),
  },
  {
    name: 'no-sha-256',
    sends: 'a Content-Digest with sha-512 alone',
    code: 'digest_mismatch',
    sign: () => ({ headers: { 'Content-Digest': `sha-512=:${'A'.repeat(86)}:` } }),
  },
];

/** Sent once and before everything else: a receiver may ask for the JWKS again only once in 30 s. */
export const UNKNOWN_KEY_CASE: ProbeCase = asCase({
  name: 'unknown-key',
  sends: 'a keyid that nobody publishes',
  code: 'key_unknown',
  sign: () => ({ params: { keyid: `probe-unknown-${crypto.randomUUID()}` } }),
});

/** Somebody else's key under the seller's `keyid`. */
const FORGED_CASE: ProbeCase = {
  name: 'forged-key',
  sends: 'a signature by another key under the known keyid',
  expect: refused('webhook_signature_invalid'),
  run: async (kit) => {
    const known = kit.keys.ed25519 ?? kit.keys.p256;
    const alg = kit.keys.ed25519 ? 'ed25519' : 'ecdsa-p256-sha256';
    const { privateJwk } = await generateKey(alg, 'webhook-signing', { kid: String(known?.['kid']) });
    return kit.send(await kit.sign(kit.payloads.tool('completed'), { key: privateJwk }));
  },
};

/** Checks 1 to 11, in their order. */
export const REFUSED_CASES: readonly ProbeCase[] = [
  ...[...HEADERS, ...WINDOW, ...COMPONENTS, ...KEYS].map(asCase),
  FORGED_CASE,
  ...DIGEST.map(asCase),
];
