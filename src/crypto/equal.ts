// Compares secrets in a time that does not reveal where they first differ.
// Called by HMAC, by credentials, by secrets of registrations and by the JavaScript engine.

/**
 * Compares two byte arrays in a time that depends only on their lengths, never on the position of the first
 * difference.
 */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let i = 0; i < a.length; i += 1) difference |= (a[i] ?? 0) ^ (b[i] ?? 0);
  return difference === 0;
}
