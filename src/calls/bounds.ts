// Limits the nesting depth and the number of values of a seller's answer, before and after it is parsed (calls.md §4.6,
// §4.13). Also used for answers of the registry.
import { checkNames, MAX_DEPTH, parseStrictJson, parseUnchecked } from '../codec/strict-json.ts';
import { turnAfter } from '../shared/time-limits.ts';
import { AnswerRefusedError } from './refused-answer.ts';

/**
 * One JSON value is allowed for this many bytes of an answer's size limit. The number of values is limited because a
 * value of few bytes can take a hundred bytes of memory (calls.md §4.6).
 */
const BYTES_A_VALUE = 32;

/** Returns the most members and items that an answer of at most `maxBytes` bytes may have. */
export const mostValues = (maxBytes: number): number => Math.ceil(maxBytes / BYTES_A_VALUE);

/** The default size limit of an answer: 16 MiB. */
export const MAX_ANSWER_BYTES = 16_777_216;

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
/** The byte values of `{` and `}`, and the bit in which these two differ from `[` and `]`. */
const [OPEN, CLOSE, BRACKET_BIT] = [0x7b, 0x7d, 0x20];

const deeper = `it nests deeper than ${MAX_DEPTH} levels`;
const fuller = (most: number): string => `it has more than ${most} values`;

/** The state of counting the depth and the values of one JSON text. */
interface Count {
  /** The position of the next byte to read. It is never inside a string. */
  at: number;
  values: number;
  level: number;
}

const newCount = (): Count => ({ at: 0, values: 0, level: 0 });

/**
 * Checks the depth and the number of values of a JSON text before it is parsed, in one pass. The count is never below
 * the real number of values.
 * @returns the reason not to parse the text; undefined if it may be parsed, valid or not.
 */
export function jsonRefusedReason(bytes: Uint8Array, most: number): string | undefined {
  return countedTo(bytes.length, newCount(), bytes, most);
}

/**
 * The number of bytes that are counted before the event loop gets a turn. Counting white space and digits takes longer
 * than parsing them, so the count is interrupted too.
 */
const A_TURN = 1_048_576;

/** Returns the same reason as `jsonRefusedReason`, but lets the event loop do other work in between. */
async function refusedReasonInTurns(bytes: Uint8Array, most: number): Promise<string | undefined> {
  const count = newCount();
  while (count.at < bytes.length) {
    const reason = countedTo(Math.min(count.at + A_TURN, bytes.length), count, bytes, most);
    if (reason !== undefined) return reason;
    // oxlint-disable-next-line no-await-in-loop -- one turn after the other
    await turnAfter(bytes.byteLength);
  }
  return undefined;
}

/**
 * Continues the count up to `end`, or to the end of a string that begins before `end`.
 * @returns the reason to refuse the text; undefined: there is none.
 */
function countedTo(end: number, count: Count, bytes: Uint8Array, most: number): string | undefined {
  let { at, values, level } = count;
  for (; at < end; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte === QUOTE) {
      at = stringEnd(bytes, at);
    } else if (byte === COMMA) {
      values += 1;
    } else if ((byte | BRACKET_BIT) === OPEN) {
      values += 1;
      level += 1;
      if (level > MAX_DEPTH) return deeper;
    } else if ((byte | BRACKET_BIT) === CLOSE) {
      level -= 1;
    }
    // Commas and opening brackets are counted, because each value follows a comma or is the first after a bracket.
    if (values > most) return fuller(most);
  }
  Object.assign(count, { at, values, level } satisfies Count);
  return undefined;
}

/**
 * The number of bytes of a string that are read one by one, before the runtime's faster search for the next quote is
 * used.
 */
const SHORT = 32;

