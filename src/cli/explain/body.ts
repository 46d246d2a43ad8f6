import { gunzipSync } from 'node:zlib';
import { type Budget, type Change, type Finding, type Matches, withNote } from './case.ts';
import { searchJson } from './json.ts';

const FIX =
  'The receiver has to get the bytes as they came: mount it before any body parser (Express: before express.json()), and turn off what rewrites bodies in proxies. Where it does get them, the seller signs one serialisation and sends another.';

const BOM = Uint8Array.of(0xef, 0xbb, 0xbf);

/** White space of JSON (RFC 8259 §2). */
const WHITE_SPACE: ReadonlySet<number | undefined> = new Set([0x20, 0x09, 0x0a, 0x0d]);

const joined = (...parts: readonly Uint8Array[]): Uint8Array => new Uint8Array(Buffer.concat(parts));
const latin1 = (body: Uint8Array): string => Buffer.from(body).toString('latin1');
const bytesOf = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'latin1'));

/** The text of a body, undefined where it is not UTF-8. */
function utf8(body: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body);
  } catch {
    return undefined;
  }
}

/** Without the white space at its end. In a loop: a pattern would look at each run of it again and again. */
function trimmedEnd(body: Uint8Array): Uint8Array {
  let end = body.length;
  while (end > 0 && WHITE_SPACE.has(body[end - 1])) end--;
  return body.subarray(0, end);
}

/** The body's characters as Latin-1 bytes; undefined where Latin-1 lacks one, or all are ASCII. */
function asLatin1(body: Uint8Array): Uint8Array | undefined {
  const text = new TextDecoder().decode(body);
  return /[\u0100-\uffff]/.test(text) || !/[\u0080-\u00ff]/.test(text) ? undefined : bytesOf(text);
}

/** UTF-8 that was taken for Latin-1 and encoded again, undone; undefined where it was not. */
function undoneMojibake(body: Uint8Array): Uint8Array | undefined {
  const bytes = asLatin1(body);
  return bytes && utf8(bytes) !== undefined ? bytes : undefined;
}

/** What happens to bytes without regard to the JSON in them: the change, and the bytes before it. */
const FORMS: readonly (Change & { readonly made: (body: Uint8Array) => Uint8Array | undefined })[] = [
  {
    cause: 'body-trailing-newline',
    says: 'The digest is of the body with a line feed at its end.',
    made: (body) => joined(body, bytesOf('\n')),
  },
  {
    cause: 'body-trailing-newline',
    says: 'The digest is of the body with CR LF at its end.',
    made: (body) => joined(body, bytesOf('\r\n')),
  },
  {
    cause: 'body-trailing-newline',
    says: 'The digest is of the body without the line feed at its end.',
    made: (body) => bytesOf(latin1(body).replace(/\r?\n$/, '')),
  },
  {
    cause: 'body-trailing-newline',
    says: 'The digest is of the body without the white space at its end.',
    made: trimmedEnd,
  },
  {
    cause: 'body-line-ends',
    says: 'The digest is of the body with CR LF where LF arrived.',
    made: (body) => bytesOf(latin1(body).replace(/\r?\n/g, '\r\n')),
  },
  {
    cause: 'body-line-ends',
    says: 'The digest is of the body with LF where CR LF arrived.',
    made: (body) => bytesOf(latin1(body).replaceAll('\r\n', '\n')),
  },
  {
    cause: 'body-bom',
    says: 'The digest is of the body with a byte order mark (EF BB BF) in front.',
    fix: 'Something dropped the mark, or the seller hashed it and did not send it. The seller has to send JSON without one (RFC 8259 §8.1).',
    made: (body) => joined(BOM, body),
  },
  {
    cause: 'body-bom',
    says: 'The digest is of the body without the byte order mark (EF BB BF) in front of it.',
    fix: 'The seller has to send JSON without a byte order mark (RFC 8259 §8.1).',
    made: (body) => (BOM.every((byte, i) => body[i] === byte) ? body.subarray(BOM.length) : undefined),
  },
  {
    cause: 'body-mojibake',
    says: 'The body was taken for Latin-1 and encoded as UTF-8 once more.',
    made: undoneMojibake,
  },
  {
    cause: 'body-latin1',
    says: 'The digest is of the body in Latin-1, and it arrived in UTF-8.',
    fix: 'The seller has to hash the UTF-8 bytes that it sends.',
    made: asLatin1,
  },
  {
    cause: 'body-empty',
    says: 'The digest is that of an empty body.',
    fix: 'The seller has to hash the bytes that it sends: it hashed before the body was there.',
    made: () => new Uint8Array(),
  },
];

