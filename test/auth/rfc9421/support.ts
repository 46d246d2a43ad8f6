import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import type { Alarm, EditionName, Jwk } from '../../../src/index.ts';
import type { AuthContext, AuthRequest } from '../../../src/auth/for-tests.ts';
import {
  canonicalTargetUri,
  createEngine,
  type SignatureAlgorithm,
} from '../../../src/auth/rfc9421/index.ts';
import { createHashes } from '../../../src/crypto/for-tests.ts';
import {
  type Delivery,
  editionFor,
  headerFields,
  protocolsFor,
  type SenderEntry,
} from '../../../src/for-tests.ts';
import type { Candidate, KeyResolver, KeySearch, RevocationState } from '../../../src/keys/for-tests.ts';

export const URL_GIVEN = 'https://buyer.example/hooks/proto?tenant=7';
/** The receiver's clock in every test: Unix seconds. */
export const NOW = 1_760_000_000;
export const BODY: Uint8Array = new TextEncoder().encode('{"idempotency_key":"0123456789abcdef"}');
export const NONCE = 'MDEyMzQ1Njc4OWFiY2RlZg';
export const engine = await createEngine();
export const hashes = createHashes();

/** One seller's key: signs, and is published as `jwk`. */
export interface Signer {
  readonly alg: SignatureAlgorithm;
  readonly jwk: Jwk;
  readonly sign: (data: Uint8Array) => Uint8Array;
}

const MAKE: Record<SignatureAlgorithm, () => { privateKey: KeyObject; publicKey: KeyObject; alg: string }> = {
  ed25519: () => ({ ...generateKeyPairSync('ed25519'), alg: 'EdDSA' }),
  'ecdsa-p256-sha256': () => ({ ...generateKeyPairSync('ec', { namedCurve: 'P-256' }), alg: 'ES256' }),
};

const SIGN: Record<SignatureAlgorithm, (data: Uint8Array, key: KeyObject) => Uint8Array> = {
  ed25519: (data, key) => sign(null, data, key),
  'ecdsa-p256-sha256': (data, key) => sign('sha256', data, { key, dsaEncoding: 'ieee-p1363' }),
};

export function createSigner(kid = 'key-1', alg: SignatureAlgorithm = 'ed25519'): Signer {
  const made = MAKE[alg]();
  const published = { kid, use: 'sig', key_ops: ['verify'], proto_use: 'webhook-signing', alg: made.alg };
  const jwk = { ...(made.publicKey.export({ format: 'jwk' }) as Jwk), ...published };
  return { alg, jwk, sign: (data) => SIGN[alg](data, made.privateKey) };
}

/** What a test changes about an otherwise right delivery. */
export interface Wire {
  readonly body?: Uint8Array;
  readonly method?: string;
  readonly url?: string;
  /** Added to, or in place of, the usual headers; they can be covered. */
  readonly headers?: Readonly<Record<string, string>>;
  /** One with parameters is written as on the wire. */
  readonly components?: readonly string[];
  /** Values that are signed in place of those that are sent, by component. */
  readonly signedAs?: Readonly<Record<string, string>>;
  /** Serialized parameter values in place of the usual ones; null leaves one out. */
  readonly parameters?: Readonly<Record<string, string | null>>;
  readonly encoding?: 'base64' | 'base64url';
  readonly without?: readonly string[];
}

export const FIVE = ['@method', '@target-uri', '@authority', 'content-type', 'content-digest'];

/** The usual parameters of a signature made now, in serialized form. */
export function usualParameters(alg: string, kid: string): Record<string, string> {
  return {
    created: String(NOW),
    expires: String(NOW + 300),
    nonce: `"${NONCE}"`,
    keyid: `"${kid}"`,
    alg: `"${alg}"`,
    tag: '"proto/webhook-signing/v1"',
  };
}

