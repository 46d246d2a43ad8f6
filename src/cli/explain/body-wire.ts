import type { Budget } from './budget.ts';
import type { Change } from './finding.ts';

/** Whether bytes are those that were signed; false where the budget, which it charges, is spent. */
export type Matches = (bytes: Uint8Array) => boolean;

const BOM = Uint8Array.of(0xef, 0xbb, 0xbf);
/** U+FFFD in UTF-8: what a decoder puts where it found no character. */
const REPLACEMENT = Buffer.from([0xef, 0xbf, 0xbd]);
/** With two lost bytes 16 384 bodies are tried, with three they would be millions. */
const MOST_LOST = 2;
/** Bytes that begin no ASCII character. */
const BYTES_LOST = 128;
/** Of what is left may go into lost bytes; the rest is for other forms. */
const SHARE_LOST = 0.75;

/** Of JSON (RFC 8259 §2). */
const WHITE_SPACE: ReadonlySet<number | undefined> = new Set([0x20, 0x09, 0x0a, 0x0d]);

const joined = (...parts: readonly Uint8Array[]): Uint8Array => new Uint8Array(Buffer.concat(parts));

const latin1 = (body: Uint8Array): string => Buffer.from(body).toString('latin1');
const bytesOf = (text: string, encoding: 'latin1' | 'utf8' = 'latin1'): Uint8Array =>
  new Uint8Array(Buffer.from(text, encoding));

interface Form {
  readonly change: Change;
  readonly made: (body: Uint8Array) => Uint8Array | undefined;
}

const newline = (says: string, made: Form['made']): Form => ({
  change: { cause: 'body-trailing-newline', says },
  made,
});

const beginsWithBom = (body: Uint8Array): boolean => BOM.every((byte, i) => body[i] === byte);

const isUtf8 = (body: Uint8Array): boolean => Buffer.from(Buffer.from(body).toString('utf8')).equals(body);

/** Without the white space at its end, in one pass: a pattern would look at each run of it again and again. */
function trimmedEnd(body: Uint8Array): Uint8Array {
  let end = body.length;
  while (end > 0 && WHITE_SPACE.has(body[end - 1])) end--;
  return body.subarray(0, end);
}

/** The body's characters as Latin-1 bytes; undefined where they have none, or are ASCII. */
function asLatin1(body: Uint8Array): Uint8Array | undefined {
  const text = new TextDecoder().decode(body);
  return /[\u0100-\uffff]/.test(text) || !/[\u0080-\u00ff]/.test(text) ? undefined : bytesOf(text);
}

/** UTF-8 that was taken for Latin-1 and encoded again, undone; undefined where it was not. */
function undoneMojibake(body: Uint8Array): Uint8Array | undefined {
  const bytes = asLatin1(body);
  return bytes && isUtf8(bytes) ? bytes : undefined;
}

/** What happens to bytes without anybody looking at the JSON in them. */
const FORMS: readonly Form[] = [
  newline('The digest is of the body with a line feed at its end.', (body) => joined(body, bytesOf('\n'))),
  newline('The digest is of the body with CR LF at its end.', (body) => joined(body, bytesOf('\r\n'))),
  newline('The digest is of the body without the line feed at its end.', (body) =>
    bytesOf(latin1(body).replace(/\r?\n$/, '')),
  ),
  newline('The digest is of the body without the white space at its end.', trimmedEnd),
  {
    change: { cause: 'body-line-ends', says: 'The digest is of the body with CR LF where LF arrived.' },
    made: (body) => bytesOf(latin1(body).replace(/\r?\n/g, '\r\n')),
  },
  {
    change: { cause: 'body-line-ends', says: 'The digest is of the body with LF where CR LF arrived.' },
    made: (body) => bytesOf(latin1(body).replaceAll('\r\n', '\n')),
  },
  {
    change: {
      cause: 'body-bom',
      says: 'The digest is of the body with a byte order mark (EF BB BF) in front.',
      fix: 'Something dropped the mark, or the seller hashed it and did not send it. The seller has to send JSON without one (RFC 8259 §8.1).',
    },
    made: (body) => joined(BOM, body),
  },
  {
    change: {
      cause: 'body-bom',
      says: 'The digest is of the body without the byte order mark (EF BB BF) in front of it.',
      fix: 'The seller has to send JSON without a byte order mark (RFC 8259 §8.1).',
    },
    made: (body) => (beginsWithBom(body) ? body.subarray(3) : undefined),
  },
  {
    change: {
      cause: 'body-mojibake',
      says: 'The body was taken for Latin-1 and encoded as UTF-8 once more.',
    },
    made: undoneMojibake,
  },
  {
    change: {
      cause: 'body-latin1',
      says: 'The digest is of the body in Latin-1, and it arrived in UTF-8.',
      fix: 'The seller has to hash the UTF-8 bytes that it sends.',
    },
    made: asLatin1,
  },
  {
    change: {
      cause: 'body-empty',
      says: 'The digest is that of an empty body.',
      fix: 'The seller has to hash the bytes that it sends: it hashed before the body was there.',
    },
    made: () => new Uint8Array(),
  },
];

const REPLACED: Change = {
  cause: 'body-utf8-replaced',
  says: 'Bytes that are not UTF-8 were replaced by U+FFFD when the body was read as text; the digest is of the body with them.',
};

/** Where U+FFFD stands, at most so many that there is still something to try. */
function replacementsIn(bytes: Buffer): readonly number[] {
  const found: number[] = [];
  for (let at = bytes.indexOf(REPLACEMENT); at >= 0 && found.length <= MOST_LOST;) {
    found.push(at);
    at = bytes.indexOf(REPLACEMENT, at + REPLACEMENT.length);
  }
  return found;
}

/** Puts every byte back where U+FFFD stands, one combination after another, in one buffer. */
function replacedMatches(body: Uint8Array, matches: Matches, budget: Budget): boolean {
  const bytes = Buffer.from(body);
  const found = replacementsIn(bytes);
  if (found.length === 0 || found.length > MOST_LOST) return false;
  const tries = BYTES_LOST ** found.length;
  if (!budget.affords((tries * body.length) / SHARE_LOST)) return false;
  const ends = [...found, bytes.length];
  const pieces = ends.map((end, i) =>
    bytes.subarray(i === 0 ? 0 : (ends[i - 1] ?? 0) + REPLACEMENT.length, end),
  );
  const made = joined(...pieces.flatMap((piece, i) => (i === 0 ? [piece] : [Uint8Array.of(0), piece])));
  const places = found.map((at, i) => at - i * (REPLACEMENT.length - 1));
  for (let combination = 0; combination < tries; combination++) {
    for (const [i, place] of places.entries())
      made[place] = BYTES_LOST + (Math.floor(combination / BYTES_LOST ** i) % BYTES_LOST);
    if (matches(made)) return true;
  }
  return false;
}

/** The change of the bytes by which the digest matches, or undefined. */
export function wireForms(body: Uint8Array, matches: Matches, budget: Budget): readonly Change[] | undefined {
  for (const { change, made } of FORMS) {
    if (!budget.affords(body.length)) return undefined;
    const bytes = made(body);
    if (bytes && matches(bytes)) return [change];
  }
  return replacedMatches(body, matches, budget) ? [REPLACED] : undefined;
}
