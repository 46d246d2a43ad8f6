const HEX: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

/** Lower-case hexadecimal. */
export function hex(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += HEX[byte];
  return text;
}

const DIGITS = '0123456789abcdef';

/** Whether `text` is `hex(bytes)`. Where they differ time tells: for values that are public. */
export function isHexOf(text: string, bytes: Uint8Array): boolean {
  if (text.length !== 2 * bytes.length) return false;
  for (let i = 0; i < bytes.length; i += 1) {
    const byte = bytes[i] ?? 0;
    if (text.charCodeAt(2 * i) !== DIGITS.charCodeAt(byte >> 4)) return false;
    if (text.charCodeAt(2 * i + 1) !== DIGITS.charCodeAt(byte & 15)) return false;
  }
  return true;
}
