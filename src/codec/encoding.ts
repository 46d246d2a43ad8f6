const HEX: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

/** Lower-case hexadecimal. */
export function hex(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += HEX[byte];
  return text;
}

/** The two digits of each byte as one number. */
const PAIRS: Uint16Array = Uint16Array.from(HEX, (pair) => (pair.charCodeAt(0) << 8) | pair.charCodeAt(1));

/** Whether `text` is `hex(bytes)`. Where they differ time tells: for values that are public. */
export function isHexOf(text: string, bytes: Uint8Array): boolean {
  if (text.length !== 2 * bytes.length) return false;
  for (let i = 0; i < bytes.length; i += 1) {
    const pair = (text.charCodeAt(2 * i) << 8) | text.charCodeAt(2 * i + 1);
    if (pair !== PAIRS[bytes[i] ?? 0]) return false;
  }
  return true;
}

/*
 * Base64 as sellers send it (verification.md §3.1): the profile says unpadded base64url, real senders also
 * send padded standard base64. The platform's decoders (`atob`, `Buffer.from`) let stray trailing bits pass and
 * know one alphabet or mix both, so that several texts would mean one value; this one refuses what is not exact.
 */

const STANDARD = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const URL_SAFE = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** In neither alphabet. */
const NONE = 255;

/** ASCII code → 6-bit value, for both alphabets. */
const SEXTETS: Uint8Array = Uint8Array.from({ length: 128 }, (_, code) => {
  const char = String.fromCharCode(code);
  const standard = STANDARD.indexOf(char);
  const value = standard >= 0 ? standard : URL_SAFE.indexOf(char);
  return value >= 0 ? value : NONE;
});

/** Characters before the padding, or undefined where the padding is neither absent nor exact (RFC 4648 §3.2). */
function dataLength(text: string): number | undefined {
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  const length = text.length - padding;
  if (length % 4 === 1) return undefined;
  return padding === 0 || text.length % 4 === 0 ? length : undefined;
}

/**
 * Decodes one value in the standard or the URL-safe alphabet, padded correctly or not at all.
 * @returns the bytes, or undefined for a value that mixes the alphabets, has inner or wrong padding, non-canonical
 * trailing bits (RFC 4648 §3.5) or any other character. Never throws.
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
 * The byte sequence (RFC 8941 §3.3.5) of a dictionary field as senders write it: one member, no parameters.
 * @param start label and value up to the first colon, e.g. `sig1=:`.
 * @returns undefined where the field is anything else, or not base64: the full parser says what.
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

/** Standard alphabet, padded (RFC 4648 §4): the form of RFC 8941 byte sequences. */
export function encodeBase64(bytes: Uint8Array): string {
  const text = encode(bytes, STANDARD);
  return text + '='.repeat((4 - (text.length % 4)) % 4);
}

/** URL-safe alphabet, unpadded (RFC 4648 §5): the form of this profile (contract.md §5.4). */
export function encodeBase64Url(bytes: Uint8Array): string {
  return encode(bytes, URL_SAFE);
}

/**
 * Node's `Buffer`, where the runtime has one: it cuts short ones from a pool, in a third of the encoder's time, and what
 * OpenSSL is then given needs no memory of its own.
 */
const pool: Pick<typeof Buffer, 'from'> | undefined = (globalThis as { readonly Buffer?: typeof Buffer })
  .Buffer;

// One for all: it keeps nothing between two texts, and to make one costs as much as to use it.
const encoder: InstanceType<typeof TextEncoder> = new TextEncoder();

/** The UTF-8 of a text; a lone surrogate becomes U+FFFD. */
export function utf8(text: string): Uint8Array {
  return pool?.from(text) ?? encoder.encode(text);
}
