// Makes any value printable and short where it leaves for a log, a hook, a span or a caller (verification.md
// §2.30).
// One place for all, so that code that builds a message need not think of a seller's text in it.

import { textOf } from '../shared/errors.ts';
import { isError, isPlainObject } from '../shared/realms.ts';
import { printableText } from './printable.ts';

/** Most levels of objects, lists and causes. Values of ours have fewer. */
const MAX_DEPTH = 8;
/** Most members of an object, or items of a list. */
const MAX_MEMBERS = 200;
/**
 * Most characters of all texts and names in one member of the value; each value counts `A_VALUE` in addition
 * to its text.
 */
const MAX_ALL = 16_384;
const A_VALUE = 8;
const MAX_FRAMES = 30;
const MAX_FRAME = 512;

/** Stands for a value that is too deep or too large, or that throws when it is read. */
const LEFT_OUT = '…';

/** Position in the value, and the room that is left for it. */
interface Place {
  depth: number;
  left: number;
}

/**
 * The same value with every text in it printable and short. Strings, lists, plain objects with their names,
 * and errors with message, stack and causes are covered. A value that is already printable is returned
 * itself, and so is any other object.
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
  /** Made only if it differs: nearly every value is printable as it is. */
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
 * The printable form of a member. Its name counts too, because a list of names can be as long as one of
 * texts. Each member of the value itself has room of its own, so that one does not crowd out the others.
 */
function printedMember(name: string, member: unknown, place: Place): unknown {
  if (place.depth === 0) place.left = MAX_ALL;
  place.left -= name.length;
  place.depth += 1;
  const shown = printed(member, place);
  place.depth -= 1;
  return shown;
}

/** A copy of the same class. Its stack is one first line, made of class and message, and then the frames. */
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

/** True if the stack has the runtime's form: one line, and frames. */
function isOwnStack(stack: unknown): boolean {
  if (stack === undefined) return true;
  if (typeof stack !== 'string') return false;
  const [first = '', ...frames] = stack.split('\n');
  return (
    printableText(first) === first &&
    frames.every((line) => FRAME.test(line) && printableText(line, MAX_FRAME) === line)
  );
}

/** Frames after the message: a text in the message may look like a frame. */
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
 * The base class of errors whose message or cause may contain text of others, e.g. of a seller's answer. That text
 * is shortened, and unprintable characters are replaced.
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
