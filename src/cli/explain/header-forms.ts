import { decodeBase64, encodeBase64 } from '../../codec/encoding.ts';
import type { Change } from './case.ts';

/** Other bytes that the text of a `Signature` or `Content-Digest` may have been meant to be. */
export interface ByteForm {
  readonly bytes: Uint8Array;
  readonly change: Change;
}

/** A DER INTEGER at `at`, as 32 bytes; undefined where there is none of that size. */
function derInteger(
  der: Uint8Array,
  at: number,
): { readonly bytes: Uint8Array; readonly end: number } | undefined {
  const length = der[at + 1] ?? 0;
  const end = at + 2 + length;
  if (der[at] !== 0x02 || length === 0 || end > der.length) return undefined;
  const digits = der.subarray(at + 2, end);
  const value = digits[0] === 0 ? digits.subarray(1) : digits;
  if (value.length > 32) return undefined;
  const bytes = new Uint8Array(32);
  bytes.set(value, 32 - value.length);
  return { bytes, end };
}

/** r‖s of a DER SEQUENCE of two INTEGERs (RFC 3279 §2.2.3), or undefined. */
function fromDer(der: Uint8Array): Uint8Array | undefined {
  if (der[0] !== 0x30 || der[1] !== der.length - 2) return undefined;
  const r = derInteger(der, 2);
  const s = r && derInteger(der, r.end);
  if (!r || s?.end !== der.length) return undefined;
  return new Uint8Array([...r.bytes, ...s.bytes]);
}

/** In a loop: a pattern would take the square of the length for a long run of `=`. */
function withoutPadding(text: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === '=') end--;
  return text.slice(0, end);
}

const SWAPS: Readonly<Record<string, string>> = { '+': '/', '/': '+', '-': '_', _: '-' };

/**
 * The text between the colons, read otherwise than it should be.
 * @param text as received, without the colons.
 * @param what the header's name.
 */
export function byteForms(text: string, what: string): ByteForm[] {
  const plain = decodeBase64(withoutPadding(text.replaceAll('-', '+').replaceAll('_', '/')));
  const swapped = text.replace(/[-+/_]/g, (char) => SWAPS[char] ?? char);
  const isMixed = /[+/]/.test(text) && /[-_]/.test(text);
  const isHex = /^(?:[0-9a-f]{2}){32,}$/i.test(text);
  const forms: readonly (Change & { readonly bytes: Uint8Array | undefined })[] = [
    {
      bytes: plain && fromDer(plain),
      cause: 'der-signature',
      says: `${what} is DER, as most ECDSA libraries give it.`,
      fix: 'The seller has to send r‖s: 64 bytes (in Node dsaEncoding: "ieee-p1363", in Java SHA256withECDSAinP1363Format).',
    },
    {
      bytes: swapped === text ? undefined : decodeBase64(swapped),
      cause: 'alphabet-swapped',
      says: `${what} has the two special characters of its base64 alphabet the wrong way round.`,
      fix: 'The seller has to encode with the alphabet of RFC 4648: "+" is "-", and "/" is "_" in base64url.',
    },
    {
      bytes: isMixed ? plain : undefined,
      cause: 'alphabet-mixed',
      says: `${what} mixes base64 and base64url.`,
      fix: 'The seller has to use one alphabet for the whole value: base64url as the profile says, or standard base64.',
    },
    {
      bytes: isHex ? new Uint8Array(Buffer.from(text, 'hex')) : undefined,
      cause: 'hex',
      says: `${what} is hexadecimal.`,
      fix: 'The seller has to write base64url, not hexadecimal digits.',
    },
  ];
  return forms.flatMap(({ bytes, ...change }) => (bytes ? [{ bytes, change }] : []));
}

/** The text of the byte sequence under a label: between colons, or what stands there instead of them. */
export function sequenceText(field: string, label: string): string | undefined {
  const escaped = label.replace(/[-.*]/g, '\\$&');
  return new RegExp(`(?:^|[,\\s])${escaped}=:?"?([A-Za-z0-9+/_=-]*)"?:?`).exec(field)?.[1];
}

type Headers = readonly (readonly [string, string])[];

/** Headers with one thing mended. */
export interface Repair {
  readonly headers: Headers;
  readonly change: Change;
}

/** The two fields that hold a byte sequence, and its label in them. */
const SEQUENCES = [
  { field: 'signature', label: 'sig1', name: 'Signature' },
  { field: 'content-digest', label: 'sha-256', name: 'Content-Digest' },
] as const;

function replaced(headers: Headers, field: string, value: string): Headers {
  return headers.map(([name, line]) => (name.toLowerCase() === field ? [name, value] : [name, line]));
}

/** What can be done about headers that cannot be read: one repair at a time, then both fields together. */
export function headerRepairs(headers: Headers): Repair[] {
  const made: Repair[] = [];
  for (const { field, label, name } of SEQUENCES) {
    const line = headers.find(([given]) => given.toLowerCase() === field)?.[1];
    const text = line === undefined ? undefined : sequenceText(line.replace(/^SHA-256=/i, 'sha-256='), label);
    if (text === undefined) continue;
    const bare: Change = {
      cause: 'headers',
      says: `${name} is not written as ${label}=:…:.`,
      fix: `The seller has to write ${name}: ${label}=:<base64url>: (RFC 8941 §3.3.5).`,
    };
    made.push({ headers: replaced(headers, field, `${label}=:${text}:`), change: bare });
    for (const { bytes, change } of byteForms(text, name)) {
      made.push({ headers: replaced(headers, field, `${label}=:${encodeBase64(bytes)}:`), change });
    }
  }
  const [first] = made;
  if (first) for (const repair of made.slice(1)) made.push(...both(first, repair));
  return made;
}

/** A sender that writes one field in its own way writes the other so too. */
function both(first: Repair, second: Repair): Repair[] {
  if (first.change.cause !== second.change.cause) return [];
  const headers = first.headers.map((pair, i): readonly [string, string] =>
    pair[0].toLowerCase() === 'content-digest' ? (second.headers[i] ?? pair) : pair,
  );
  const says = first.change.says.replace(/^Signature is/, 'Signature and Content-Digest are');
  return [{ headers, change: { ...first.change, says } }];
}
