import {
  type Alphabet,
  encode,
  type Json,
  KEYS,
  nonceOf,
  NOW,
  sha256,
  TAG,
  type TestKey,
  URL_GIVEN,
  utf8,
} from './kit.ts';

export const COMPONENTS: readonly string[] = [
  '@method',
  '@target-uri',
  '@authority',
  'content-type',
  'content-digest',
];

/** A header's value; several lines; or, with undefined, none. */
export type HeaderValue = string | readonly string[] | undefined;

export interface Signing {
  readonly key?: TestKey;
  /** As the sender was given it. */
  readonly url?: string;
  /** Canonical, by hand. */
  readonly targetUri?: string;
  readonly authority?: string;
  readonly method?: string;
  readonly body?: string | Uint8Array;
  readonly alphabet?: Alphabet;
  readonly components?: readonly string[];
  /** Replaces or removes parameters; the text after the `=`, as it stands on the wire. */
  readonly params?: Readonly<Record<string, string | undefined>>;
  /** Order of parameters on the wire. */
  readonly paramOrder?: readonly string[];
  /** Headers beside those of the signature, or instead of them; they are there when the base is built. */
  readonly headers?: Readonly<Record<string, HeaderValue>>;
  /** Values that the signer signed, where they are others than what the verifier sees. */
  readonly signedAs?: Readonly<Record<string, string>>;
  /** What becomes of the 64 bytes. */
  readonly signature?: (bytes: Uint8Array) => Uint8Array;
  /** Headers after signing. */
  readonly sent?: (headers: Readonly<Record<string, HeaderValue>>) => Readonly<Record<string, HeaderValue>>;
  /** The body after signing. */
  readonly sentBody?: (body: Uint8Array) => Uint8Array;
}

export interface Signed {
  readonly request: Json;
  /** The base that a verifier builds. */
  readonly base: string;
}

/** What `jwks_ref` says of a signature: its key's id, where `keys.json` has it. */
export function jwksRef(signing: Signing | undefined): readonly string[] {
  const signer = signing?.key?.kid ?? KEYS.ed25519.kid;
  return Object.values(KEYS).some(({ kid }) => kid === signer) ? [signer] : [];
}

/** An envelope with a key of its own. */
export function envelope(name: string, more: Json = {}): Json {
  return {
    idempotency_key: `evt_${Buffer.from(sha256(name)).toString('hex').slice(0, 32)}`,
    task_id: 'task_1',
    operation_id: 'op_1',
    task_type: 'create_media_buy',
    domain: 'media-buy',
    status: 'completed',
    timestamp: '2026-09-21T14:13:00Z',
    message: 'The media buy was created.',
    result: { media_buy_id: 'mb_1', packages: [{ package_id: 'pkg_1' }] },
    ...more,
  };
}

/** The `result` of a delivery report that has nothing to report. */
export const reportResult = (type: string, more: Json): Json => ({
  notification_type: type,
  ...more,
  reporting_period: { start: '2026-09-21T13:00:00Z', end: '2026-09-21T14:00:00Z' },
  currency: 'USD',
  media_buy_deliveries: [],
});

export const byteSequence = (bytes: Uint8Array, alphabet: Alphabet = 'base64url'): string =>
  `:${encode(bytes, alphabet)}:`;

const quoted = (text: string): string => `"${text}"`;

/** `("@method" …);created=…;…` */
function signatureParams(name: string, signing: Signing): string {
  const { key = KEYS.ed25519, components = COMPONENTS, params = {}, paramOrder } = signing;
  const all: Record<string, string | undefined> = {
    created: String(NOW),
    expires: String(NOW + 300),
    nonce: quoted(nonceOf(name)),
    keyid: quoted(key.kid),
    alg: quoted(key.alg),
    tag: quoted(TAG),
    ...params,
  };
  const names = paramOrder ?? Object.keys(all);
  const tail = names.flatMap((param) => (all[param] === undefined ? [] : [`;${param}=${all[param]}`]));
  const list = components.map((component) => (component.startsWith('"') ? component : quoted(component)));
  return `(${list.join(' ')})${tail.join('')}`;
}

