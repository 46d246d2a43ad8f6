import { decodeBase64 } from '../codec/base64.ts';
import { parseStrictObject } from '../codec/strict-json.ts';
import type { Transport, TransportInit } from './contract.ts';
import { clampLifetime, type DocumentKind, type Parsed } from './document.ts';

/** What an operator publishes (verification.md §5.25), as far as check 9 needs it. */
export interface RevocationList {
  readonly kids: ReadonlySet<string>;
  /** Unix ms. */
  readonly updated: number;
  /** Unix ms. */
  readonly nextUpdate: number;
  /** Ms between `updated` and `next_update`, within [1 min, 30 min]. */
  readonly interval: number;
}

/** A JWS in flattened form (RFC 7515 §7.2.2), whichever form it came in; not verified yet. */
export interface ListSignature {
  readonly kid: string;
  readonly alg: string;
  readonly jws: { readonly protected: string; readonly payload: string; readonly signature: string };
}

/** What a URL served: a list, with the signature to be verified where it has one; or none. */
export interface PublishedList {
  readonly list?: RevocationList;
  readonly signature?: ListSignature;
}

type JsonObject = Readonly<Record<string, unknown>>;

/** What the profile's keys can sign with (verification.md §2.8); never `none`, never a MAC. */
const LIST_ALGORITHMS: readonly string[] = ['EdDSA', 'ES256'];

const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i;
/** RFC 7515 §7.1. */
const COMPACT = /^\s*([\w-]+)\.([\w-]+)\.([\w-]+)\s*$/;
/** Members by which a JSON text sets up to be a list, however broken the rest of it is. */
const LIST_MEMBER = /^\s*\{[^]*"(?:revoked_kids|payload)"\s*:/;

/** Whether bytes set up to be a list: then they switch revocation on, even where they cannot be read. */
export function claimsToBeList(bytes: Uint8Array): boolean {
  const text = new TextDecoder().decode(bytes);
  return COMPACT.test(text) || LIST_MEMBER.test(text);
}

/** Reads a list in any of its forms: plain JSON, flattened JWS, compact JWS. The signature is verified elsewhere. */
export function parsePublished(bytes: Uint8Array, url: string): Parsed<PublishedList> {
  const [, head, payload, signature] = COMPACT.exec(new TextDecoder().decode(bytes)) ?? [];
  if (head !== undefined) return parseSigned({ protected: head, payload, signature }, url);
  const json = parseStrictObject(bytes);
  if (!json.ok) return { ok: false, reason: json.detail };
  if ('signatures' in json.value)
    return { ok: false, reason: 'a JWS with several signatures; the forms are flattened and compact' };
  if ('payload' in json.value || 'signature' in json.value) return parseSigned(json.value, url);
  const list = parseList(json.value, url);
  return typeof list === 'string' ? { ok: false, reason: list } : { ok: true, value: { list } };
}

function parseSigned(members: JsonObject, url: string): Parsed<PublishedList> {
  const { protected: head, payload, signature } = members;
  if (typeof head !== 'string' || typeof payload !== 'string' || typeof signature !== 'string') {
    return { ok: false, reason: 'a JWS without protected, payload or signature' };
  }
  const header = decodedObject(head);
  if (header === undefined) return { ok: false, reason: 'the protected header of the JWS is no JSON object' };
  const { kid, alg } = header;
  // Keys are named, never brought along: `jwk`, `jku`, `x5c` and `x5u` are not looked at (RFC 7515 §4.1.2 to §4.1.6).
  if (typeof kid !== 'string') return { ok: false, reason: 'the protected header of the JWS names no kid' };
  if (typeof alg !== 'string' || !LIST_ALGORITHMS.includes(alg)) {
    return { ok: false, reason: `the alg of the JWS is none of ${LIST_ALGORITHMS.join(', ')}` };
  }
  if ('crit' in header) return { ok: false, reason: 'the JWS has critical extensions' };
  const content = decodedObject(payload);
  if (content === undefined) return { ok: false, reason: 'the payload of the JWS is no JSON object' };
  const list = parseList(content, url);
  if (typeof list === 'string') return { ok: false, reason: list };
  const jws = { protected: head, payload, signature };
  return { ok: true, value: { list, signature: { kid, alg, jws } } };
}

function decodedObject(text: string): JsonObject | undefined {
  const bytes = decodeBase64(text);
  const json = bytes && parseStrictObject(bytes);
  return json?.ok === true ? json.value : undefined;
}

function parseList(content: JsonObject, url: string): RevocationList | string {
  const { issuer, updated, next_update: next, revoked_kids: kids, revoked_jtis: jtis } = content;
  if (issuer !== new URL(url).origin) return 'issuer is not the origin of the list';
  const nextUpdate = instant(next);
  if (nextUpdate === undefined) return 'next_update is not a timestamp';
  const updatedAt = instant(updated);
  if (updatedAt === undefined) return 'updated is not a timestamp';
  if (!isStrings(kids)) return 'revoked_kids is not an array of strings';
  // No webhook of this protocol has a jti; the member is read only to see that the list is one.
  if (jtis !== undefined && !isStrings(jtis)) return 'revoked_jtis is not an array of strings';
  return {
    kids: new Set(kids),
    updated: updatedAt,
    nextUpdate,
    interval: clampLifetime(nextUpdate - updatedAt),
  };
}

function instant(text: unknown): number | undefined {
  if (typeof text !== 'string' || !TIMESTAMP.test(text)) return undefined;
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? undefined : ms;
}

function isStrings(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

/** 256 KiB: verification.md §5.13. */
const MAX_BYTES = 262_144;
/** Ms after which an origin that has no list is asked again: the first one may come with the first stolen key. */
const NONE_LIFE_MS = 5 * 60_000;

/**
 * Revocation lists as documents. Where none is required, whatever does not set up to be one (a web site's page for any
 * path, nothing at all) says that there is none. From the first that does, one is required, and its absence a failure.
 * @param registers what is known of the list at a URL; `required` is set when a list is first served.
 */
export function revocationKind(registers: {
  get(url: string): { required: boolean } | undefined;
}): DocumentKind<PublishedList> {
  return {
    name: 'revocation list',
    maxBytes: MAX_BYTES,
    // How old a list may be is decided by its own `next_update`, in `isFresh`.
    hardLimitMs: Number.POSITIVE_INFINITY,
    parse: (bytes, url) => {
      const register = registers.get(url);
      if (register !== undefined && claimsToBeList(bytes)) register.required = true;
      if (register?.required !== true) return { ok: true, value: {} };
      if (bytes.length === 0) return { ok: false, reason: 'the server says that there is none' };
      return parsePublished(bytes, url);
    },
    dueAt: ({ list }, began) =>
      began + (list === undefined ? NONE_LIFE_MS : clampLifetime(list.nextUpdate - began)),
  };
}

/** Statuses from 300 to 499 that do not say "there is no such thing": "not changed", and "not now". */
const NO_ABSENCE: ReadonlySet<number> = new Set([304, 408, 425, 429]);

function saysThereIsNone({ status, type, redirected }: Response): boolean {
  // As a transport shows a redirect that it did not follow, or that it did.
  if (type === 'opaqueredirect' || redirected) return true;
  return status >= 300 && status < 500 && !NO_ABSENCE.has(status);
}

/** A transport for lists: where a server answers that there is none, an empty document, which is no failure. */
export function absentAsEmpty(transport: Transport): Transport {
  return async (url: string, init: TransportInit): Promise<Response> => {
    const response = await transport(url, init);
    if (!saysThereIsNone(response)) return response;
    await response.body?.cancel();
    return new Response(null);
  };
}
