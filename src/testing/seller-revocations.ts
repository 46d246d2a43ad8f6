import { encodeBase64Url } from '../codec/encoding.ts';
import type { Jwk } from '../crypto/engine.ts';
import { algorithmOf, signBytes } from '../sender/keys.ts';
import type { SellerKeyName, SellerKeys } from './seller-keys.ts';

/** How a fake seller publishes its revocation list. */
export interface RevokeOptions {
  /** Plain JSON, or a JWS in one of the two forms. `plain`. */
  readonly form?: 'plain' | 'flattened' | 'compact';
  /** Signs a JWS: a published key, or a private JWK of anybody's. `ed25519`. */
  readonly key?: SellerKeyName | Jwk;
  /** Ms from `updated`, the moment of each fetch, to `next_update`. 300 000. */
  readonly lifeMs?: number;
  /** Members of the list, instead of what they would be. */
  readonly members?: Readonly<Record<string, unknown>>;
}

export const REVOKE_NAMES: Readonly<Record<keyof RevokeOptions, true>> = {
  form: true,
  key: true,
  lifeMs: true,
  members: true,
};

export interface Publisher {
  readonly origin: string;
  readonly keys: SellerKeys['keys'];
  /** Unix ms. */
  readonly now: () => number;
}

/** A list as it is published at the moment of asking: an object, or the bytes of a compact JWS. */
export async function revocationList(
  { origin, keys, now }: Publisher,
  kids: readonly string[],
  options: RevokeOptions,
): Promise<unknown> {
  const { form = 'plain', key = 'ed25519', lifeMs = 300_000, members } = options;
  const list = {
    version: 1,
    issuer: origin,
    updated: new Date(now()).toISOString(),
    next_update: new Date(now() + lifeMs).toISOString(),
    revoked_kids: kids,
    revoked_jtis: [],
    ...members,
  };
  if (form === 'plain') return list;
  const jwk = typeof key === 'string' ? keys[key].privateJwk : key;
  const header = { alg: JWS_NAMES[algorithmOf(jwk)], kid: String(jwk['kid']) };
  const [head = '', payload = ''] = [header, list].map((part) =>
    encodeBase64Url(encode(JSON.stringify(part))),
  );
  // RFC 7515 §5.1
  const signature = encodeBase64Url(await signBytes(jwk, encode(`${head}.${payload}`)));
  if (form === 'flattened') return { protected: head, payload, signature };
  return encode(`${head}.${payload}.${signature}`);
}

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

const JWS_NAMES = { ed25519: 'EdDSA', 'ecdsa-p256-sha256': 'ES256' } as const;
