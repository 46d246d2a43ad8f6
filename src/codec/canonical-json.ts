import type { InexactNumbers } from './inexact-numbers.ts';

/** Options that say how a value is written. */
export interface CanonicalOptions {
  /** Of the text that the value was parsed from: those numbers are written exactly (verification.md §2.21). */
  readonly inexact?: InexactNumbers | undefined;
  /** Members that are left out, wherever they stand. */
  readonly without?: ReadonlySet<string>;
}

const AS_IT_IS: CanonicalOptions = {};

/** The text so far: one for all levels, since a text for each of them would be copied once a level. */
interface Writer {
  readonly options: CanonicalOptions;
  text: string;
}

/**
 * Canonical JSON (RFC 8785) of a value that `parseStrictObject` gave: at most `MAX_DEPTH` levels deep. Never throws:
 * where the RFC wants an error it stays injective instead. A lone surrogate is written as its escape, a number too large
 * for a double as `Infinity`: text that is hashed, and read by nobody.
 */
export function canonicalJson(value: unknown, options: CanonicalOptions = AS_IT_IS): string {
  const writer: Writer = { options, text: '' };
  write(writer, value);
  return writer.text;
}

/** @param exact the number as it is written, of one that a double changes. */
function write(writer: Writer, value: unknown, exact?: string): void {
  if (typeof value === 'object' && value !== null) {
    if (Array.isArray(value)) writeItems(writer, value);
    else writeMembers(writer, value as Readonly<Record<string, unknown>>);
    return;
  }
  // RFC 8785 §3.2.2.3: numbers as ECMAScript's Number::toString, which JSON.stringify follows but for Infinity.
  writer.text += typeof value === 'number' ? (exact ?? String(value)) : (JSON.stringify(value) ?? 'null');
}

function writeItems(writer: Writer, items: readonly unknown[]): void {
  const exact = writer.options.inexact?.get(items);
  let before = '[';
  for (let at = 0; at < items.length; at += 1) {
    writer.text += before;
    before = ',';
    write(writer, items[at], exact?.get(at));
  }
  writer.text += before === '[' ? '[]' : ']';
}

function writeMembers(writer: Writer, members: Readonly<Record<string, unknown>>): void {
  const { inexact, without } = writer.options;
  const exact = inexact?.get(members);
  const all = Object.keys(members);
  const names = without ? all.filter((name) => !without.has(name)) : all;
  // RFC 8785 §3.2.3: by UTF-16 code units, which is how strings compare here. `sort` without an argument does that.
  if (names.length > 1) names.sort();
  let before = '{';
  for (const name of names) {
    writer.text += `${before}${JSON.stringify(name)}:`;
    before = ',';
    write(writer, members[name], exact?.get(name));
  }
  writer.text += before === '{' ? '{}' : '}';
}
