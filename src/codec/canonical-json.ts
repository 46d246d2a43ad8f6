import type { InexactNumbers } from './inexact-numbers.ts';

/** How a value is written. */
export interface CanonicalOptions {
  /** Of the text that the value was parsed from: those numbers are written exactly (verification.md §2.21). */
  readonly inexact?: InexactNumbers | undefined;
  /** Members that are left out, wherever they stand. */
  readonly without?: ReadonlySet<string>;
}

const AS_IT_IS: CanonicalOptions = {};

/**
 * Canonical JSON (RFC 8785) of a value that `parseStrictObject` gave: at most `MAX_DEPTH` levels deep. Never throws:
 * where the RFC wants an error it stays injective instead. A lone surrogate is written as its escape, a number too large
 * for a double as `Infinity`: text that is hashed, and read by nobody.
 */
export function canonicalJson(value: unknown, options: CanonicalOptions = AS_IT_IS): string {
  if (typeof value === 'object' && value !== null) {
    return Array.isArray(value)
      ? canonicalList(value, options)
      : canonicalObject(value as Readonly<Record<string, unknown>>, options);
  }
  // RFC 8785 §3.2.2.3: numbers as ECMAScript's Number::toString, which JSON.stringify follows but for Infinity.
  if (typeof value === 'number') return String(value);
  return JSON.stringify(value) ?? 'null';
}

function canonicalList(list: readonly unknown[], options: CanonicalOptions): string {
  const exact = options.inexact?.get(list);
  return `[${list.map((item, at) => exact?.get(at) ?? canonicalJson(item, options)).join(',')}]`;
}

function canonicalObject(value: Readonly<Record<string, unknown>>, options: CanonicalOptions): string {
  const { inexact, without } = options;
  const exact = inexact?.get(value);
  const all = Object.keys(value);
  const names = without ? all.filter((name) => !without.has(name)) : all;
  if (names.length === 0) return '{}';
  // RFC 8785 §3.2.3: by UTF-16 code units, which is how strings compare here. `sort` without an argument does that.
  names.sort();
  const member = (name: string): string => exact?.get(name) ?? canonicalJson(value[name], options);
  return `{${names.map((name) => `${JSON.stringify(name)}:${member(name)}`).join(',')}}`;
}