/** Returns the position of the quote that ends the string beginning at `start`. */
function stringEnd(bytes: Uint8Array, start: number): number {
  const end = bytes.length;
  for (let at = start + 1; at < end;) {
    for (const stop = Math.min(end, at + SHORT); at < stop; at += 1) {
      const byte = bytes[at] ?? 0;
      if (byte === QUOTE) return at;
      if (byte === BACKSLASH) at += 1;
    }
    const quote = bytes.indexOf(QUOTE, at);
    if (quote < 0) return end;
    if (!isEscaped(bytes, at, quote)) return quote;
    at = quote + 1;
  }
  return end;
}

/**
 * True if the byte at `at` is escaped: an odd number of backslashes precedes it. Only backslashes from `start` on are
 * counted.
 */
function isEscaped(bytes: Uint8Array, start: number, at: number): boolean {
  let first = at;
  while (first > start && bytes[first - 1] === BACKSLASH) first -= 1;
  return (at - first) % 2 === 1;
}

/** A parsed answer, or the reason why there is none. `isBeyond`: the answer exceeds the limits. */
type BoundedAnswer =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly detail: string; readonly isBeyond: boolean };

/**
 * Parses an answer strictly, within the limits. For a large answer, the event loop gets a turn between the phases
 * (calls.md §4.13).
 */
export async function boundedAnswer(bytes: Uint8Array, most: number): Promise<BoundedAnswer> {
  const beyond = await refusedReasonInTurns(bytes, most);
  if (beyond !== undefined) return { ok: false, detail: beyond, isBeyond: true };
  const read = parseUnchecked(bytes);
  await turnAfter(bytes.byteLength);
  const parsed = read.ok ? checkNames(read) : read;
  await turnAfter(bytes.byteLength);
  if (parsed.ok) return parsed;
  const { twice, detail } = parsed;
  return twice === undefined
    ? { ok: false, detail, isBeyond: false }
    : { ok: false, detail: `it has a name twice: ${twice}`, isBeyond: true };
}

/**
 * Returns the parsed JSON of an answer.
 * @returns undefined if the answer is not JSON.
 * @throws AnswerRefusedError if the answer is too deep, has too many values, or has a name twice in one object.
 */
export async function boundedJson(bytes: Uint8Array, most: number): Promise<unknown> {
  const answer = await boundedAnswer(bytes, most);
  if (answer.ok) return answer.value;
  if (answer.isBeyond) throw new AnswerRefusedError(answer.detail);
  return undefined;
}

/**
 * Returns the parsed JSON of an answer whose status is an error; undefined if the answer is not JSON or exceeds the
 * limits.
 */
export function errorJson(bytes: Uint8Array, most: number): unknown {
  const parsed = jsonRefusedReason(bytes, most) === undefined ? parseStrictJson(bytes) : undefined;
  return parsed?.ok ? parsed.value : undefined;
}

/** Parsed answers whose limits were checked before they were parsed. */
const BOUNDED = new WeakSet<object>();

/** Marks an answer as checked against the limits, so that `requireBounded` need not count its values again. */
export function bounded(answer: unknown): unknown {
  if (typeof answer === 'object' && answer !== null) BOUNDED.add(answer);
  return answer;
}

/**
 * Checks the limits of an answer that the application's client returned, before the answer is used. @throws
 * AnswerRefusedError
 */
export function requireBounded(value: unknown, most: number = mostValues(MAX_ANSWER_BYTES)): void {
  if (typeof value === 'object' && value !== null && BOUNDED.has(value)) return;
  let left = most;
  const count = (item: unknown, level: number): void => {
    left -= 1;
    if (left < 0) throw new AnswerRefusedError(fuller(most));
    walk(item, level);
  };
  const walk = (item: unknown, level: number): void => {
    if (typeof item !== 'object' || item === null) return;
    if (level >= MAX_DEPTH) throw new AnswerRefusedError(deeper);
    if (Array.isArray(item)) for (const one of item as readonly unknown[]) count(one, level + 1);
    else for (const name in item) count((item as Readonly<Record<string, unknown>>)[name], level + 1);
  };
  walk(value, 0);
}
