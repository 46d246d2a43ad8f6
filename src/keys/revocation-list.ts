// Reads revocation lists in all their forms and verifies their signatures (verification.md §5.25).
// Called by `revocation.ts` and by the command line.

import { revokedSince } from '../auth/rfc9421/revoked-at.ts';
import { decodeBase64 } from '../codec/encoding.ts';
import { isJsonObject, type JsonObject } from '../codec/members.ts';
import { parseStrictObject } from '../codec/strict-json.ts';
import { ALGORITHM_NAMES, ALGORITHMS, type SignatureAlgorithm } from '../crypto/algorithms.ts';
import type { Jwk } from '../crypto/engine.ts';
import type { SenderEntry } from '../config/sender-entry.ts';
import type { KeyFetch, KeyFetchInit } from './key-resolver.ts';
import { unlimitedBudget } from './safe-fetch.ts';
import type { Copy, DocumentKind, Freshness, Parsed } from './document.ts';
import { clampLifetime } from './lifetimes.ts';
import { type KeySet, sameJwk } from './jwks.ts';
import type { Register } from './revocation-registers.ts';
import type { SenderKeys } from './sender-keys.ts';
import type { RevocationList } from './revocation-registers.ts';

/**
 * The signature of a list as a JWS in flattened form (RFC 7515 §7.2.2), converted from the published form; not
 * verified yet.
 */
interface ListSignature {
  readonly kid: string;
  readonly alg: string;
  readonly jws: { readonly protected: string; readonly payload: string; readonly signature: string };
}

/** The content of a list's URL: a revocation list, with its signature if it is signed; or nothing. */
export interface PublishedList {
  readonly list?: RevocationList;
  readonly signature?: ListSignature;
}

/**
 * The values of `alg` that a signed list may have: those of webhook keys (verification.md §2.8), never `none` or a
 * MAC.
 */
const LIST_ALGORITHMS: readonly string[] = ALGORITHM_NAMES.flatMap((name) => ALGORITHMS[name].algs);

const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i;
/**
 * Matches a compact JWS (RFC 7515 §7.1). One without signature or payload matches too: it is an invalid list, not the
 * absence of a list.
 */