/** RFC 9421 §2.1: all lines of a field, joined. */
function fieldOf(headers: Readonly<Record<string, HeaderValue>>, name: string): string | undefined {
  const value = Object.entries(headers).find(([header]) => header.toLowerCase() === name)?.[1];
  return typeof value === 'string' ? value.trim() : value?.map((line) => line.trim()).join(', ');
}

interface Facts {
  readonly method: string;
  readonly targetUri: string;
  readonly authority: string;
  readonly headers: Readonly<Record<string, HeaderValue>>;
}

/** RFC 9421 §2.2, by hand from the canonical URL. */
function valueOf(component: string, { method, targetUri, authority, headers }: Facts): string {
  const pathAndQuery = targetUri.slice(targetUri.indexOf(authority) + authority.length);
  const at = pathAndQuery.indexOf('?');
  const derived: Record<string, string> = {
    '@method': method,
    '@target-uri': targetUri,
    '@authority': authority,
    '@scheme': targetUri.slice(0, targetUri.indexOf(':')),
    '@path': at < 0 ? pathAndQuery : pathAndQuery.slice(0, at),
    '@query': at < 0 ? '?' : pathAndQuery.slice(at),
    '@request-target': pathAndQuery,
  };
  return derived[component] ?? fieldOf(headers, component) ?? '';
}

function baseOf(
  components: readonly string[],
  params: string,
  facts: Facts,
  instead: Readonly<Record<string, string>> = {},
): string {
  const lines = components.map((component) => {
    const name = component.startsWith('"') ? component : quoted(component);
    return `${name}: ${instead[component] ?? valueOf(component, facts)}`;
  });
  return [...lines, `"@signature-params": ${params}`].join('\n');
}

function bodyMembers(body: Uint8Array): Json {
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(body);
  const same = Buffer.from(text).equals(Buffer.from(body));
  return same ? { body: text } : { body_base64: Buffer.from(body).toString('base64') };
}

const present = (headers: Readonly<Record<string, HeaderValue>>): Json =>
  Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined));

/** Signs a delivery as the vector says. @param name decides nonce and idempotency key. */
export function sign(name: string, signing: Signing = {}): Signed {
  const {
    key = KEYS.ed25519,
    url = URL_GIVEN,
    targetUri = url,
    authority = 'buyer.example',
    method = 'POST',
  } = signing;
  const {
    components = COMPONENTS,
    alphabet,
    signature = (bytes: Uint8Array) => bytes,
    sent = (headers: Readonly<Record<string, HeaderValue>>) => headers,
    sentBody = (bytes: Uint8Array) => bytes,
  } = signing;
  const given = signing.body ?? JSON.stringify(envelope(name));
  const body = typeof given === 'string' ? utf8(given) : given;
  const headers: Record<string, HeaderValue> = {
    'Content-Type': 'application/json',
    'Content-Digest': `sha-256=${byteSequence(sha256(body), alphabet)}`,
    ...signing.headers,
  };
  const params = signatureParams(name, signing);
  const facts = { method, targetUri, authority, headers };
  const bytes = signature(key.sign(utf8(baseOf(components, params, facts, signing.signedAs))));
  const all = sent({
    ...headers,
    'Signature-Input': `sig1=${params}`,
    Signature: `sig1=${byteSequence(bytes, alphabet)}`,
  });
  return {
    request: { method, url, headers: present(all), ...bodyMembers(sentBody(body)) },
    base: baseOf(components, params, { ...facts, headers: all }),
  };
}

/** A delivery whose standard base64, of digest and signature, has both `+` and `/`, so that the alphabets differ. */
export function signWithBoth(name: string, signing: Signing = {}): Signed {
  const both = (text: string): boolean => text.includes('+') && text.includes('/');
  for (let i = 0; ; i += 1) {
    const attempt = { ...signing, body: JSON.stringify(envelope(`${name} ${i}`)) };
    const { headers } = sign(name, { ...attempt, alphabet: 'base64', sent: (all) => all }).request as {
      headers: Record<string, string>;
    };
    if (both(headers['Signature'] ?? '') && both(headers['Content-Digest'] ?? '')) return sign(name, attempt);
  }
}
