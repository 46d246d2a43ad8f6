// Hex, base64 and UTF-8; base64 is accepted as sellers send it (verification.md §3.1).
// Called by signatures, keys, stored rows and registrations.

const HEX: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

/** Returns the bytes in lower-case hexadecimal. */
export function hex(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += HEX[byte];
  return text;
}

/** The two hex digits of each byte value, combined in one number. */
const PAIRS: Uint16Array = Uint16Array.from(HEX, (pair) => (pair.charCodeAt(0) << 8) | pair.charCodeAt(1));

/**
 * True if `text` equals `hex(bytes)`. The time depends on the first difference, so use it for public values only.
 */
export function isHexOf(text: string, bytes: Uint8Array): boolean {
  if (text.length !== 2 * bytes.length) return false;
  for (let i = 0; i < bytes.length; i += 1) {
    const pair = (text.charCodeAt(2 * i) << 8) | text.charCodeAt(2 * i + 1);
    if (pair !== PAIRS[bytes[i] ?? 0]) return false;
  }
  return true;
}

const STANDARD = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const URL_SAFE = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** Stands for a character that is in neither alphabet. */
const NONE = 255;

/** The 6-bit value of each ASCII code, for the characters of both alphabets. */
const SEXTETS: Uint8Array = Uint8Array.from({ length: 128 }, (_, code) => {
  const char = String.fromCharCode(code);
  const standard = STANDARD.indexOf(char);
  const value = standard >= 0 ? standard : URL_SAFE.indexOf(char);
  return value >= 0 ? value : NONE;
});

/**
 * Returns the number of characters before the padding. Undefined if there is padding of a wrong length (RFC 4648
 * §3.2).
 */
function dataLength(text: string): number | undefined {
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  const length = text.length - padding;
  if (length % 4 === 1) return undefined;
  return padding === 0 || text.length % 4 === 0 ? length : undefined;
}

/**
 * Decodes one value in the standard or the URL-safe base64 alphabet, padded correctly or not at all. The profile
 * demands unpadded base64url, but real senders also send padded standard base64 (verification.md §3.1). Never throws.
 * The platform's decoders (`atob`, `Buffer.from`) are not used, because they ignore stray trailing bits or mix the
 * alphabets: several texts would mean the same bytes.
 * @returns the bytes. Undefined for a value that mixes alphabets, has inner or wrong padding, non-canonical trailing
 * bits (RFC 4648 §3.5) or another character.
 */
export function decodeBase64(text: string): Uint8Array | undefined {
  const length = dataLength(text);
  if (length === undefined || (/[+/]/.test(text) && /[-_]/.test(text))) return undefined;
  const bytes = new Uint8Array((length * 3) >> 2);
  let pending = 0;
  let bits = 0;
  let at = 0;
  for (let i = 0; i < length; i++) {
    const sextet = SEXTETS[text.charCodeAt(i)] ?? NONE;
    if (sextet === NONE) return undefined;
    pending = (pending << 6) | sextet;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes[at++] = pending >> bits;
      pending &= (1 << bits) - 1;
    }
  }
  return pending === 0 ? bytes : undefined;
}

/**
 * Decodes the byte sequence (RFC 8941 §3.3.5) of a dictionary field in its usual form: one member, no parameters.
 * @param start the text before the base64, e.g. `sig1=:`.
 * @returns undefined for any other form, and for text that is not base64. The caller's full parser then names the
 * mistake.
 */
export function fastBytes(field: string, start: string): Uint8Array | undefined {
  const end = field.length - 1;
  if (!field.startsWith(start) || field.indexOf(':', start.length) !== end) return undefined;
  return decodeBase64(field.slice(start.length, end));
}

function encode(bytes: Uint8Array, alphabet: string): string {
  let text = '';
  for (let i = 0; i < bytes.length; i += 3) {
    const left = bytes.length - i;
    const group = ((bytes[i] ?? 0) << 16) | ((bytes[i + 1] ?? 0) << 8) | (bytes[i + 2] ?? 0);
    text += alphabet.charAt(group >> 18) + alphabet.charAt((group >> 12) & 63);
    if (left > 1) text += alphabet.charAt((group >> 6) & 63);
    if (left > 2) text += alphabet.charAt(group & 63);
  }
  return text;
}

/** Returns base64 in the standard alphabet, padded (RFC 4648 §4): the form of RFC 8941 byte sequences. */
export function encodeBase64(bytes: Uint8Array): string {
  const text = encode(bytes, STANDARD);
  return text + '='.repeat((4 - (text.length % 4)) % 4);
}

/** Returns base64 in the URL-safe alphabet, unpadded (RFC 4648 §5): the form of this profile (contract.md §5.4). */
export function encodeBase64Url(bytes: Uint8Array): string {
  return encode(bytes, URL_SAFE);
}

/**
 * Node's `Buffer`, if the runtime has one. It encodes short texts into memory from a pool, in a third of
 * `TextEncoder`'s time. OpenSSL then needs no memory of its own for these bytes.
 */
const pool: Pick<typeof Buffer, 'from'> | undefined = (globalThis as { readonly Buffer?: typeof Buffer })
  .Buffer;

// One encoder for all texts, because it keeps no state between two texts, and making one costs as much as using it.
const encoder: InstanceType<typeof TextEncoder> = new TextEncoder();

/** Returns the UTF-8 bytes of a text; a lone surrogate becomes U+FFFD. */
export function utf8(text: string): Uint8Array {
  return pool?.from(text) ?? encoder.encode(text);
}