const COMPACT = /^\s*([\w-]+)\.([\w-]*)\.([\w-]*)\s*$/;
/** Matches JSON text that is meant as a list, even if the rest of it is malformed. */
const LIST_MEMBER = /^\s*\{[^]*"(?:revoked_kids|payload)"\s*:/;

/**
 * True if the bytes look like a list. From then on the seller's revocation list is required, even if this one cannot
 * be parsed.
 */
export function claimsToBeList(bytes: Uint8Array): boolean {
  const text = new TextDecoder().decode(bytes);
  return COMPACT.test(text) || LIST_MEMBER.test(text);
}

/** Parses a list in any form: plain JSON, or a compact, flattened or general JWS. Does not verify the signature. */
export function parsePublished(bytes: Uint8Array, url: string): Parsed<PublishedList> {
  const [, head, payload, signature] = COMPACT.exec(new TextDecoder().decode(bytes)) ?? [];
  if (head !== undefined) return parseSigned({ protected: head, payload, signature }, url);
  const json = parseStrictObject(bytes);
  if (!json.ok) return { ok: false, reason: json.detail };
  if ('signatures' in json.value) return parseGeneral(json.value, url);
  if ('payload' in json.value || 'signature' in json.value) return parseSigned(json.value, url);
  const list = parseList(json.value, url);
  return typeof list === 'string' ? { ok: false, reason: list } : { ok: true, value: { list } };
}

/**
 * Parses the general form of RFC 7515 §7.2.1. It must have exactly one signature, because no rule says which of
 * several must verify.
 */
function parseGeneral(members: JsonObject, url: string): Parsed<PublishedList> {
  const { signatures, payload } = members;
  const [only, second] = Array.isArray(signatures) ? (signatures as unknown[]) : [];
  if (!isJsonObject(only) || second !== undefined) {
    return { ok: false, reason: 'a JWS in general form without exactly one signature' };
  }
  if ('signature' in members || 'protected' in members || 'header' in members) {
    return { ok: false, reason: 'a JWS in general and in flattened form at once' };
  }
  return parseSigned({ ...only, payload }, url);
}

function parseSigned(members: JsonObject, url: string): Parsed<PublishedList> {
  const { protected: head, payload, signature } = members;
  if (typeof head !== 'string' || typeof payload !== 'string' || typeof signature !== 'string') {
    return { ok: false, reason: 'a JWS without protected, payload or signature' };
  }
  const header = decodedObject(head);
  if (header === undefined)
    return { ok: false, reason: 'the protected header of the JWS is not a JSON object' };
  const { kid, alg } = header;
  // The header may name a key, but never supply one: `jwk`, `jku`, `x5c` and `x5u` are ignored (RFC 7515 §4.1.2 to
  // §4.1.6).
  if (typeof kid !== 'string') return { ok: false, reason: 'the protected header of the JWS names no kid' };
  if (typeof alg !== 'string' || !LIST_ALGORITHMS.includes(alg)) {
    return { ok: false, reason: `the alg of the JWS is none of ${LIST_ALGORITHMS.join(', ')}` };
  }
  if ('crit' in header) return { ok: false, reason: 'the JWS has critical extensions' };
  const content = decodedObject(payload);
  if (content === undefined) return { ok: false, reason: 'the payload of the JWS is not a JSON object' };
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
  // No webhook of this protocol has a jti, so the revoked ones are not used. The member is only checked, because the
  // format of lists defines it.
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

/** The largest revocation list: 256 KiB (verification.md §5.13). */
const MAX_BYTES = 262_144;
/**
 * The time in ms after which a missing list is requested again. It is short, because a seller may publish its first
 * list when its first key is stolen.
 */
const NONE_LIFE_MS = 5 * 60_000;

/**
 * Returns the document kind for revocation lists. A list is required if configuration names its URL or a list was
 * served there before. Otherwise, content that does not look like a list means that there is none, e.g. an empty
 * answer or a web site's page. If a list is required, a missing one is a failure.
 * @param registers the state of the list at a URL; `required` is set when a list is first served.
 */
export function revocationKind(registers: {
  get(url: string): { required: boolean } | undefined;
}): DocumentKind<PublishedList> {
  return {
    name: 'revocation list',
    maxBytes: MAX_BYTES,
    // There is no hard limit: the list's own `next_update` decides, in `isFresh`, if it is too old.
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

/** Status codes from 300 to 499 that mean "not changed" or "not now", so they do not say that there is no list. */
const NO_ABSENCE: ReadonlySet<number> = new Set([304, 408, 425, 429]);

function saysThereIsNone({ status, type, redirected }: Response): boolean {
  // A redirect means that there is no list, whether `fetch` refused to follow it or followed it by itself.
  if (type === 'opaqueredirect' || redirected) return true;
  return status >= 300 && status < 500 && !NO_ABSENCE.has(status);
}

/**
 * Wraps the fetch of lists: if the server says that there is no list, the response is an empty document instead of a
 * failure.
 */
export function absentAsEmpty(fetchUrl: KeyFetch): KeyFetch {
  return async (url: string, init: KeyFetchInit): Promise<Response> => {
    const response = await fetchUrl(url, init);
    if (!saysThereIsNone(response)) return response;
    await response.body?.cancel();
    return new Response(null);
  };
}

/**
 * The result of checking a list's signature. `undecided`: keys could not be fetched, so the same copy must be checked
 * again.
 */
type SignatureCheck = 'good' | { readonly invalidReason: string; readonly undecided: boolean };

/**
 * Checks the signature of a fetched list with the keys of the operator that serves the list. An unsigned list is
 * `good`.
 */
export async function checkSignature(
  keys: SenderKeys,
  register: Register,
  copy: Copy<PublishedList>,
  sender: SenderEntry,
): Promise<SignatureCheck> {
  const { signature, list } = copy.value;
  if (signature === undefined || list === undefined) return 'good';
  const { kid } = signature;
  if (isRevoked(register, kid)) return { invalidReason: 'signed by a key that is revoked', undecided: false };
  const known = await knownKeys(keys, register, kid);
  const invalidReason = await invalidReasonUnder(known, signature, list.updated);
  if (known.length > 0 && invalidReason === undefined) return 'good';
  const fetched = await fetchedKeys(keys, { register, kid, listBegan: copy.fetchedAt, sender, known });
  const later = await invalidReasonUnder(fetched.found, signature, list.updated);
  if (fetched.found.length > 0 && later === undefined) return 'good';
  if (fetched.undecided !== undefined) return { invalidReason: fetched.undecided, undecided: true };
  return {
    invalidReason: later ?? invalidReason ?? "signed by a key that is not in the operator's JWKS",
    undecided: false,
  };
}

/**
 * Returns undefined if one of the keys has signed the list, or if there is no key to check. Otherwise returns the
 * reason why none verifies.
 */
async function invalidReasonUnder(
  jwks: readonly Jwk[],
  signature: ListSignature,
  updated: number,
): Promise<string | undefined> {
  let invalidReason: string | undefined;
  for (const jwk of jwks) {
    invalidReason = await invalidSignatureReason(signature, jwk, updated);
    if (invalidReason === undefined) return undefined;
  }
  return invalidReason;
}

function isRevoked({ inForce, senders }: Register, kid: string): boolean {
  if (inForce?.kids.has(kid) === true) return true;
  return [...senders.values()].some((sender) => sender.revocation?.revokedKids?.includes(kid));
}

const pinOf = (sender: SenderEntry, kid: string): Jwk | undefined =>
  sender.pins?.find((jwk) => jwk['kid'] === kid);

/** Returns the key with this `kid` of every agent of the operator that serves the list: pinned or, if not, cached. */
async function knownKeys(keys: SenderKeys, { senders }: Register, kid: string): Promise<Jwk[]> {
  const known: Jwk[] = [];
  for (const sender of senders.values()) {
    const jwk = pinOf(sender, kid) ?? (await keys.cached(sender))?.copy.value.jwks.get(kid);
    if (jwk !== undefined) known.push(jwk);
  }
  return known;
}

interface SignerQuery {
  readonly register: Register;
  readonly kid: string;
  /** The start of the fetch of the list, Unix ms. */
  readonly listBegan: number;
  /** The sender whose delivery needs the list; its keys are fetched first. */
  readonly sender: SenderEntry;
  readonly known: readonly Jwk[];
}

/**
 * Fetches key sets again, at most once per cooldown, because a list may be signed with a key that was published
 * together with it. That key may have a new `kid` or an old one. The sets of all the operator's agents are fetched,
 * because any agent's key may sign.
 */
async function fetchedKeys(
  keys: SenderKeys,
  { register, kid, listBegan, sender, known }: SignerQuery,
): Promise<{ readonly found: readonly Jwk[]; readonly undecided?: string }> {
  const isNew = (jwk: Jwk | undefined): jwk is Jwk =>
    jwk !== undefined && !known.some((other) => sameJwk(other, jwk));
  const freshness: Freshness<KeySet> = {
    hasWanted: ({ value }) => isNew(value.jwks.get(kid)),
    isFreshEnough: (copy) => copy.isRevalidated !== true && copy.fetchedAt >= listBegan,
  };
  const found: Jwk[] = [];
  let undecided: string | undefined;
  for (const agent of new Set([sender, ...register.senders.values()])) {
    // The key with this `kid` is pinned for the agent, so no JWKS can change it and nothing is fetched.
    if (pinOf(agent, kid) !== undefined) continue;
    const answer = await keys.renewed(agent, freshness, unlimitedBudget(agent.agentUrl));
    const jwk = answer.ok ? answer.copy.value.jwks.get(kid) : undefined;
    if (isNew(jwk)) found.push(jwk);
    if (!answer.ok) undecided ??= `no keys to verify it with: ${answer.reason}`;
  }
  return { found, ...(undecided !== undefined && { undecided }) };
}

/**
 * Verifies a list's signature with one key. Any key of the operator with `use` = `sig` may sign; it needs no purpose
 * member, because a list concerns all keys of the operator. The header was parsed strictly before, so it is not parsed
 * again.
 * @param updated time of the list, Unix ms. A key that was revoked (`revoked_at`) at or before this time cannot sign
 * it.
 * @returns the reason, for the owner's log, why the signature is not valid; undefined if it is valid.
 */
export async function invalidSignatureReason(
  { kid, alg, jws }: ListSignature,
  jwk: Jwk,
  updated: number,
): Promise<string | undefined> {
  const quotedKid = JSON.stringify(kid.slice(0, 64));
  if (jwk['use'] !== 'sig') return `the key ${quotedKid} is not for signatures (use is not sig)`;
  if ((revokedSince(jwk) ?? Number.POSITIVE_INFINITY) <= updated / 1000)
    return `the key ${quotedKid} is revoked by its revoked_at`;
  // The engine is loaded only for a signed list, because most lists are not signed.
  const { createEngine } = await import('../crypto/index.ts');
  const engine = await createEngine();
  const key = await engine.importKey(jwk);
  if (typeof key === 'string') return `the key ${quotedKid} cannot be used: ${key}`;
  const signature = decodeBase64(jws.signature);
  // RFC 7515 §5.2 step 8: the signature is over header and payload as sent.
  const signed = new TextEncoder().encode(`${jws.protected}.${jws.payload}`);
  const verified =
    algorithmOfAlg(alg) === key.alg &&
    permits(jwk, alg) &&
    signature !== undefined &&
    (await engine.verify(key, signed, signature));
  return verified ? undefined : `the signature does not verify under the key ${quotedKid}`;
}

const algorithmOfAlg = (alg: string): SignatureAlgorithm | undefined =>
  ALGORITHM_NAMES.find((name) => ALGORITHMS[name].algs.includes(alg));

const algorithmOf = (name: unknown): unknown =>
  typeof name === 'string' ? (algorithmOfAlg(name) ?? name) : name;

/**
 * True if the key's `alg` and `key_ops` allow this use (RFC 7517 §4.3, §4.4). A key that states its use must not be
 * used for anything else.
 */
function permits({ alg: own, key_ops: operations }: Jwk, alg: string): boolean {
  if (own !== undefined && own !== null && algorithmOf(own) !== algorithmOf(alg)) return false;
  if (operations === undefined || operations === null) return true;
  return Array.isArray(operations) && operations.includes('verify');
}
