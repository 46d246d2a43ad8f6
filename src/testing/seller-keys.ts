import type { Jwk, SignatureAlgorithm } from '../crypto/engine.ts';
import { generateKey, type KeyPair } from '../sender/sign.ts';

/** The two keys that a fake seller publishes. */
export type SellerKeyName = 'ed25519' | 'p256';

export interface SellerKeys {
  /** What is published now. */
  readonly keys: Readonly<Record<SellerKeyName, KeyPair>>;
  /** Makes a new key and publishes it instead of the old one. */
  readonly rotate: (name: SellerKeyName) => Promise<KeyPair>;
}

const ALGORITHMS: Readonly<Record<SellerKeyName, SignatureAlgorithm>> = {
  ed25519: 'ed25519',
  p256: 'ecdsa-p256-sha256',
};

/** Makes both keys. @param publish is given the JWKS at once and after every change. */
export async function sellerKeys(
  protocol: string | undefined,
  publish: (keySet: { readonly keys: readonly Jwk[] }) => void,
): Promise<SellerKeys> {
  const make = (name: SellerKeyName): Promise<KeyPair> =>
    generateKey(ALGORITHMS[name], 'webhook-signing', protocol === undefined ? {} : { protocol });
  const keys = { ed25519: await make('ed25519'), p256: await make('p256') };
  const publishAll = (): void => publish({ keys: [keys.ed25519.publicJwk, keys.p256.publicJwk] });
  publishAll();
  const rotate = async (name: SellerKeyName): Promise<KeyPair> => {
    const pair = await make(name);
    keys[name] = pair;
    publishAll();
    return pair;
  };
  return { keys, rotate };
}
