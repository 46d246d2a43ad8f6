import { oneOf, onlyKnown } from '../config/validate.ts';
import type { Jwk, SignatureAlgorithm } from '../crypto/engine.ts';
import { generateKey, type KeyPair } from '../sender/sign.ts';

/** The two keys that a fake seller publishes. */
export type SellerKeyName = 'ed25519' | 'p256';

/** How a key gives way to the next. */
export interface RotateOptions {
  /** The old key stays published beside the new one, until the next rotation without it. */
  readonly overlap?: boolean;
  /** Of the new key. The old one's own: its material is replaced under its `kid`. A new one by default. */
  readonly kid?: string;
}

export interface SellerKeys {
  /** What is published now, but for keys that overlap. */
  readonly keys: Readonly<Record<SellerKeyName, KeyPair>>;
  /** Makes a new key and publishes it instead of the old one. */
  readonly rotate: (name: SellerKeyName, options?: RotateOptions) => Promise<KeyPair>;
}

const ROTATE_NAMES: Readonly<Record<keyof RotateOptions, true>> = { overlap: true, kid: true };

const ALGORITHMS: Readonly<Record<SellerKeyName, SignatureAlgorithm>> = {
  ed25519: 'ed25519',
  p256: 'ecdsa-p256-sha256',
};

/** @throws ConfigError for a key that a fake seller does not have. */
export function requireKeyName(name: SellerKeyName): void {
  oneOf('key', name, Object.keys(ALGORITHMS) as SellerKeyName[]);
}

/** Makes both keys. @param publish is given the JWKS at once and after every change. */
export async function sellerKeys(
  protocol: string | undefined,
  publish: (keySet: { readonly keys: readonly Jwk[] }) => void,
): Promise<SellerKeys> {
  const make = (name: SellerKeyName, kid?: string): Promise<KeyPair> =>
    generateKey(ALGORITHMS[name], 'webhook-signing', {
      ...(protocol !== undefined && { protocol }),
      ...(kid !== undefined && { kid }),
    });
  const keys = { ed25519: await make('ed25519'), p256: await make('p256') };
  const older: Record<SellerKeyName, readonly Jwk[]> = { ed25519: [], p256: [] };
  const publishAll = (): void =>
    publish({ keys: [keys.ed25519.publicJwk, keys.p256.publicJwk, ...older.ed25519, ...older.p256] });
  publishAll();
  const rotate: SellerKeys['rotate'] = async (name, options = {}) => {
    onlyKnown('rotate', options, ROTATE_NAMES);
    const { overlap = false, kid } = options;
    requireKeyName(name);
    const pair = await make(name, kid);
    older[name] = overlap ? [keys[name].publicJwk, ...older[name]] : [];
    keys[name] = pair;
    publishAll();
    return pair;
  };
  return { keys, rotate };
}
