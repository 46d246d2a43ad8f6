// Makes names and texts of strangers safe for logs and terminals (verification.md §2.30).
// Called for every name, URL and detail that a log, an alarm or an error shows.

/** Most UTF-8 bytes of a name in a log line (verification.md §2.30). */
const MAX_BYTES = 32;
/** Most UTF-8 bytes of a URL. It is long, because a reader of the log must be able to copy the URL. */
export const MAX_URL_BYTES = 1_024;

/** True if a URL is short enough to be kept with an event. */
export const isKeptUrl = (url: string): boolean => url.length <= MAX_URL_BYTES;
/** Most code points of one of our texts that contains such names. */
export const MAX_TEXT = 4_096;

/**
 * Matches characters that must not be written to a log or a terminal. They are C0, DEL, C1, bidi controls and
 * isolates, invisible format characters such as zero-width ones, line and paragraph separators, BOM. Lone
 * surrogates match too, because they have no UTF-8 form.
 */
const NOT_PRINTABLE =
  // oxlint-disable-next-line no-control-regex -- control characters are what it is for
  /[\u0000-\u001F\u007F-\u009F\u061C\u180E\u200B-\u200F\u2028-\u202E\u2060-\u206F\uFEFF\p{Cs}]/u;

/**
 * Returns `name` up to its first unprintable code point, shortened between code points.
 * @param maxBytes the largest length in UTF-8.
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
 * The form in which check 14b shows a name that occurs twice in a body (verification.md §2.30). If it has an
 * unprintable code point, it becomes `<sanitized:N>`, with N the number of UTF-8 bytes before that code point.
 * Otherwise it is shortened to 32 bytes.
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
 * A stranger's text for use in one of our messages: unprintable characters are replaced by `?`, and it is shortened
 * to `most` code points.
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

/** A sender's text in a `detail` or an alarm: quoted, printable and short. */
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
