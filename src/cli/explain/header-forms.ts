// Decodes byte sequences of `Signature` and `Content-Digest` that have a wrong form, and repairs such headers.
// `causes.ts` and `signature-search.ts` use these functions.
import { decodeBase64, encodeBase64 } from '../../codec/encoding.ts';
import type { Change } from './explain-case.ts';

/** Reads the DER INTEGER at `at`, as 32 bytes; undefined if there is none of that size. */
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

/** Returns the bytes r‖s of a DER SEQUENCE of two INTEGERs (RFC 3279 §2.2.3); undefined for any other bytes. */
function fromDer(der: Uint8Array): Uint8Array | undefined {
  if (der[0] !== 0x30 || der[1] !== der.length - 2) return undefined;
  const r = derInteger(der, 2);
  const s = r && derInteger(der, r.end);
  if (!r || s?.end !== der.length) return undefined;
  return new Uint8Array([...r.bytes, ...s.bytes]);
}

/**
 * Returns the text without `=` at its end. It is a loop, because a regular expression would take quadratic time for a
 * long run of `=`.
 */
function withoutPadding(text: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === '=') end--;
  return text.slice(0, end);
}

const SWAPS: Readonly<Record<string, string>> = { '+': '/', '/': '+', '-': '_', _: '-' };

/**
 * A wrong encoding of the bytes between the colons in `Signature` or `Content-Digest`. `bytes` decodes it, and `says`
 * completes "Signature is …".
 */
interface Reading extends Change {
  readonly bytes: (text: string) => Uint8Array | undefined;
}

const eitherAlphabet = (text: string): Uint8Array | undefined =>
  decodeBase64(withoutPadding(text.replaceAll('-', '+').replaceAll('_', '/')));

const READINGS: readonly Reading[] = [
  {
    cause: 'der-signature',
    says: 'in DER, as most ECDSA libraries give it.',
    fix: 'The seller has to send r‖s: 64 bytes (in Node dsaEncoding: "ieee-p1363", in Java SHA256withECDSAinP1363Format).',
    bytes: (text) => fromDer(eitherAlphabet(text) ?? new Uint8Array()),
  },
  {
    cause: 'alphabet-swapped',
    says: 'written with the two special characters of its base64 alphabet swapped.',
    fix: 'The seller has to encode with the alphabet of RFC 4648: "+" is "-", and "/" is "_" in base64url.',
    bytes: (text) =>
      /[-+/_]/.test(text) ? decodeBase64(text.replace(/[-+/_]/g, (char) => SWAPS[char] ?? char)) : undefined,
  },
  {
    cause: 'alphabet-mixed',
    says: 'in base64 and base64url mixed.',
    fix: 'The seller has to use one alphabet for the whole value: base64url as the profile says, or standard base64.',
    bytes: (text) => (/[+/]/.test(text) && /[-_]/.test(text) ? eitherAlphabet(text) : undefined),
  },
  {
    cause: 'hex',
    says: 'in hexadecimal digits.',
    fix: 'The seller has to write base64url, not hexadecimal digits.',
    bytes: (text) =>
      /^(?:[0-9a-f]{2}){32,}$/i.test(text) ? new Uint8Array(Buffer.from(text, 'hex')) : undefined,
  },
];

/** Bytes that the text of a `Signature` or `Content-Digest` may encode, and the mistake in the encoding. */
export interface ByteForm {
  readonly bytes: Uint8Array;
  readonly change: Change;
}

/**
 * Decodes the text between the colons in each of the known wrong encodings.
 * @param text as received, without the colons.
 * @param what the name of the header.
 */
export function byteForms(text: string, what: string): ByteForm[] {
  return READINGS.flatMap(({ bytes: read, says, ...change }) => {
    const bytes = read(text);
    return bytes ? [{ bytes, change: { ...change, says: `${what} is ${says}` } }] : [];
  });
}

/**
 * Returns the text of the byte sequence with this label in a header field. A text without colons is returned as it is.
 */
export function sequenceText(field: string, label: string): string | undefined {
  const escaped = label.replace(/[-.*]/g, '\\$&');
  return new RegExp(`(?:^|[,\\s])${escaped}=:?"?([A-Za-z0-9+/_=-]*)"?:?`).exec(field)?.[1];
}

type Headers = readonly (readonly [string, string])[];

/** The headers after one repair, and the mistake that was repaired. */
export interface Repair {
  readonly headers: Headers;
  readonly change: Change;
}

/** The two header fields with a byte sequence, and the label of that sequence. */
const LABELS: Readonly<Record<string, string>> = { signature: 'sig1', 'content-digest': 'sha-256' };

/**
 * A repair of a byte sequence in a header. `mend` returns the new text; undefined if the repair does not apply. `says`
 * completes "Signature is …".
 */
interface Mending extends Change {
  readonly mend: (text: string) => string | undefined;
}

const MENDINGS: readonly Mending[] = [
  {
    cause: 'headers',
    says: 'not written as sig1=:…: and sha-256=:…:.',
    fix: 'The seller has to write Signature: sig1=:<base64url>: and Content-Digest: sha-256=:<base64url>: (RFC 8941 §3.3.5).',
    mend: (text) => text,
  },
  ...READINGS.map(({ bytes: read, ...change }) => ({
    ...change,
    mend: (text: string) => {
      const bytes = read(text);
      return bytes && encodeBase64(bytes);
    },
  })),
];

/**
 * Returns one set of headers for each repair that changes any of them. A repair is applied to all fields, but not
 * combined with another.
 */
export function headerRepairs(headers: Headers): Repair[] {
  return MENDINGS.flatMap(({ mend, says, ...change }) => {
    const names: string[] = [];
    const mended = headers.map(([name, line]): readonly [string, string] => {
      const lower = name.toLowerCase();
      const label = Object.hasOwn(LABELS, lower) ? LABELS[lower] : undefined;
      const text = label && sequenceText(line.replace(/^SHA-256=/i, 'sha-256='), label);
      const bare = text === undefined ? undefined : mend(text);
      const value = bare === undefined ? line : `${label}=:${bare}:`;
      if (value !== line) names.push(name);
      return [name, value];
    });
    const all = `${names.join(' and ')} ${names.length > 1 ? 'are' : 'is'} ${says}`;
    return names.length > 0 ? [{ headers: mended, change: { ...change, says: all } }] : [];
  });
}
