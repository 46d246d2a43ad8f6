// Makes a signed delivery with one mistake of the table, correct in everything else. The fake seller and the probe call
// it.
import { KEY_NAMES } from './seller-keys.ts';
import { canonicalTargetUri } from '../auth/rfc9421/signature-base.ts';
import { encodeBase64, encodeBase64Url } from '../codec/encoding.ts';
import { ConfigError } from '../shared/errors.ts';
import { payloadBytes } from '../sender/signed-delivery.ts';
import { algorithmOf, generateKey, signBytes } from '../sender/keys.ts';
import { type Jwk, signDelivery, type SignDeliveryOptions, type SignedDelivery } from '../sender/sign.ts';
import {
  type Altered,
  alteredBy,
  firstOf,
  type Given,
  type Headers,
  type MistakeKey,
  type WrongDelivery,
} from './mistake-row.ts';

/** The default of the receiver's option `maxBodyBytes`. */
const MAX_BODY_BYTES = 1_048_576;
const NONCE_BYTES = 16;

/** The additional input that a mistake may need: keys, and the receiver's size limit. */
export interface MistakeMeans {
  /** Private keys for the rows that require a certain key. */
  readonly keys?: Readonly<Partial<Record<MistakeKey, Jwk | undefined>>> | undefined;
  /** The receiver's option `maxBodyBytes`. Default: 1 MiB. */
  readonly maxBodyBytes?: number;
}

type Good = Pick<SignDeliveryOptions, 'url' | 'body' | 'now' | 'protocol' | 'nonce'> & { readonly key?: Jwk };

/** Returns the correct delivery into which a mistake is put. If the mistake has several forms, the first is taken. */
function givenBy({ url, body, key, protocol = 'proto', now = Date.now, nonce }: Good, limit?: number): Given {
  return {
    url,
    body: payloadBytes(body),
    keyid: String(key?.['kid']),
    nonce: nonce ?? encodeBase64Url(crypto.getRandomValues(new Uint8Array(NONCE_BYTES))),
    now: Math.floor(now() / 1000),
    protocol,
    maxBodyBytes: limit ?? MAX_BODY_BYTES,
    pick: firstOf,
  };
}

const bytesOf = (body: string | Uint8Array): Uint8Array<ArrayBuffer> => payloadBytes(body);

/**
 * Returns the value of `Signature-Input`, `("@method" …);created=…;…`, with the changes of a mistake. `list` has the
 * covered components.
 */
function signatureInput(
  good: SignedDelivery,
  { components, params = {} }: Altered,
): { readonly list: readonly string[]; readonly text: string } {
  const [, covered = '', tail = ''] =
    /^sig1=\(([^)]*)\)(.*)$/.exec(good.headers['Signature-Input'] ?? '') ?? [];
  const own = [...tail.matchAll(/;([a-z]+)=("(?:[^"\\]|\\.)*"|[^;"]+)/g)].map(([, name = '', value]) => [
    name,
    value,
  ]);
  const list = components?.map((name) => (name.startsWith('"') ? name : `"${name}"`)) ?? covered.split(' ');
  const all = Object.entries({ ...(Object.fromEntries(own) as Altered['params']), ...params });
  const written = all.flatMap(([name, value]) => (value === undefined ? [] : [`;${name}=${value}`]));
  return { list, text: `(${list.join(' ')})${written.join('')}` };
}

/**
 * Returns the signature base (the text to sign) with the changes of a mistake. An unknown component gets an empty
 * value.
 */
function baseOf(
  { url, headers }: SignedDelivery,
  { list, text }: ReturnType<typeof signatureInput>,
  { method = 'POST', signedAs = {} }: Altered,
): Uint8Array {
  const { targetUri, authority } = canonicalTargetUri(url);
  const values: Readonly<Record<string, string>> = {
    ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
    '@method': method,
    '@target-uri': targetUri,
    '@authority': authority,
    ...signedAs,
  };
  const lines = list.map((name) => `${name}: ${values[name.slice(1, -1)] ?? ''}\n`);
  return new TextEncoder().encode(`${lines.join('')}"@signature-params": ${text}`);
}

