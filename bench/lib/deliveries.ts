import { derSignature } from './der.ts';
import { parseSignatureInput, signatureBase, canonicalTargetUri } from '../../dist/rfc9421.js';
import { generateKey, signDelivery, type KeyPair, type SignDeliveryOptions } from '../../dist/sender.js';

export const PUBLIC_URL = 'https://buyer.example/webhooks/proto';
export const AGENT_URL = 'https://seller.example/mcp';

export type Alg = 'ed25519' | 'ecdsa-p256-sha256';

/** A completed task whose envelope is about `bytes` long: 1 KB is a usual one, more is a bigger result. */
export function envelope(at: number, bytes: number): Uint8Array {
  const head = {
    idempotency_key: `0a9c3e52-0000-4000-8000-${String(at).padStart(12, '0')}`,
    task_id: `task_${at}`,
    operation_id: `op_${at}`,
    task_type: 'create_media_buy',
    domain: 'media-buy',
    status: 'completed',
    timestamp: new Date(Date.now() - 60_000).toISOString(),
    message: 'Media buy created, "as agreed".',
    context: { trace: `trace-${at}` },
  };
  const packages: object[] = [];
  const text = (): string =>
    JSON.stringify({ ...head, result: { media_buy_id: `mb_${at}`, status: 'active', packages } });
  const one = (index: number): object => ({
    package_id: `pkg_${index}`,
    product_id: 'ctv_sports_premium',
    budget: 12500.5,
    impressions: 1_250_000 + index,
    paused: false,
    targeting: { geo: ['US', 'CA'], 'daypart:evening': true },
  });
  const each = JSON.stringify(one(0)).length + 2;
  const room = Math.max(0, bytes - text().length);
  for (let index = 0; index < Math.max(1, Math.floor(room / each)); index += 1) packages.push(one(index));
  return new TextEncoder().encode(text());
}

export async function makeKey(alg: Alg): Promise<KeyPair> {
  return generateKey(alg, 'webhook-signing', { kid: `bench-${alg}` });
}

const DIGITS = /:([^:]*):/;

/** A delivery as a usual client puts it on the wire. */
export interface Wire {
  readonly body: Uint8Array;
  readonly headers: Readonly<Record<string, string>>;
  /** The same, as Node's `req.rawHeaders` has it. */
  readonly rawHeaders: readonly string[];
}

/** One delivery as a door hands it over, and what a bare verifier needs of it. */
export interface Prepared extends Wire {
  /** The signature base. */
  readonly base: Uint8Array;
  /** In the form in which OpenSSL is fastest: DER for ECDSA. */
  readonly bareSignature: Uint8Array;
}

export type Signing = Partial<SignDeliveryOptions>;

/** @param at names the event; the nonce is fresh every time. */
export async function sign(at: number, key: KeyPair, bytes: number, signing: Signing = {}): Promise<Wire> {
  const body = envelope(at, bytes);
  const { headers } = await signDelivery({ url: PUBLIC_URL, body, key: key.privateJwk, ...signing });
  const all = {
    Host: 'buyer.example',
    'User-Agent': 'seller/4.2',
    Accept: '*/*',
    'Content-Length': String(body.length),
    Connection: 'keep-alive',
    ...headers,
  };
  return { body, headers: all, rawHeaders: Object.entries(all).flat() };
}

function prepared(wire: Wire, alg: Alg): Prepared {
  const { headers } = wire;
  const input = parseSignatureInput(headers['Signature-Input'] ?? '');
  if (input.kind === 'refused') throw new Error('the benchmark signs what does not parse');
  const fields = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), [value]]));
  const facts = { method: 'POST', target: canonicalTargetUri(PUBLIC_URL), headers: fields };
  const base = signatureBase(input.components, facts, input.raw) ?? '';
  const [, digits = ''] = DIGITS.exec(headers['Signature'] ?? '') ?? [];
  const signature = Buffer.from(digits, 'base64url');
  return {
    ...wire,
    base: new TextEncoder().encode(base),
    bareSignature: alg === 'ed25519' ? signature : derSignature(signature),
  };
}

/** `count` deliveries of events of their own, signed as the profile says. They can be used for five minutes. */
export async function prepare(
  count: number,
  key: KeyPair,
  alg: Alg,
  bytes: number,
  signing: Signing = {},
): Promise<readonly Prepared[]> {
  const all: Prepared[] = [];
  for (let at = 0; at < count; at += 1) all.push(prepared(await sign(at, key, bytes, signing), alg));
  return all;
}

/** A request of HTTP/1.1, whole. */
export function requestBytes({ rawHeaders, body }: Pick<Wire, 'rawHeaders' | 'body'>): Uint8Array {
  const lines = [`POST ${new URL(PUBLIC_URL).pathname} HTTP/1.1`];
  for (let at = 0; at < rawHeaders.length; at += 2) lines.push(`${rawHeaders[at]}: ${rawHeaders[at + 1]}`);
  return Buffer.concat([Buffer.from([...lines, '', ''].join('\r\n'), 'latin1'), body]);
}
