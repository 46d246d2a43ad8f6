/**
 * Canonical JSON (RFC 8785) of a value that `parseStrictObject` gave: at most `MAX_DEPTH` levels deep. Never throws:
 * where the RFC wants an error it stays injective instead. A lone surrogate is written as its escape, a number too large
 * for a double as `Infinity`: text that is hashed, and read by nobody.
 */
export function canonicalJson(value: unknown): string {
  if (typeof value === 'object' && value !== null) {
    return Array.isArray(value)
      ? `[${value.map((item: unknown) => canonicalJson(item)).join(',')}]`
      : canonicalObject(value as Readonly<Record<string, unknown>>);
  }
  // RFC 8785 §3.2.2.3: numbers as ECMAScript's Number::toString, which JSON.stringify follows but for Infinity.
  if (typeof value === 'number') return String(value);
  return JSON.stringify(value) ?? 'null';
}

function canonicalObject(value: Readonly<Record<string, unknown>>): string {
  // RFC 8785 §3.2.3: by UTF-16 code units, which is how strings compare here. `sort` without an argument does that.
  const names = Object.keys(value);
  if (names.length === 0) return '{}';
  names.sort();
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonicalJson(value[name])}`).join(',')}}`;
}
