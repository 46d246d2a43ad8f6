import { decodeBase64 } from '../../codec/base64.ts';
import type { Change } from './finding.ts';

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
export function fromDer(der: Uint8Array): Uint8Array | undefined {
  if (der[0] !== 0x30 || der[1] !== der.length - 2) return undefined;
  const r = derInteger(der, 2);
  const s = r && derInteger(der, r.end);
  if (!r || s?.end !== der.length) return undefined;
  const joined = new Uint8Array(64);
  joined.set(r.bytes);
  joined.set(s.bytes, 32);
  return joined;
}

/** By index: a pattern would look at a long run of `=` again from each of them. */
function withoutPadding(text: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === '=') end--;
  return text.slice(0, end);
}

const SWAPS: Readonly<Record<string, string>> = { '+': '/', '/': '+', '-': '_', _: '-' };

/**
 * The text between the colons, read otherwise than it should be.
 * @param text as received, without the colons.
 */
export function byteForms(text: string, what: string): ByteForm[] {
  const forms: ByteForm[] = [];
  const add = (bytes: Uint8Array | undefined, change: Change): void => {
    if (bytes) forms.push({ bytes, change });
  };
  const standard = text.replaceAll('-', '+').replaceAll('_', '/');
  const plain = decodeBase64(withoutPadding(standard));
  const fixes = {
    der: 'The seller has to send r‖s: 64 bytes (in Node dsaEncoding: "ieee-p1363", in Java SHA256withECDSAinP1363Format).',
    swapped:
      'The seller has to encode with the alphabet of RFC 4648: "+" is "-", and "/" is "_" in base64url.',
    mixed:
      'The seller has to use one alphabet for the whole value: base64url as the profile says, or standard base64.',
    hex: 'The seller has to write base64url, not hexadecimal digits.',
  };
  add(plain && fromDer(plain), {
    cause: 'der-signature',
    says: `${what} is DER, as most ECDSA libraries give it.`,
    fix: fixes.der,
  });
  const swapped = text.replace(/[-+/_]/g, (char) => SWAPS[char] ?? char);
  if (swapped !== text) {
    add(decodeBase64(swapped), {
      cause: 'alphabet-swapped',
      says: `${what} has the two special characters of its base64 alphabet the wrong way round.`,
      fix: fixes.swapped,
    });
  }
  if (/[+/]/.test(text) && /[-_]/.test(text)) {
    add(plain, { cause: 'alphabet-mixed', says: `${what} mixes base64 and base64url.`, fix: fixes.mixed });
  }
  if (/^(?:[0-9a-f]{2}){32,}$/i.test(text)) {
    add(new Uint8Array(Buffer.from(text, 'hex')), {
      cause: 'hex',
      says: `${what} is hexadecimal.`,
      fix: fixes.hex,
    });
  }
  return forms;
}

/** The text of the byte sequence under a label: between colons, or whatever stands there instead of them. */
export function sequenceText(field: string, label: string): string | undefined {
  const escaped = label.replace(/[-.*]/g, '\\$&');
  return new RegExp(`(?:^|[,\\s])${escaped}=:?"?([A-Za-z0-9+/_=-]*)"?:?`).exec(field)?.[1];
}
