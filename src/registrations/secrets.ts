// Derives keys from the option `secrets`, makes and checks the tokens in URLs, and encrypts stored texts. Routes,
// operations and subscriptions use it. A leak of the store alone reveals no URL and no credentials.
import { decodeBase64, encodeBase64Url, utf8 } from '../codec/encoding.ts';
import { refuseRepeated, requireSet } from '../config/validate.ts';
import type { Hashes } from '../crypto/engine.ts';
import { equalBytes } from '../crypto/equal.ts';
import { ConfigError } from '../shared/errors.ts';
import { RegistrationError } from './registrations-errors.ts';

/** The purposes of derived keys. Each purpose has its own key. */
type KeyPurpose = 'route' | 'token' | 'arguments' | 'credentials';

/** One secret of the option `secrets`. */
interface Secret {
  /** The id of the secret in tokens and ciphertexts: base64url of 4 bytes that are derived from it. */
  readonly id: string;
  readonly idBytes: Uint8Array;
  /** The key for one purpose, 32 bytes. */
  keyFor(purpose: KeyPurpose): Uint8Array;
}

/** The option `secrets`. The newest secret makes tokens and ciphertexts; all secrets can check and decrypt them. */
export interface Secrets {
  readonly newest: Secret;
  named(id: string): Secret | undefined;
}

/** The length of a secret's id in bytes. */
const SECRET_ID_BYTES = 4;

/**
 * The least number of characters of a secret. As hex, 32 characters are 128 bits, the least that HMAC-SHA256 should
 * have.
 */
const MIN_LENGTH = 32;

/** Derives a key by HKDF-SHA256 (RFC 5869) without a salt, for one block: 32 bytes. */
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
 * Checks the option `secrets`, and derives the id of each secret.
 * @param secrets the newest first; each at least 32 characters, from a random source.
 * @throws ConfigError for an empty list, a secret that is undefined, short or one character repeated, or a duplicate.
 */
export function secretsOf(secrets: readonly (string | undefined)[], hashes: Hashes): Secrets {
  const named = new Map<string, Secret>();
  let newest: Secret | undefined;
  for (const [place, text] of (Array.isArray(secrets) ? secrets : []).entries()) {
    requireSet(`secrets[${place}]`, text);
    if (typeof text !== 'string' || text.length < MIN_LENGTH) {
      throw new ConfigError(
        `secrets[${place}]: less than ${MIN_LENGTH} characters. Make one with: openssl rand -base64 32`,
      );
    }
    refuseRepeated(`secrets[${place}]`, text);
    const secret = secretOf(hashes, text);
    if (named.has(secret.id)) {
      throw new ConfigError(`secrets[${place}]: is a duplicate. Remove one of the two.`);
    }
    named.set(secret.id, secret);
    newest ??= secret;
  }
  if (!newest) {
    throw new ConfigError(
      'secrets: must be a list with at least one. Give the newest first: secrets: [newest, …older].',
    );
  }
  return { newest, named: (id) => named.get(id) };
}

/*
 * A token is the last segment of a seller's URL. It is base64url of the secret's id (4 bytes), 16 random bytes, and the
 * first 16 bytes of the HMAC-SHA256 of both. The HMAC shows that one of our secrets made the token, so a forged path
 * costs no read of the store.
 */

const RANDOM_BYTES = 16;
const MAC_BYTES = 16;
const SIGNED_BYTES: number = SECRET_ID_BYTES + RANDOM_BYTES;

/** The form of a token. 36 bytes are exactly 48 characters of base64url, so each token has only one spelling. */
const FORM = /^[A-Za-z0-9_-]{48}$/;

/** The token in a seller's URL, made by one of the secrets. */
interface RouteToken {
  readonly text: string;
  /**
   * The random part of the token, which is the id of the route's row. Only this part is stored, so a leak of the store
   * reveals no URL.
   */
  readonly id: string;
  readonly secretId: string;
}

/** Returns `count` random bytes. */
export type RandomBytes = (count: number) => Uint8Array;

function macOf(hashes: Hashes, secret: Secret, signed: Uint8Array): Uint8Array {
  return hashes.hmacSha256(secret.keyFor('route'), signed).subarray(0, MAC_BYTES);
}

function routeToken(hashes: Hashes, secret: Secret, random: Uint8Array): RouteToken {
  const bytes = new Uint8Array(SIGNED_BYTES + MAC_BYTES);
  bytes.set(secret.idBytes);
  bytes.set(random, SECRET_ID_BYTES);
  bytes.set(macOf(hashes, secret, bytes.subarray(0, SIGNED_BYTES)), SIGNED_BYTES);
  return { text: encodeBase64Url(bytes), id: encodeBase64Url(random), secretId: secret.id };
}

/** Makes a new token by the newest secret. */
export function makeRouteToken(secrets: Secrets, hashes: Hashes, randomBytes: RandomBytes): RouteToken {
  return routeToken(hashes, secrets.newest, randomBytes(RANDOM_BYTES));
}

/**
 * Restores the token of a route from its random part; undefined if the secret that made it is no longer in `secrets`.
 */
export function routeTokenOf(
  secrets: Secrets,
  hashes: Hashes,
  route: { readonly id: string; readonly secretId: string },
): RouteToken | undefined {
  const secret = secrets.named(route.secretId);
  const random = decodeBase64(route.id);
  return secret && random?.length === RANDOM_BYTES ? routeToken(hashes, secret, random) : undefined;
}

/**
 * Returns the token in `text`; undefined if none of the secrets made it. The time of the check does not reveal how much
 * of the HMAC is right. The time may reveal which secret made the token, which is harmless because the id of a secret
 * is public.
 */
