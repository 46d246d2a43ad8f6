import { createHmac } from 'node:crypto';
import type { Signer, Wire } from '../auth/rfc9421/support.ts';
import { NOW, signedHeaders, usualParameters } from '../auth/rfc9421/support.ts';
import type { WireRequest } from '../adapters/contract/wire.ts';
import { encodeBase64Url } from '../../src/codec/for-tests.ts';
import { SAMPLE_FAMILIES } from '../../src/testing/for-tests.ts';
import { samplePayloads } from '../../src/testing/index.ts';
import type { TaskStatus } from '../../src/events/index.ts';
import type { Random } from '../reliability/processes/random.ts';
import { BEARER_TOKEN, HMAC_SECRET, SIGNERS } from './sellers.ts';

export const AUTHORITY = 'buyer.example';
/** `prefix` is `signature` with a `publicUrl` that ends in `/*`. */
export const ENDPOINTS = ['signature', 'prefix', 'hmac', 'bearer'] as const;
export type Endpoint = (typeof ENDPOINTS)[number];

const PATHS: Readonly<Record<Endpoint, string>> = {
  signature: '/webhooks/signed?tenant=7',
  prefix: '/webhooks/prefix/a/b?c=d',
  hmac: '/webhooks/hmac',
  bearer: '/webhooks/bearer',
};

/** A good delivery that is not signed yet; what changes it here is signed with it. */
export interface Draft {
  readonly endpoint: Endpoint;
  signer: Signer;
  payload: Record<string, unknown>;
  /** In place of the payload. */
  body: Uint8Array | undefined;
  readonly headers: Record<string, string>;
  readonly parameters: Record<string, string | null>;
  components: readonly string[] | undefined;
  /** Values that are signed in place of those that are sent. */
  readonly signedAs: Record<string, string>;
  encoding: 'base64' | 'base64url';
  method: string;
  /** As it is signed. */
  url: string;
}

const STATUSES: readonly TaskStatus[] = ['submitted', 'working', 'input-required', 'completed', 'failed'];

export const randomBytes = (random: Random, length: number): Uint8Array =>
  Uint8Array.from({ length }, () => random.below(256));
export const randomId = (random: Random): string => encodeBase64Url(randomBytes(random, 16));

export const payloadsOf = (random: Random): ReturnType<typeof samplePayloads> =>
  samplePayloads({ now: () => NOW * 1000, newId: () => randomId(random) });

export function randomPayload(random: Random): Record<string, unknown> {
  const payloads = payloadsOf(random);
  const kinds = [
    () => payloads.tool(random.pick(STATUSES)),
    () => payloads.tool(random.pick(STATUSES)),
    () => payloads.agent(random.pick(STATUSES)),
    () => payloads.report(),
    () => payloads.family(random.pick(SAMPLE_FAMILIES)),
  ];
  return { ...random.pick(kinds)() };
}

export const draftAt = (endpoint: Endpoint, random: Random): Draft => ({
  endpoint,
  signer: random.pick(SIGNERS),
  payload: randomPayload(random),
  body: undefined,
  headers: {},
  parameters: { nonce: `"${randomId(random)}"` },
  components: undefined,
  signedAs: {},
  encoding: random.pick(['base64', 'base64url']),
  method: 'POST',
  url: `https://${AUTHORITY}${PATHS[endpoint]}`,
});

/** The parameter as it stands now, serialized. */
export const parameterOf = ({ signer, parameters }: Draft, name: string): string =>
  parameters[name] ?? usualParameters(signer.alg, String(signer.jwk['kid']))[name] ?? '';

export const bodyOf = ({ body, payload }: Draft): Uint8Array =>
  body ?? new TextEncoder().encode(JSON.stringify(payload));

type MakeHeaders = (draft: Draft, body: Uint8Array) => Readonly<Record<string, string>>;

const usualType = { 'content-type': 'application/json' };

/** Written out: what the library's own senders refuse to send has to arrive too. */
function hmacHeaders({ headers }: Draft, body: Uint8Array): Readonly<Record<string, string>> {
  const mac = createHmac('sha256', HMAC_SECRET).update(`${NOW}.`).update(body).digest('hex');
  const own = { 'x-proto-timestamp': String(NOW), 'x-proto-signature': `sha256=${mac}` };
  return { ...usualType, ...headers, ...own };
}

function rfc9421Headers(draft: Draft, body: Uint8Array): Readonly<Record<string, string>> {
  const { signer, method, url, headers, encoding, parameters, components, signedAs } = draft;
  const more = { signedAs, ...(components && { components }) };
  const wire: Wire = { body, method, url, headers, encoding, parameters, ...more };
  return signedHeaders(signer, wire);
}

const HEADERS: Readonly<Record<Endpoint, MakeHeaders>> = {
  signature: rfc9421Headers,
  prefix: rfc9421Headers,
  hmac: hmacHeaders,
  bearer: ({ headers }) => ({ ...usualType, ...headers, Authorization: `Bearer ${BEARER_TOKEN}` }),
};

/** Signs it as its endpoint wants. */
export function requestOf(draft: Draft): WireRequest {
  const body = bodyOf(draft);
  return {
    method: draft.method,
    target: draft.url.slice(draft.url.indexOf('/', 'https://'.length)),
    headers: [['Host', AUTHORITY], ...Object.entries(HEADERS[draft.endpoint](draft, body))],
    body,
  };
}
