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