export function readRouteToken(secrets: Secrets, hashes: Hashes, text: string): RouteToken | undefined {
  const bytes = FORM.test(text) ? decodeBase64(text) : undefined;
  const secret = bytes && secrets.named(encodeBase64Url(bytes.subarray(0, SECRET_ID_BYTES)));
  if (!secret) return undefined;
  const mac = macOf(hashes, secret, bytes.subarray(0, SIGNED_BYTES));
  if (!equalBytes(mac, bytes.subarray(SIGNED_BYTES))) return undefined;
  return { text, id: encodeBase64Url(bytes.subarray(SECRET_ID_BYTES, SIGNED_BYTES)), secretId: secret.id };
}

/**
 * Returns the token of an operation for `push_notification_config`, 43 characters. It is derived from the secret and
 * the operation's id. So it is not stored, and a repeated call has the same token.
 */
export function operationToken(secret: Secret, hashes: Hashes, operationId: string): string {
  return encodeBase64Url(hashes.hmacSha256(secret.keyFor('token'), utf8(operationId)));
}

/** True if the last segment of a path has the form of a token, valid or not. */
export function hasTokenForm(path: string): boolean {
  return FORM.test(path.slice(path.lastIndexOf('/') + 1));
}

/*
 * Stored texts are encrypted by AES-256-GCM, with one key for each purpose. They are bound to their row, so that a
 * ciphertext cannot be moved to another row. The format is base64url of the secret's id (4 bytes), the nonce (12),
 * ciphertext and tag.
 */

/** The purposes for which texts are encrypted. */
type SealedPurpose = 'arguments' | 'credentials';

/** The row to which an encrypted text is bound. */
export interface SealedPlace {
  readonly purpose: SealedPurpose;
  readonly sender: string;
  /** The id of the row: the operation's id for arguments; the kind of the route for credentials. */
  readonly id: string;
}

/** The length of a nonce. AES-GCM takes a nonce of 12 bytes without hashing it first (NIST SP 800-38D §8.2). */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEAD_BYTES: number = SECRET_ID_BYTES + NONCE_BYTES;

type Subtle = typeof globalThis.crypto.subtle;
type Use = 'encrypt' | 'decrypt';

/**
 * Copies the bytes, because `WebCrypto` refuses bytes in shared memory. By its type a `Uint8Array` may be in shared
 * memory; a copy never is.
 */
function copy(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(bytes);
}

function aesGcm(
  subtle: Subtle,
  use: Use,
  secret: Secret,
  nonce: Uint8Array,
  place: SealedPlace,
): (data: Uint8Array) => Promise<Uint8Array> {
  const additionalData = copy(utf8(JSON.stringify([place.purpose, place.sender, place.id])));
  return async (data) => {
    const key = await subtle.importKey('raw', copy(secret.keyFor(place.purpose)), 'AES-GCM', false, [use]);
    return new Uint8Array(
      await subtle[use]({ name: 'AES-GCM', iv: copy(nonce), additionalData }, key, copy(data)),
    );
  };
}

/** Encrypts a text under the newest secret, and binds it to the row `place`. */
export async function seal(
  secrets: Secrets,
  place: SealedPlace,
  text: string,
  randomBytes: RandomBytes,
): Promise<string> {
  const secret = secrets.newest;
  const nonce = randomBytes(NONCE_BYTES);
  const sealed = await aesGcm(globalThis.crypto.subtle, 'encrypt', secret, nonce, place)(utf8(text));
  const bytes = new Uint8Array(HEAD_BYTES + sealed.length);
  bytes.set(secret.idBytes);
  bytes.set(nonce, SECRET_ID_BYTES);
  bytes.set(sealed, HEAD_BYTES);
  return encodeBase64Url(bytes);
}

/** Returns the id of the secret under which a text was encrypted; undefined if `seal` did not make the text. */
export function secretIdOf(sealed: string): string | undefined {
  const bytes = decodeBase64(sealed);
  return bytes && bytes.length >= HEAD_BYTES + TAG_BYTES
    ? encodeBase64Url(bytes.subarray(0, SECRET_ID_BYTES))
    : undefined;
}

/** True if a text was encrypted under another secret than the newest. */
export function isOlder(secrets: Secrets, sealed: string | undefined): boolean {
  return sealed !== undefined && secretIdOf(sealed) !== secrets.newest.id;
}

/**
 * Decrypts a text that `seal` made for the row `place`.
 * @throws RegistrationError `secret_missing` if its secret is not in `secrets`, `sealed_text_invalid` if the text was
 *   changed or is of another row.
 */
export async function unseal(secrets: Secrets, place: SealedPlace, sealed: string): Promise<string> {
  const secretId = secretIdOf(sealed);
  const bytes = decodeBase64(sealed);
  if (secretId === undefined || !bytes) throw invalid(place);
  const secret = secrets.named(secretId);
  if (!secret) {
    throw new RegistrationError(
      'secret_missing',
      `${place.purpose}: encrypted under an unknown secret (${secretId}). Add it at the end of secrets.`,
    );
  }
  const nonce = bytes.subarray(SECRET_ID_BYTES, HEAD_BYTES);
  const open = aesGcm(globalThis.crypto.subtle, 'decrypt', secret, nonce, place);
  try {
    return new TextDecoder().decode(await open(bytes.subarray(HEAD_BYTES)));
  } catch (error) {
    throw invalid(place, error);
  }
}

function invalid({ purpose }: SealedPlace, cause?: unknown): RegistrationError {
  return new RegistrationError(
    'sealed_text_invalid',
    `${purpose}: the stored text cannot be decrypted: it was changed, cut, or belongs to another registration. Restore the row, or register again.`,
    { cause },
  );
}

/** True for the error of an encrypted text that no secret can decrypt. */
export const isLostText = (error: unknown): boolean =>
  error instanceof RegistrationError && error.code === 'sealed_text_invalid';
