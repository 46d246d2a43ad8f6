import { ed25519 } from '@noble/curves/ed25519.js';
import { p256 } from '@noble/curves/nist.js';
import { createHash, createPrivateKey, sign } from 'node:crypto';
import { encodeBase64Url } from '../../src/codec/for-tests.ts';
import type { Jwk, Sender } from '../../src/index.ts';
import type { Signer } from '../auth/rfc9421/support.ts';

/** The same in every run, or a seed would not give the same bytes again. */
const secretOf = (kid: string): Uint8Array => createHash('sha256').update(`fuzz ${kid}`).digest();

const published = (kid: string, alg: string): Jwk => ({
  kid,
  alg,
  use: 'sig',
  key_ops: ['verify'],
  proto_use: 'webhook-signing',
});

function edSigner(kid: string): Signer {
  const secret = secretOf(kid);
  const x = encodeBase64Url(ed25519.getPublicKey(secret));
  const jwk = { kty: 'OKP', crv: 'Ed25519', x };
  const key = createPrivateKey({ key: { ...jwk, d: encodeBase64Url(secret) }, format: 'jwk' });
  return {
    alg: 'ed25519',
    jwk: { ...jwk, ...published(kid, 'EdDSA') },
    sign: (data) => sign(null, data, key),
  };
}

/** By noble, whose ECDSA needs no random number (RFC 6979). */
function ecSigner(kid: string): Signer {
  const secret = secretOf(kid);
  const point = p256.getPublicKey(secret, false);
  const [x, y] = [encodeBase64Url(point.subarray(1, 33)), encodeBase64Url(point.subarray(33))];
  return {
    alg: 'ecdsa-p256-sha256',
    jwk: { kty: 'EC', crv: 'P-256', x, y, ...published(kid, 'ES256') },
    sign: (data) => p256.sign(data, secret, { lowS: false }),
  };
}

const withJwk = (signer: Signer, jwk: Readonly<Record<string, unknown>>): Signer => ({
  ...signer,
  jwk: { ...signer.jwk, ...jwk },
});

/** Who sign good deliveries: two keys of the first seller, one of the second. */
export const SIGNERS: readonly Signer[] = [edSigner('ed-1'), ecSigner('ec-1'), edSigner('ed-2')];
/** Nobody published it. */
export const UNKNOWN: Signer = edSigner('unknown');
export const REVOKED: readonly Signer[] = [edSigner('revoked-ed'), ecSigner('revoked-ec')];
/** Whose revocation list cannot be had, and whose keys cannot. */
export const STALE: Signer = edSigner('stale');
export const KEYLESS: Signer = edSigner('keyless');
/** Published in a way that check 8 refuses. */
export const UNFIT: readonly Signer[] = [
  withJwk(edSigner('unfit-use'), { use: 'enc' }),
  withJwk(edSigner('unfit-ops'), { key_ops: ['sign'] }),
  withJwk(ecSigner('unfit-purpose'), { proto_use: 'request-signing' }),
  withJwk(edSigner('unfit-alg'), { alg: 'ES256' }),
  withJwk(ecSigner('unfit-y'), { y: undefined }),
  withJwk(edSigner('unfit-kty'), { kty: 'oct' }),
];

const jwks = (signers: readonly Signer[]): Jwk[] => signers.map(({ jwk }) => jwk);
const kids = (signers: readonly Signer[]): string[] => signers.map(({ jwk }) => String(jwk['kid']));

export const AGENTS = ['https://one.example/mcp', 'https://two.example/mcp'] as const;
export const HMAC_SECRET = 'an hmac secret of 32 characters, or more';
export const NOTIFICATION_TOKEN = 'a-notification-token';
export const BEARER_TOKEN = 'a-bearer-token-of-32-characters-or-more';

const notificationToken = { token: NOTIFICATION_TOKEN, onMismatch: 'refuse' } as const;

export const SIGNING_SENDERS: readonly Sender[] = [
  {
    agentUrl: AGENTS[0],
    pins: jwks([...SIGNERS.slice(0, 2), ...REVOKED, ...UNFIT]),
    revocation: { revokedKids: kids(REVOKED) },
    notificationToken,
  },
  { agentUrl: AGENTS[1], pins: jwks(SIGNERS.slice(2)), notificationToken },
];
/** With those of whom something cannot be had. */
export const LIVING_SENDERS: readonly Sender[] = [
  ...SIGNING_SENDERS,
  {
    agentUrl: 'https://stale.example/mcp',
    pins: jwks([STALE]),
    revocation: { url: 'https://stale.example/revocations.json' },
  },
  { agentUrl: 'https://keyless.example/mcp' },
];
export const HMAC_SENDERS: readonly Sender[] = [
  { agentUrl: AGENTS[0], auth: { hmac: { secret: HMAC_SECRET } } },
];
export const BEARER_SENDERS: readonly Sender[] = [
  { agentUrl: AGENTS[0], auth: { bearer: { token: BEARER_TOKEN } } },
];
