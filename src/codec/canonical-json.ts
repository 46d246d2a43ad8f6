// Canonical JSON (RFC 8785) for hashes that compare two payloads (verification.md §2.19, §2.21).
// Called by the event reader, by the folder `keys`, by subscriptions and the poller.

import type { InexactNumbers } from './inexact-numbers.ts';

/** Options of `canonicalJson`. */
export interface CanonicalOptions {
  /**
   * The numbers in the parsed text that a double cannot represent. They are written with all digits (verification.md
   * §2.21).
   */
  readonly inexact?: InexactNumbers | undefined;
  /** The names of members that are left out at any depth. */
  readonly without?: ReadonlySet<string>;
}

const AS_IT_IS: CanonicalOptions = {};

/**
 * The output so far. All levels of nesting append to one text, because a text per level would be copied at each level.
 */
interface Writer {
  readonly options: CanonicalOptions;
  text: string;
}

/**
 * Returns the canonical JSON (RFC 8785) of a value that `parseStrictObject` returned, which has at most `MAX_DEPTH`
 * levels. The text is only hashed, never parsed. Never throws.
 * Where the RFC demands an error, different values still give different texts. A lone surrogate is written as its
 * escape, and a number too large for a double as `Infinity`.
 */
export function canonicalJson(value: unknown, options: CanonicalOptions = AS_IT_IS): string {
  const writer: Writer = { options, text: '' };
  write(writer, value);
  return writer.text;
}

/**
 * Appends the canonical JSON of one value to the text.
 * @param exact the number as in the source text, if a double cannot represent it.
 */
function write(writer: Writer, value: unknown, exact?: string): void {
  if (typeof value === 'object' && value !== null) {
    if (Array.isArray(value)) writeItems(writer, value);
    else writeMembers(writer, value as Readonly<Record<string, unknown>>);
    return;
  }
  // RFC 8785 §3.2.2.3: numbers are written as by ECMAScript's Number::toString, which JSON.stringify follows except
  // for Infinity.
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
  // RFC 8785 §3.2.3: names are sorted by UTF-16 code units, as `sort` without an argument does.
  if (names.length > 1) names.sort();
  let before = '{';
  for (const name of names) {
    writer.text += `${before}${JSON.stringify(name)}:`;
    before = ',';
    write(writer, members[name], exact?.get(name));
  }
  writer.text += before === '{' ? '{}' : '}';
}
