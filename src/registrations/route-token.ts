import { decodeBase64, encodeBase64Url } from '../codec/base64.ts';
import { utf8 } from '../codec/utf8.ts';
import { equalBytes } from '../crypto/equal.ts';
import type { Hashes } from '../crypto/engine.ts';
import { SECRET_ID_BYTES, type Secret, type Secrets } from './secrets.ts';

/*
 * The last segment of a seller's URL: base64url of the secret's id (4 bytes), 16 random bytes, and the first 16 bytes of
 * their HMAC-SHA256. It proves itself: a path that somebody made up costs no look into the store.
 */

const RANDOM_BYTES = 16;
const MAC_BYTES = 16;
const SIGNED_BYTES: number = SECRET_ID_BYTES + RANDOM_BYTES;

/** 36 bytes are 48 characters with no bit to spare, so a token has one spelling. */
const FORM = /^[A-Za-z0-9_-]{48}$/;

/** A token that was made by one of the secrets. */
export interface RouteToken {
  readonly text: string;
  /** The random part: by this the store knows the route, so that a store that leaks gives no URL away. */
  readonly id: string;
  readonly secretId: string;
}

/** So many random bytes. */
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

/** A new token, by the newest secret. */
export function makeRouteToken(secrets: Secrets, hashes: Hashes, randomBytes: RandomBytes): RouteToken {
  return routeToken(hashes, secrets.newest, randomBytes(RANDOM_BYTES));
}

/** The token of a route that is known by its random part; undefined where its secret is not given any more. */
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
 * The token that `text` is, where one of the secrets made it. The id of the secret is no secret: which one is meant may
 * show in the time it takes; how much of the HMAC is right does not.
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
 * `push_notification_config.token` of an operation: made of the secret and the operation's id, so that it is kept nowhere
 * and a repeated call has the same. 43 characters.
 */
export function operationToken(secret: Secret, hashes: Hashes, operationId: string): string {
  return encodeBase64Url(hashes.hmacSha256(secret.keyFor('token'), utf8(operationId)));
}

/** Whether the last segment of a path looks like a token, whoever made it. */
export function hasTokenForm(path: string): boolean {
  return FORM.test(path.slice(path.lastIndexOf('/') + 1));
}
