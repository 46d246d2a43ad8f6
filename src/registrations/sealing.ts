import { decodeBase64, encodeBase64Url } from '../codec/base64.ts';
import { utf8 } from '../codec/utf8.ts';
import { RegistrationError } from './errors.ts';
import type { RandomBytes } from './route-token.ts';
import { SECRET_ID_BYTES, type Secret, type Secrets } from './secrets.ts';

/*
 * What is kept encrypted: AES-256-GCM under a key for its purpose alone, bound to the row that it stands in, so that no
 * ciphertext can be put in another's place. base64url of the secret's id (4 bytes), the nonce (12), ciphertext and tag.
 */

/** What is sealed, by the keys of `KeyPurpose`. */
export type SealedPurpose = 'arguments' | 'credentials';

/** The row that a text belongs to. */
export interface SealedPlace {
  readonly purpose: SealedPurpose;
  readonly sender: string;
  /** Of the row: the operation's id; '' for the seller's own. */
  readonly id: string;
}

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEAD_BYTES: number = SECRET_ID_BYTES + NONCE_BYTES;

type Subtle = typeof globalThis.crypto.subtle;
type Use = 'encrypt' | 'decrypt';

/** `WebCrypto` refuses bytes on shared memory, which a view may be on for the compiler: a copy never is. */
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

/** Encrypts a text under the newest secret. */
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

/** Id of the secret that a text was sealed under; undefined where it is none that `seal` made. */
export function secretIdOf(sealed: string): string | undefined {
  const bytes = decodeBase64(sealed);
  return bytes && bytes.length >= HEAD_BYTES + TAG_BYTES
    ? encodeBase64Url(bytes.subarray(0, SECRET_ID_BYTES))
    : undefined;
}

/**
 * Decrypts what `seal` made for this place.
 * @throws RegistrationError `secret_missing`, `sealed_text_invalid`.
 */
export async function unseal(secrets: Secrets, place: SealedPlace, sealed: string): Promise<string> {
  const secretId = secretIdOf(sealed);
  const bytes = decodeBase64(sealed);
  if (secretId === undefined || !bytes) throw invalid(place);
  const secret = secrets.named(secretId);
  if (!secret) {
    throw new RegistrationError(
      'secret_missing',
      `${place.purpose}: encrypted under a secret that is not given any more (${secretId}). Add it at the end of secrets.`,
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
    `${purpose}: what the store has cannot be decrypted: it was changed, cut, or belongs to another registration. Restore the row, or register again.`,
    { cause },
  );
}
