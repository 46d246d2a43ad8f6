import { encodeBase64Url } from '../codec/base64.ts';
import { utf8 } from '../codec/utf8.ts';
import type { Hashes } from '../crypto/engine.ts';
import { ConfigError } from '../errors.ts';

/** What keys are derived for. One key is never used for two of them. */
export type KeyPurpose = 'route' | 'token' | 'arguments' | 'credentials';

/** One of the owner's secrets. */
export interface Secret {
  /** Names it in tokens and ciphertexts: base64url of 4 bytes that are derived from it. */
  readonly id: string;
  readonly idBytes: Uint8Array;
  /** 32 bytes: a key for this purpose alone. */
  keyFor(purpose: KeyPurpose): Uint8Array;
}

/** The owner's secrets: one to make things with, all to read them. */
export interface Secrets {
  readonly newest: Secret;
  named(id: string): Secret | undefined;
}

/** Bytes of a secret's id. */
export const SECRET_ID_BYTES = 4;

const MIN_LENGTH = 32;

/** HKDF-SHA256 (RFC 5869) without a salt, for one block: 32 bytes. */
function derive(hashes: Hashes, secret: Uint8Array, info: string): Uint8Array {
  const extracted = hashes.hmacSha256(new Uint8Array(32), secret);
  return hashes.hmacSha256(extracted, utf8(`proto-webhooks/registrations/${info}`), Uint8Array.of(1));
}

function secretOf(hashes: Hashes, text: string): Secret {
  const bytes = utf8(text);
  const keys = new Map<KeyPurpose, Uint8Array>();
  const idBytes = derive(hashes, bytes, 'id').subarray(0, SECRET_ID_BYTES);
  return {
    id: encodeBase64Url(idBytes),
    idBytes,
    keyFor: (purpose) => {
      const key = keys.get(purpose) ?? derive(hashes, bytes, purpose);
      keys.set(purpose, key);
      return key;
    },
  };
}

/**
 * @param secrets the newest first; each at least 32 characters, from a random source.
 * @throws ConfigError for an empty list, a short secret, or one that is there twice.
 */
export function secretsOf(secrets: readonly string[], hashes: Hashes): Secrets {
  const named = new Map<string, Secret>();
  let newest: Secret | undefined;
  for (const [place, text] of (Array.isArray(secrets) ? secrets : []).entries()) {
    if (typeof text !== 'string' || text.length < MIN_LENGTH) {
      throw new ConfigError(
        `secrets[${place}]: less than ${MIN_LENGTH} characters. Make one with: openssl rand -base64 32`,
      );
    }
    const secret = secretOf(hashes, text);
    if (named.has(secret.id)) {
      throw new ConfigError(`secrets[${place}]: is there twice. Leave one of them out.`);
    }
    named.set(secret.id, secret);
    newest ??= secret;
  }
  if (!newest) {
    throw new ConfigError(
      'secrets: none is given. Give a list, the newest first: secrets: [newest, …older].',
    );
  }
  return { newest, named: (id) => named.get(id) };
}
