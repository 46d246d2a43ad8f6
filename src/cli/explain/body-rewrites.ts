// Searches for the bytes that a seller signed, if the received body differs from them. It tries the usual changes that
// parsers, serialisers, editors and charset conversions make. `causes.ts` calls it for digests and legacy HMACs.
import { gunzipSync } from 'node:zlib';
import { stringEnd } from '../../codec/json-reader.ts';
import { type Cause, type Change, CUT_SHORT, type Finding } from './explain-case.ts';
import { serialisations, type Work } from './json-rewrites.ts';

const FIX =
  'The receiver needs the bytes as they arrived: mount it before any body parser (Express: before express.json()), and turn off body rewriting in proxies. If it has them already, the seller signs one serialisation and sends another.';
const NO_BOM = 'The seller has to send JSON without a byte order mark (RFC 8259 §8.1).';

const BOM = Uint8Array.of(0xef, 0xbb, 0xbf);

const latin1 = (body: Uint8Array): string => Buffer.from(body).toString('latin1');
const bytesOf = (text: string): Uint8Array => Buffer.from(text, 'latin1');

/** The text of a body; undefined if it is not UTF-8. */
function utf8(body: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body);
  } catch {
    return undefined;
  }
}

/** Returns a function that replaces the white space at the end of a body by `end`. */
const ended =
  (end: string) =>
  (body: Uint8Array): Uint8Array =>
    bytesOf(latin1(body).trimEnd() + end);

/** Returns the body's characters as Latin-1 bytes. Undefined if Latin-1 lacks a character, or if all are ASCII. */
function asLatin1(body: Uint8Array): Uint8Array | undefined {
  const text = new TextDecoder().decode(body);
  return /[\u0100-\uffff]/.test(text) || !/[\u0080-\u00ff]/.test(text) ? undefined : bytesOf(text);
}

/** Undoes a double encoding: UTF-8 that was read as Latin-1 and encoded as UTF-8 again. Undefined if there was none. */
function undoneMojibake(body: Uint8Array): Uint8Array | undefined {
  const bytes = asLatin1(body);
  return bytes && utf8(bytes) !== undefined ? bytes : undefined;
}

/**
 * Usual changes of a body that need no knowledge of JSON. `made` undoes a change: it returns the bytes that the seller
 * may have signed.
 */
const BYTE_FORMS: readonly (readonly [
  cause: Cause,
  how: string,
  made: (body: Uint8Array) => Uint8Array | undefined,
  fix?: string,
])[] = [
  ['body-trailing-newline', 'with a line feed at its end', ended('\n')],
  ['body-trailing-newline', 'with CR LF at its end', ended('\r\n')],
  ['body-trailing-newline', 'without the white space at its end', ended('')],
  ['body-other', 'without the white space around it', (body) => bytesOf(latin1(body).trim())],
  [
    'body-line-ends',
    'with CR LF where LF arrived',
    (body) => bytesOf(latin1(body).replace(/\r?\n/g, '\r\n')),
  ],
  ['body-line-ends', 'with LF where CR LF arrived', (body) => bytesOf(latin1(body).replaceAll('\r\n', '\n'))],
  [
    'body-bom',
    'with a byte order mark (EF BB BF) in front; something dropped it, or it was hashed and not sent',
    (body) => Buffer.concat([BOM, body]),
    NO_BOM,
  ],
  [
    'body-bom',
    'without the byte order mark (EF BB BF) in front of it',
    (body) => (BOM.every((byte, i) => body[i] === byte) ? body.subarray(BOM.length) : undefined),
    NO_BOM,
  ],
  ['body-mojibake', 'before it was taken for Latin-1 and encoded as UTF-8 once more', undoneMojibake],
  [
    'body-latin1',
    'in Latin-1, and it arrived in UTF-8',
    asLatin1,
    'The seller has to hash the UTF-8 bytes that it sends.',
  ],
  [
    'body-empty',
    'as an empty one',
    () => new Uint8Array(),
    'The seller has to hash the bytes that it sends: it hashed before it had the body.',
  ],
];

/** Bytes that the seller may have signed, and how they differ from the bytes that arrived. */
interface Signed {
  readonly bytes: Uint8Array;
  readonly changes: () => readonly Change[];
}

const NEWLINE: Change = {
  cause: 'body-trailing-newline',
  says: 'The seller signed the body with a line feed at its end.',
};