function searchBytes(body: Uint8Array, matches: Matches, budget: Budget): readonly Change[] | undefined {
  for (const { made, ...change } of FORMS) {
    if (!budget.affords(body.length)) return undefined;
    const bytes = made(body);
    if (bytes && matches(bytes)) return [change];
  }
  return undefined;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function searchForms(body: Uint8Array, matches: Matches, budget: Budget): readonly Change[] | undefined {
  // A byte order mark is white space for `trim`.
  const text = utf8(body)?.trim();
  if (text === undefined || !isJson(text)) return undefined;
  return searchJson(text, body.at(-1) === 0x0a, matches, budget);
}

/** What can be said where nothing matched. */
function guess(body: Uint8Array, budget: Budget): Change {
  const text = utf8(body);
  if (body.length === 0)
    return {
      cause: 'body-empty',
      says: 'The body is empty: it was read before the receiver got it, or the capture lacks it.',
    };
  if (text === undefined)
    return {
      cause: 'body-other',
      says: 'The body is not UTF-8: it was changed, or the seller hashed something else.',
      fix: `${FIX} JSON has to be UTF-8 (RFC 8259 §8.1).`,
    };
  if (text.includes('\uFFFD'))
    return {
      cause: 'body-utf8-replaced',
      says: 'The body has U+FFFD in it, which readers of text put for bytes that are not UTF-8. Which bytes they were cannot be told; the seller may also have sent U+FFFD itself, and the body differs in something else.',
    };
  if (!isJson(text.trim()))
    return { cause: 'body-cut', says: 'The body is not a whole JSON text: it was cut short or changed.' };
  return {
    cause: 'body-other',
    says: budget.cutShort()
      ? 'The serialisations that were tried do not have this digest.'
      : 'None of the usual serialisations has this digest: the content itself was changed, numbers were rewritten (1.0 as 1), or the seller hashed something else.',
  };
}

/**
 * Finds what the seller signed, among what parsers, serialisers, editors and charsets make of a body.
 * @param matches charges the budget for what it hashes.
 * @returns at least one finding; not proved where nothing matched, and then it says where the search was cut short.
 */
export function searchBody(
  body: Uint8Array,
  matches: Matches,
  step: string,
  budget: Budget,
): readonly Finding[] {
  const found = searchBytes(body, matches, budget) ?? searchForms(body, matches, budget);
  if (found) return found.map((change) => ({ step, proved: true, fix: FIX, ...change }));
  const change = guess(body, budget);
  return [{ step, proved: false, fix: FIX, ...change, says: withNote(change.says, budget) }];
}

/** The largest body, in bytes, whose gzip is undone: as large as a capture may be. */
const MOST_UNZIPPED = 64 * 1024 * 1024;

const isGzip = (body: Uint8Array): boolean => body[0] === 0x1f && body[1] === 0x8b;

/** The body without gzip; undefined where it has none, is too large without it, or has it twice, which may have no end. */
export function gunzipped(body: Uint8Array): Uint8Array | undefined {
  if (!isGzip(body)) return undefined;
  try {
    const bytes = new Uint8Array(gunzipSync(body, { maxOutputLength: MOST_UNZIPPED }));
    return isGzip(bytes) ? undefined : bytes;
  } catch {
    return undefined;
  }
}