async function signatureOf(key: Jwk, base: Uint8Array, { forged, signature }: Altered): Promise<Uint8Array> {
  const signer = forged ? (await generateKey(algorithmOf(key), 'webhook-signing')).privateJwk : key;
  const made = await signBytes(signer, base);
  return signature?.(made) ?? made;
}

function sequence(
  bytes: Uint8Array,
  { alphabet, padded = alphabet === 'base64' }: SignDeliveryOptions,
): string {
  const text = (alphabet === 'base64' ? encodeBase64 : encodeBase64Url)(bytes).replace(/=+$/, '');
  return `:${padded ? text.padEnd(Math.ceil(text.length / 4) * 4, '=') : text}:`;
}

/**
 * Returns the key to sign with: the delivery's own key if the row allows it, else one of `keys`. @throws ConfigError if
 * `keys` lacks it
 */
function keyFor({ key: needed }: WrongDelivery, own: Jwk, keys: NonNullable<MistakeMeans['keys']>): Jwk {
  if (needed === undefined || KEY_NAMES[algorithmOf(own)] === needed) return own;
  const key = keys[needed];
  if (key) return key;
  throw new ConfigError(`mistake: it is made with a key that is ${needed}, and none was given. Give one.`);
}

/** Returns headers in the form that Node's client sends. Several lines of one header cannot be sent in this form. */
const sendable = (headers: Headers): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  );

/**
 * Makes a delivery with one mistake of the table, and correct in all else. A mistake made before signing is signed too.
 * @param options the options of `signDelivery` for the correct delivery.
 * @throws ConfigError if the row needs a key that `keys` lacks.
 */
export async function mistakenDelivery(
  row: WrongDelivery,
  options: SignDeliveryOptions,
  { keys = {}, maxBodyBytes }: MistakeMeans = {},
): Promise<SignedDelivery> {
  const key = keyFor(row, options.key, keys);
  const given = givenBy({ ...options, key }, maxBodyBytes);
  const altered = alteredBy(row, given);
  const right: SignDeliveryOptions = {
    ...options,
    key,
    body: bytesOf(altered.body ?? given.body),
    nonce: given.nonce,
    headers: sendable({ ...options.headers, ...altered.headers }),
    allowMalformed: true,
    ...(altered.alphabet && { alphabet: altered.alphabet }),
  };
  const good = await signDelivery(right);
  const input = signatureInput(good, altered);
  const signature = await signatureOf(key, baseOf(good, input, altered), altered);
  const headers = {
    ...good.headers,
    'Signature-Input': `sig1=${input.text}`,
    Signature: `sig1=${sequence(signature, right)}`,
  };
  return {
    ...good,
    // The type allows POST alone. A mistake may use another method, which the receiver has to refuse.
    method: (altered.method ?? good.method) as 'POST',
    headers: sendable(altered.sent?.(headers) ?? headers),
    body: bytesOf(altered.sentBody?.(good.body) ?? good.body),
  };
}

/**
 * Makes a mistake in the body, which sellers with HMAC or a bearer token can make too.
 * @returns the `body` to authenticate, and in `sent` a function that turns this body into the one to send.
 * @throws ConfigError if the mistake is not in the body.
 */
export function mistakenBody(
  row: WrongDelivery,
  options: Pick<SignDeliveryOptions, 'url' | 'body' | 'now' | 'protocol'>,
): { readonly body: Uint8Array; readonly sent: (body: Uint8Array<ArrayBuffer>) => Uint8Array<ArrayBuffer> } {
  if (row.part !== 'body') {
    throw new ConfigError(
      'mistake: it needs a signature, and this delivery has none. Expected one in the body, e.g. not-json.',
    );
  }
  const given = givenBy(options);
  const { body = given.body, sentBody } = alteredBy(row, given);
  return { body: bytesOf(body), sent: (bytes) => (sentBody ? bytesOf(sentBody(bytes)) : bytes) };
}