/**
 * Yields the bodies that the seller may have signed, made from the received body.
 * @param json the body's text without surrounding white space, if it is JSON.
 */
function* signedForms(body: Uint8Array, json: string | undefined, work: Work): Generator<Signed> {
  for (const [cause, how, made, fix] of BYTE_FORMS) {
    const bytes = made(body);
    const change: Change = { cause, says: `The seller signed the body ${how}.`, ...(fix && { fix }) };
    if (bytes) yield { bytes, changes: () => [change] };
  }
  if (json === undefined) return;
  const encoder = new TextEncoder();
  const isEnded = body.at(-1) === 0x0a;
  for (const { text, changes } of serialisations(json, work)) {
    yield { bytes: encoder.encode(text), changes };
    const more = (): readonly Change[] => (isEnded ? changes() : [...changes(), NEWLINE]);
    yield { bytes: encoder.encode(`${text}\n`), changes: more };
  }
}

/** The deepest nesting of a body that is parsed as JSON. The parser needs some 60 bytes of memory for each level. */
const MOST_LEVELS = 1_000_000;

function isTooDeep(text: string): boolean {
  let level = 0;
  for (let at = 0; at < text.length && level <= MOST_LEVELS; at++) {
    const char = text.charAt(at);
    if (char === '"') at = stringEnd(text, at);
    else if ('[{'.includes(char)) level++;
    else if (']}'.includes(char)) level--;
  }
  return level > MOST_LEVELS;
}

function isJson(text: string): boolean {
  if (isTooDeep(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Returns the most likely cause if no tried form of the body was the signed one. */
function guess(text: string | undefined, isWhole: boolean, isCut: boolean): Change {
  if (text === '')
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
      says: 'The body has U+FFFD in it, which text decoders put in place of bytes that are not UTF-8. The original bytes are lost. If the seller sent U+FFFD itself, the body differs in something else.',
    };
  if (!isWhole)
    return {
      cause: 'body-cut',
      says: 'The body is not a complete JSON text, or it is nested too deeply: it was cut short or changed.',
    };
  return {
    cause: 'body-other',
    says: isCut
      ? 'The seller signed none of the serialisations that were tried.'
      : 'The seller signed none of the usual serialisations: the content itself was changed, numbers were rewritten (1.0 as 1), or the seller hashed something else.',
  };
}

/** The default limit of bytes that a search writes and hashes. It takes a few seconds to reach it. */
const MOST_WORK = 512 * 1024 * 1024;

/**
 * Searches for the body that the seller signed, by its digest or HMAC.
 * @param isSigned returns true if the seller signed these bytes.
 * @param most the limit of bytes that are written and hashed.
 * @returns at least one finding (cause and fix). If no tried body was signed, the finding is not proved, and mentions a
 *   search that was cut short.
 */
export function searchBody(
  body: Uint8Array,
  isSigned: (bytes: Uint8Array) => boolean,
  step: string,
  most: number = MOST_WORK,
): readonly Finding[] {
  const work: Work = { left: most };
  const text = utf8(body);
  // `trim` removes a byte order mark too, because JavaScript counts it as white space.
  const trimmed = text?.trim();
  const json = trimmed !== undefined && isJson(trimmed) ? trimmed : undefined;
  for (const { bytes, changes } of signedForms(body, json, work)) {
    work.left -= bytes.length;
    if (work.left < 0) break;
    if (isSigned(bytes)) return changes().map((change) => ({ step, proved: true, fix: FIX, ...change }));
  }
  const isCut = work.left < 0;
  const { says, ...change } = guess(text, json !== undefined, isCut);
  return [{ step, proved: false, fix: FIX, ...change, says: isCut ? `${says} ${CUT_SHORT}` : says }];
}

/** The largest number of bytes to which a body is decompressed. The limit is the same as for a file with a capture. */
const MOST_UNZIPPED = 64 * 1024 * 1024;

const isGzip = (body: Uint8Array): boolean => body[0] === 0x1f && body[1] === 0x8b;

/**
 * Returns the decompressed body; undefined if the body has no gzip, or is too large after decompression. A body that
 * was compressed twice is left as it is, because it might be compressed any number of times.
 */
export function gunzipped(body: Uint8Array): Uint8Array | undefined {
  if (!isGzip(body)) return undefined;
  try {
    const bytes = new Uint8Array(gunzipSync(body, { maxOutputLength: MOST_UNZIPPED }));
    return isGzip(bytes) ? undefined : bytes;
  } catch {
    return undefined;
  }
}