/** Signs a request as sellers do, by a base written out here and not by the library's own. */
export function signedHeaders(signer: Signer, wire: Wire = {}): Record<string, string> {
  const { body = BODY, method = 'POST', url = URL_GIVEN, components = FIVE, encoding = 'base64url' } = wire;
  const digest = createHash('sha256').update(body).digest(encoding);
  const usual = { 'content-type': 'application/json', 'content-digest': `sha-256=:${digest}:` };
  const headers: Record<string, string> = { ...usual, ...wire.headers };
  const { origin, host, pathname, search, protocol } = new URL(url);
  const derived: Record<string, string> = {
    '@method': method,
    '@target-uri': `${origin}${pathname}${search}`,
    '@authority': host,
    '@scheme': protocol.slice(0, -1),
    '@path': pathname,
    '@query': search || '?',
    '@request-target': `${pathname}${search}`,
  };
  const parameters = { ...usualParameters(signer.alg, String(signer.jwk['kid'])), ...wire.parameters };
  const tail = Object.entries(parameters).map(([name, value]) => (value === null ? '' : `;${name}=${value}`));
  const written = components.map((name) => (name.startsWith('"') ? name : `"${name}"`));
  const params = `(${written.join(' ')})${tail.join('')}`;
  const values = { ...headers, ...derived, ...wire.signedAs };
  const lines = components.map((name, at) => `${written[at]}: ${values[name] ?? ''}\n`);
  const base = `${lines.join('')}"@signature-params": ${params}`;
  const signature = Buffer.from(signer.sign(new TextEncoder().encode(base))).toString(encoding);
  const all = { ...headers, 'signature-input': `sig1=${params}`, signature: `sig1=:${signature}:` };
  return Object.fromEntries(Object.entries(all).filter(([name]) => !wire.without?.includes(name)));
}

export function deliveryOf(
  headers: Readonly<Record<string, string | readonly string[]>>,
  more: Partial<Delivery> = {},
): Delivery {
  return { method: 'POST', url: undefined, headers: headerFields(headers), rawBody: BODY, ...more };
}

export function senderAt(host: string, edition: EditionName = '3.0'): SenderEntry {
  return {
    agentUrl: `https://${host}/mcp`,
    auth: { scheme: 'signature' },
    edition: editionFor(edition),
    maxNoncesPerKey: 100_000,
  };
}

export async function candidateOf(sender: SenderEntry, jwk: Jwk): Promise<Candidate> {
  return { sender, key: { kid: String(jwk['kid']), jwk, verifyKey: await engine.importKey(jwk) } };
}

/** What a key resolver would find, written down: the real one is tested in its own room. */
export interface Published {
  readonly found?: Partial<KeySearch>;
  readonly replaced?: Partial<KeySearch>;
  /** By agent URL: at once or later; a function may throw. */
  readonly revocation?: Readonly<Record<string, () => RevocationState | Promise<RevocationState>>>;
}

export interface Bench {
  readonly context: AuthContext;
  readonly alarms: readonly Alarm[];
  /** Names of the resolver's methods in the order in which they were called. */
  readonly asked: readonly string[];
}

export function bench(published: Published = {}, context: Partial<AuthContext> = {}): Bench {
  const alarms: Alarm[] = [];
  const asked: string[] = [];
  const search = (name: string, result: Partial<KeySearch> = {}) => {
    asked.push(name);
    return Promise.resolve({ candidates: [], undecided: [], ...result });
  };
  const keys: KeyResolver = {
    find: () => search('find', published.found),
    findReplaced: () => search('findReplaced', published.replaced),
    revocation: (sender) => published.revocation?.[sender.agentUrl]?.() ?? 'valid',
    freshUntil: async () => undefined,
    whose: () => undefined,
    warm: () => Promise.resolve(),
    stop: () => undefined,
    resume: () => undefined,
  };
  const raiseAlarm = (alarm: Alarm) => alarms.push(alarm);
  const usual = { protocols: protocolsFor(), engine, hashes, keys, hostCheck: 'strict' as const, raiseAlarm };
  return { context: { ...usual, ...context }, alarms, asked };
}

export function requestOf(
  delivery: Delivery,
  senders: readonly SenderEntry[],
  more: Partial<AuthRequest> = {},
): AuthRequest {
  return { delivery, target: canonicalTargetUri(URL_GIVEN), senders, arrivedAt: NOW * 1000, ...more };
}
