// Makes names and texts from outside safe for logs and terminals (verification.md §2.30).
// Called for every name, URL and detail that a log, an alarm or an error shows.

/** The maximum number of UTF-8 bytes of a foreign name in a log line (verification.md §2.30). */
const MAX_BYTES = 32;
/**
 * The maximum number of UTF-8 bytes of a URL in a log. It is high, because a reader of the log must be able to copy
 * the URL.
 */
export const MAX_URL_BYTES = 1_024;

/** True if a URL is short enough to be stored with an event. */
export const isKeptUrl = (url: string): boolean => url.length <= MAX_URL_BYTES;
/** The maximum number of code points of a message of this package. A message may contain foreign names. */
export const MAX_TEXT = 4_096;

/**
 * Matches characters that must not be written to a log or a terminal. These are the controls C0, DEL and C1, bidi
 * controls and isolates, invisible format characters such as zero-width ones, line and paragraph separators, and BOM.
 * Lone surrogates match too, because they have no UTF-8 form.
 */
const NOT_PRINTABLE =
  // oxlint-disable-next-line no-control-regex -- control characters are what it is for
  /[\u0000-\u001F\u007F-\u009F\u061C\u180E\u200B-\u200F\u2028-\u202E\u2060-\u206F\uFEFF\p{Cs}]/u;

/**
 * Returns `name` up to its first unprintable code point, shortened to whole code points.
 * @param maxBytes the maximum length in UTF-8.
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
 * Returns the form in which check 14b (no duplicate member names) shows a name (verification.md §2.30). A name with an
 * unprintable code point becomes `<sanitized:N>`, with N the number of UTF-8 bytes before that code point. Any other
 * name is shortened to 32 bytes.
 */
export function sanitizedName(name: string): string {
  let bytes = 0;
  for (const codePoint of name) {
    if (NOT_PRINTABLE.test(codePoint)) return `<sanitized:${bytes}>`;
    bytes += utf8Length(codePoint);
  }
  return printableName(name);
}

/**
 * Returns a foreign text for use in a message of this package. Unprintable characters are replaced by `?`, and the
 * text is shortened to `most` code points.
 */
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

/** Returns a sender's text for a `detail` or an alarm: quoted, printable and short. */
export function quoted(text: string): string {
  const printable = text.slice(0, 64).replace(/[^\x20-\x7e]/g, '?');
  return JSON.stringify(text.length > 64 ? `${printable}…` : printable);
}

/** True if `text` has at most `max` code points, and each of them can be printed. */
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
