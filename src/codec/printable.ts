/** UTF-8 bytes of a name that a log line shows (verification.md §2.30). */
const MAX_BYTES = 32;
/** The same for a URL: a reader of the line has to be able to copy it. */
export const MAX_URL_BYTES = 1_024;

/** True if a URL is short enough to be kept beside an event. */
export const isKeptUrl = (url: string): boolean => url.length <= MAX_URL_BYTES;
/** Code points of a text of ours that has such names in it. */
export const MAX_TEXT = 4_096;

/**
 * What may not reach a log or a terminal: C0, DEL, C1; bidi controls and isolates; zero-width and other invisible
 * format characters; line and paragraph separators; BOM; lone surrogates, which have no UTF-8.
 */
const NOT_PRINTABLE =
  // oxlint-disable-next-line no-control-regex -- control characters are what it is for
  /[\u0000-\u001F\u007F-\u009F\u061C\u180E\u200B-\u200F\u2028-\u202E\u2060-\u206F\uFEFF\p{Cs}]/u;

/**
 * `name` up to its first non-printable code point, cut between code points.
 * @param maxBytes of UTF-8.
 */
export function printableName(name: string, maxBytes: number = MAX_BYTES): string {
  let shown = '';
  let bytes = 0;
  for (const codePoint of name) {
    bytes += utf8Length(codePoint);
    if (bytes > maxBytes || NOT_PRINTABLE.test(codePoint)) break;
    shown += codePoint;
  }
  return shown;
}

/**
 * A name that stands twice in a body, as check 14b has it written (verification.md §2.30): one with a code point that is not printable
 * as `<sanitized:N>`, N the UTF-8 bytes before that; any other at most 32 bytes long.
 */
export function sanitizedName(name: string): string {
  let bytes = 0;
  for (const codePoint of name) {
    if (NOT_PRINTABLE.test(codePoint)) return `<sanitized:${bytes}>`;
    bytes += utf8Length(codePoint);
  }
  return printableName(name);
}

/** Others' words in a message of ours: what is not printable as `?`, and at most `most` code points. */
export function printableText(text: string, most: number = MAX_TEXT): string {
  if (text.length <= most && !NOT_PRINTABLE.test(text)) return text;
  let shown = '';
  let count = 0;
  for (const codePoint of text) {
    if (count === most) return `${shown}…`;
    shown += NOT_PRINTABLE.test(codePoint) ? '?' : codePoint;
    count += 1;
  }
  return shown;
}

/** A sender's text in a `detail` or an alarm: quoted and short, whatever it holds. */
export function quoted(text: string): string {
  const printable = text.slice(0, 64).replace(/[^\x20-\x7e]/g, '?');
  return JSON.stringify(text.length > 64 ? `${printable}…` : printable);
}

/** Whether `text` has at most `max` code points, and each of them can be printed. */
export function isPrintable(text: string, max: number): boolean {
  let count = 0;
  for (const codePoint of text) {
    count += 1;
    if (count > max || NOT_PRINTABLE.test(codePoint)) return false;
  }
  return true;
}

function utf8Length(character: string): number {
  const codePoint = character.codePointAt(0) ?? 0;
  if (codePoint < 0x80) return 1;
  if (codePoint < 0x800) return 2;
  return codePoint < 0x1_0000 ? 3 : 4;
}
