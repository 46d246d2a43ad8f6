import {
  generateKey,
  PROFILE_COMPONENTS,
  type SignDeliveryOptions,
  type SignedDelivery,
} from '../../sender/sign.ts';
import { editHeader, type ProbeCase, type ProbeKit, refused, withBody, withHeader } from './kit.ts';

type Sign = Partial<SignDeliveryOptions>;

/** A delivery that must be refused: signed otherwise, or altered afterwards. */
export interface Refusal {
  readonly name: string;
  readonly sends: string;
  /** Without `webhook_signature_`. */
  readonly code: string;
  readonly sign?: (kit: ProbeKit) => Sign;
  readonly alter?: (delivery: SignedDelivery, kit: ProbeKit) => SignedDelivery;
  readonly needs?: ProbeCase['needs'];
}

const unsigned = (delivery: SignedDelivery): SignedDelivery =>
  withHeader(withHeader(delivery, 'Signature', undefined), 'Signature-Input', undefined);

const PARAMETERS = ['created', 'expires', 'nonce', 'keyid', 'alg', 'tag'] as const;

/** Checks 1 to 4. */
export const HEADERS: readonly Refusal[] = [
  { name: 'unsigned', sends: 'no signature', code: 'header_malformed', alter: unsigned },
  {
    name: 'unsigned-not-json',
    sends: 'no signature, and a body that is not JSON',
    code: 'header_malformed',
    alter: (delivery) => withBody(unsigned(delivery), '{"a":'),
  },
  {
    name: 'no-signature-input',
    sends: 'Signature without Signature-Input',
    code: 'header_malformed',
    alter: (delivery) => withHeader(delivery, 'Signature-Input', undefined),
  },
  {
    name: 'not-base64',
    sends: 'a Signature that is not base64',
    code: 'header_malformed',
    alter: (delivery) => withHeader(delivery, 'Signature', 'sig1=:?!:'),
  },
  {
    name: 'label-twice',
    sends: 'the label sig1 twice',
    code: 'header_malformed',
    alter: (delivery) => editHeader(delivery, 'Signature', (value) => `${value}, ${value}`),
  },
  {
    name: 'parameter-twice',
    sends: 'the parameter alg twice',
    code: 'header_malformed',
    alter: (delivery) => editHeader(delivery, 'Signature-Input', (value) => `${value};alg="ed25519"`),
  },
  {
    name: 'created-string',
    sends: 'created as a string',
    code: 'header_malformed',
    alter: (delivery) =>
      editHeader(delivery, 'Signature-Input', (value) => value.replace(/created=(\d+)/, 'created="$1"')),
  },
  {
    name: 'nonce-short',
    sends: 'a nonce of 8 bytes',
    code: 'header_malformed',
    sign: () => ({ nonce: 'AAAAAAAAAAA' }),
  },
  {
    name: 'digest-short',
    sends: 'a Content-Digest that is not 32 bytes',
    code: 'header_malformed',
    sign: () => ({ headers: { 'Content-Digest': 'sha-256=:AAAA:' } }),
  },
  ...PARAMETERS.map((name) => ({
    name: `no-${name}`,
    sends: `no parameter ${name}`,
    code: 'params_incomplete',
    sign: () => ({ params: { [name]: undefined } }),
  })),
  {
    name: 'wrong-tag',
    sends: 'the tag of another purpose',
    code: 'tag_invalid',
    sign: ({ protocol }) => ({ params: { tag: `${protocol}/request-signing/v1` } }),
  },
  {
    name: 'wrong-alg',
    sends: 'an alg that is not allowed',
    code: 'alg_not_allowed',
    sign: () => ({ params: { alg: 'rsa-pss-sha512' } }),
  },
  {
    name: 'tag-before-window',
    sends: 'a wrong tag and an expired signature',
    code: 'tag_invalid',
    sign: ({ protocol, now }) => ({ now: () => now() - 900_000, params: { tag: `${protocol}/other/v1` } }),
  },
];

/** Check 5. */
export const WINDOW: readonly Refusal[] = [
  {
    name: 'expired',
    sends: 'a signature of a quarter of an hour ago',
    code: 'window_invalid',
    sign: ({ now }) => ({ now: () => now() - 900_000 }),
  },
  {
    name: 'from-the-future',
    sends: 'created 10 minutes ahead',
    code: 'window_invalid',
    sign: ({ now }) => ({ now: () => now() + 600_000 }),
  },
  {
    name: 'valid-too-long',
    sends: 'a validity of 301 s',
    code: 'window_invalid',
    sign: () => ({ lifetimeSeconds: 301 }),
  },
  {
    name: 'never-valid',
    sends: 'expires = created',
    code: 'window_invalid',
    sign: () => ({ lifetimeSeconds: 0 }),
  },
  {
    name: 'milliseconds',
    sends: 'created and expires in milliseconds',
    code: 'window_invalid',
    sign: ({ now }) => ({ params: { created: now(), expires: now() + 300_000 } }),
  },
];

/** Check 6. */
export const COMPONENTS: readonly Refusal[] = [
  ...PROFILE_COMPONENTS.map((left) => ({
    name: `uncovered-${left.replace('@', '')}`,
    sends: `${left} not covered`,
    code: 'components_incomplete',
    sign: () => ({ components: PROFILE_COMPONENTS.filter((name) => name !== left) }),
  })),
  {
    name: 'component-twice',
    sends: 'a component covered twice',
    code: 'components_incomplete',
    sign: () => ({ components: [...PROFILE_COMPONENTS, '@method'] }),
  },
  {
    name: 'component-parameter',
    sends: 'a component with a parameter (;sf)',
    code: 'components_incomplete',
    alter: (delivery) =>
      editHeader(delivery, 'Signature-Input', (value) =>
        value.replace('"content-type"', '"content-type";sf'),
      ),
  },
  {
    name: 'component-absent',
    sends: 'a covered field that is not there',
    code: 'components_incomplete',
    alter: (delivery) =>
      editHeader(delivery, 'Signature-Input', (value) =>
        value.replace('"content-type"', '"content-type" "x-absent"'),
      ),
  },
];

const asCase = ({ name, sends, code, sign, alter, needs }: Refusal): ProbeCase => ({
  name,
  sends,
  expect: refused(`webhook_signature_${code}`),
  ...(needs && { needs }),
  run: async (kit) => {
    const delivery = await kit.sign(kit.payloads.tool('completed'), sign?.(kit));
    return kit.send(alter?.(delivery, kit) ?? delivery);
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
    alter: (delivery) => editHeader(delivery, 'Signature', flipped),
  },
  {
    name: 'other-url',
    sends: 'a signature for another URL',
    code: 'invalid',
    sign: ({ url }) => ({ url: `${url}${url.includes('?') ? '&' : '?'}elsewhere` }),
    alter: (delivery, { url }) => ({ ...delivery, url }),
  },
  {
    name: 'tampered-header',
    sends: 'a covered Content-Type that was changed',
    code: 'invalid',
    alter: (delivery) => withHeader(delivery, 'Content-Type', 'application/json; charset=utf-8'),
  },
];

const DIGEST: readonly Refusal[] = [
  {
    name: 'tampered-body',
    sends: 'a body with one space more than was signed',
    code: 'digest_mismatch',
    alter: (delivery) => withBody(delivery, `${new TextDecoder().decode(delivery.body)} `),
  },
  {
    name: 'tampered-not-json',
    sends: 'another body than was signed, and no JSON',
    code: 'digest_mismatch',
    alter: (delivery) => withBody(delivery, '{"a":'),
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
