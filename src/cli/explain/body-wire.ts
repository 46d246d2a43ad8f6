import type { Change } from './finding.ts';

/** Whether bytes are those that were signed. */
export type Matches = (bytes: Uint8Array) => boolean;

const BOM = Uint8Array.of(0xef, 0xbb, 0xbf);
/** U+FFFD in UTF-8: what a decoder puts where it found no character. */
const REPLACEMENT = Buffer.from([0xef, 0xbf, 0xbd]);
/** With two lost bytes 16 384 bodies are tried, with three they would be millions. */
const MOST_LOST = 2;

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
  newline('The digest is of the body without the white space at its end.', (body) =>
    bytesOf(latin1(body).replace(/[ \t\r\n]+$/, '')),
  ),
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

/** Puts every byte back where U+FFFD stands, one combination after another. */
function replacedMatches(body: Uint8Array, matches: Matches): boolean {
  const bytes = Buffer.from(body);
  const at = bytes.indexOf(REPLACEMENT);
  const pieces: Buffer[] = [];
  let rest = bytes;
  for (let found = at; found >= 0; found = rest.indexOf(REPLACEMENT)) {
    pieces.push(rest.subarray(0, found));
    rest = rest.subarray(found + REPLACEMENT.length);
  }
  if (pieces.length === 0 || pieces.length > MOST_LOST) return false;
  const tail = rest;
  const tryFrom = (index: number, before: Buffer): boolean => {
    const piece = pieces[index];
    if (!piece) return matches(Buffer.concat([before, tail]));
    for (let byte = 0x80; byte <= 0xff; byte++) {
      if (tryFrom(index + 1, Buffer.concat([before, piece, Buffer.from([byte])]))) return true;
    }
    return false;
  };
  return tryFrom(0, Buffer.alloc(0));
}

/** The change of the bytes by which the digest matches, or undefined. */
export function wireForms(body: Uint8Array, matches: Matches): readonly Change[] | undefined {
  for (const { change, made } of FORMS) {
    const bytes = made(body);
    if (bytes && matches(bytes)) return [change];
  }
  return replacedMatches(body, matches) ? [REPLACED] : undefined;
}
