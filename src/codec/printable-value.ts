// Makes any value short and printable before it is passed to a log, a hook, a span or a caller (verification.md
// §2.30). Code that builds a message therefore need not consider that it may contain a seller's text.

import { textOf } from '../shared/errors.ts';
import { isError, isPlainObject } from '../shared/realms.ts';
import { printableText } from './printable.ts';

/** The maximum depth of objects, lists and error causes that are converted. Values from this package are less deep. */
const MAX_DEPTH = 8;
/** The maximum number of members of an object, or of items of a list. */
const MAX_MEMBERS = 200;
/**
 * The maximum number of characters of all texts and names within one member of the value. Each nested value counts
 * `A_VALUE` characters more.
 */
const MAX_ALL = 16_384;
const A_VALUE = 8;
const MAX_FRAMES = 30;
const MAX_FRAME = 512;

/** The text that replaces a value that is too deep or too large, or that throws when it is read. */
const LEFT_OUT = '…';

/** The state of a conversion: the current depth, and the number of characters that are left. */
interface Place {
  depth: number;
  left: number;
}

/**
 * Returns the value with every text in it short and printable. Converts strings, lists, plain objects with their
 * names, and errors with message, stack and causes. Any other object is returned unchanged, and so is a value that is
 * already printable.
 */
export function printableValue<T>(value: T): T {
  try {
    return printed(value, { depth: 0, left: MAX_ALL }) as T;
  } catch {
    return LEFT_OUT as T;
  }
}

function printed(value: unknown, place: Place): unknown {
  const text = typeof value === 'string' ? printableText(value) : undefined;
  place.left -= A_VALUE + (text?.length ?? 0);
  if (place.left < 0) return LEFT_OUT;
  return text ?? (typeof value === 'object' && value !== null ? printedInside(value, place) : value);
}

function printedInside(value: object, place: Place): unknown {
  const isFailure = isError(value);
  if (!isFailure && !Array.isArray(value) && !isPlainObject(value)) return value;
  if (place.depth === MAX_DEPTH) return LEFT_OUT;
  if (isFailure) return printedError(value, place);
  return Array.isArray(value) ? printedList(value, place) : printedObject(value, place);
}

function printedList(list: readonly unknown[], place: Place): readonly unknown[] {
  const shown = list.slice(0, MAX_MEMBERS).map((item) => printedMember('', item, place));
  return shown.length === list.length && shown.every((item, at) => item === list[at]) ? list : shown;
}

function printedObject(value: Readonly<Record<string, unknown>>, place: Place): object {
  const names = Object.keys(value);
  if (names.length > MAX_MEMBERS) {
    return printedObject(Object.fromEntries(Object.entries(value).slice(0, MAX_MEMBERS)), place);
  }
  /**
   * The converted members. The list is made only if something changes, because nearly every value is printable
   * already.
   */
  let copy: [string, unknown][] | undefined;
  let at = 0;
  for (const name of names) {
    const member = value[name];
    const shown = printedMember(name, member, place);
    const text = printableText(name);
    if (shown !== member || text !== name) copy ??= names.slice(0, at).map((same) => [same, value[same]]);
    copy?.push([text, shown]);
    at += 1;
  }
  return copy ? Object.fromEntries(copy) : value;
}

/**
 * Returns the printable form of a member. The length of the member's name counts too, because a list of names can be
 * as long as one of texts. Each member of the outermost value has a limit of its own, so that one long member does not
 * displace the others.
 */
function printedMember(name: string, member: unknown, place: Place): unknown {
  if (place.depth === 0) place.left = MAX_ALL;
  place.left -= name.length;
  place.depth += 1;
  const shown = printed(member, place);
  place.depth -= 1;
  return shown;
}

/**
 * Returns a printable copy of the error with the same class. The copy's stack is one line with class and message,
 * followed by the frames.
 */
function printedError(error: Error, place: Place): Error {
  const { stack } = error;
  const message = textOf(error.message);
  const members = Reflect.ownKeys(error).filter((name) => name !== 'message' && name !== 'stack');
  const shown = members.slice(0, MAX_MEMBERS).map((name): [PropertyKey, unknown, unknown] => {
    const member: unknown = Reflect.get(error, name);
    return [name, member, printedMember('', member, place)];
  });
  const text = printableText(message);
  const isSame = shown.every(([name, is, was]) => is === was && isPrintableName(name));
  if (isSame && text === message && shown.length === members.length && isOwnStack(stack)) return error;
  const copy = Object.setPrototypeOf(new Error(text), Object.getPrototypeOf(error) as object) as Error;
  for (const [name, , value] of shown) {
    const key = typeof name === 'string' ? printableText(name) : name;
    const { enumerable = true } = Reflect.getOwnPropertyDescriptor(error, name) ?? {};
    Object.defineProperty(copy, key, { value, enumerable, configurable: true, writable: true });
  }
  const frames = framesOf(message, stack);
  const value = [`${printableText(textOf(copy.name), MAX_FRAME)}: ${text}`, ...frames].join('\n');
  Object.defineProperty(copy, 'stack', { value, configurable: true, writable: true });
  return copy;
}

const isPrintableName = (name: PropertyKey): boolean =>
  typeof name !== 'string' || printableText(name) === name;

const FRAME = /^ +at /;

/** True if the stack has the runtime's usual form: one line, followed by frames. */
function isOwnStack(stack: unknown): boolean {
  if (stack === undefined) return true;
  if (typeof stack !== 'string') return false;
  const [first = '', ...frames] = stack.split('\n');
  return (
    printableText(first) === first &&
    frames.every((line) => FRAME.test(line) && printableText(line, MAX_FRAME) === line)
  );
}

/**
 * Returns the stack frames that follow the message. The message is skipped first, because its text may look like a
 * frame.
 */
function framesOf(message: string, stack: unknown): readonly string[] {
  const text = typeof stack === 'string' ? stack : '';
  const at = text.indexOf(message);
  const lines = (at < 0 ? text : text.slice(at + message.length)).split('\n').slice(1);
  return lines
    .filter((line) => FRAME.test(line))
    .slice(0, MAX_FRAMES)
    .map((line) => printableText(line, MAX_FRAME));
}

/**
 * The base class of errors whose message or cause may contain foreign text, e.g. of a seller's answer. That text is
 * shortened, and unprintable characters are replaced.
 */
export abstract class PrintableError extends Error {
  /**
   * The stable code, for programs. The pages docs/errors.md (answers) and docs/thrown-errors.md (others) explain
   * each code.
   */
  abstract readonly code: string;

  constructor(message: string, options?: ErrorOptions) {
    super(printableText(message), printableValue(options));
  }
}
