const QUOTE = 0x22;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
/** `[` and `{` differ in this bit alone, and so do `]` and `}`. */
const BRACKET_BIT = 0x20;
/** Digits, commas and white space are below the brackets: one comparison sends them on. */
const LAST_BEFORE_BRACKETS = 0x5a;
const OPEN = 0x7b;
const CLOSE = 0x7d;

/** What a counter finds in a JSON text. */
export interface MemberCount {
  /** Colons outside strings: in valid JSON text each of them is a member. */
  readonly members: number;
  /** Whether the name of a member is written with a backslash. */
  readonly escapedNames: boolean;
}

/** Undefined for text with more than `most` levels of brackets or, where the counter says so, that might have them. */
export type CountMembers = (bytes: Uint8Array, most: number) => MemberCount | undefined;

/**
 * One pass over the bytes: every byte looked for is ASCII, so none occurs inside a longer UTF-8 sequence. Strings are
 * passed over in a loop of their own, here rather than in a function: that is half of the time.
 */
export function countMembers(bytes: Uint8Array, most: number): MemberCount | undefined {
  const end = bytes.length;
  let members = 0;
  let escapedNames = false;
  let escaped = false;
  let level = 0;
  let at = 0;
  while (at < end) {
    let byte = bytes[at] ?? 0;
    at += 1;
    if (byte === QUOTE) {
      escaped = false;
      for (; at < end; at += 1) {
        byte = bytes[at] ?? 0;
        if (byte === QUOTE) break;
        if (byte !== BACKSLASH) continue;
        escaped = true;
        at += 1;
      }
      at += 1;
    } else if (byte === COLON) {
      members += 1;
      if (escaped) escapedNames = true;
    } else if (byte > LAST_BEFORE_BRACKETS) {
      byte |= BRACKET_BIT;
      if (byte === OPEN) {
        level += 1;
        if (level > most) return undefined;
      } else if (byte === CLOSE) level -= 1;
    }
  }
  return { members, escapedNames };
}
