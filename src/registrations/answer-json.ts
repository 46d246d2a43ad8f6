// Turns values that callers pass into JSON text, within limits of size and depth. Its errors name the part of a value
// that JSON cannot represent. Registrations and subscriptions use it, and the receiver for states and answers that the
// application passes.
import { utf8 } from '../codec/encoding.ts';
import { RegistrationError } from './registrations-errors.ts';
import { isPlainObject } from '../shared/realms.ts';

/** Any JSON value: null, boolean, number, text, list or object. It is the type of the members of a `JsonObject`. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;

/** A JSON object, e.g. the arguments of a call to a seller. A member that is `undefined` is left out. */
export interface JsonObject {
  readonly [name: string]: Json | undefined;
}

/**
 * The type `T` in the form in which you may pass it to `registrations.create`: optional members may be undefined. A
 * JSON object may have an interface type without an index signature, because a run-time check makes sure that it is
 * JSON.
 */
export type Given<T> = {
  readonly [K in keyof T]:
    GivenValue<Exclude<T[K], undefined>> | (object extends Pick<T, K> ? undefined : never);
};
type GivenValue<V> = JsonObject extends V ? object : V;

/** A part of a registered call with a size limit: the part's name in error messages, and its largest size in bytes. */
interface Part {
  readonly name: string;
  readonly maxBytes: number;
}

/** The arguments of a call, as the caller gives them. */
const ARGUMENTS: Part = {
  name: 'arguments',
  maxBytes: 256 * 1024,
};

const CONTEXT: Part = {
  name: 'context',
  maxBytes: 16 * 1024,
};

/** The buyer's account in a call's arguments. It is stored, because requests about the task send it again. */
const ACCOUNT: Part = { name: 'arguments.account', maxBytes: 4 * 1024 };

const REF: Part = { name: 'ref', maxBytes: 1024 };

/** The deepest nesting of objects and arrays that is accepted. */
const MAX_DEPTH = 256;

/** A part of a value that JSON cannot keep unchanged. */
interface Misfit {
  /** The path to the part, innermost first: `.name` or `[index]` for each object or list that contains it. */
  readonly path: string[];
  readonly what: string;
}

/**
 * Returns a text such as `arguments.at is a function` about the first part of a value that JSON cannot keep unchanged.
 * Undefined if there is none.
 */
export function misfit(value: unknown, at: string, depth: number): string | undefined {
  const found = misfitIn(value, depth);
  return found && `${at}${found.path.toReversed().join('')} ${found.what}`;
}

/**
 * Finds the first part of a value that JSON cannot keep unchanged. The path is built only for a part that was found, so
 * that valid values cost nothing.
 */
function misfitIn(value: unknown, depth: number): Misfit | undefined {
  if (typeof value !== 'object' || value === null) {
    const what = scalarMisfit(value);
    return what === undefined ? undefined : { path: [], what };
  }
  if (depth === MAX_DEPTH) {
    return { path: [], what: `is more than ${MAX_DEPTH} levels deep, or contains itself` };
  }
  if (Array.isArray(value)) return misfitItem(value, depth);
  return isPlainObject(value) ? misfitMember(value, depth) : { path: [], what: 'is not a plain object' };
}

function scalarMisfit(value: unknown): string | undefined {
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return undefined;
  if (typeof value !== 'number') return `is ${describe(value)}`;
  return Number.isFinite(value) ? undefined : `is ${value}`;
}

function misfitMember(members: object, depth: number): Misfit | undefined {
  for (const [name, member] of Object.entries(members)) {
    // JSON leaves out a member that is undefined, so such a member is accepted.
    const found = member === undefined ? undefined : misfitIn(member, depth + 1);
    if (found) return within(found, `.${name}`);
  }
  return undefined;
}

/** Checks items by index, so that a hole in the list is found as an undefined item. */
function misfitItem(items: readonly unknown[], depth: number): Misfit | undefined {
  for (let place = 0; place < items.length; place += 1) {
    const found = misfitIn(items[place], depth + 1);
    if (found) return within(found, `[${place}]`);
  }
  return undefined;
}

function within(found: Misfit, step: string): Misfit {
  found.path.push(step);
  return found;
}

function describe(value: unknown): string {
  return value === undefined ? 'undefined' : `a ${typeof value}`;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the value as JSON text. @throws RegistrationError if it is not JSON, or longer than the part's limit. */
function jsonText(part: Part, value: unknown): string {
  const found = misfit(value, part.name, 0);
  if (found !== undefined)
    throw new RegistrationError('request_invalid', `${found}. Give plain JSON values.`);
  const text = JSON.stringify(value);
  requireFit(part, text);
  return text;
}

function requireFit({ name, maxBytes }: Part, text: string): void {
  const { length } = utf8(text);
  if (length <= maxBytes) return;
  throw new RegistrationError(
    'request_too_large',
    `${name}: ${length} bytes as JSON, the limit is ${maxBytes}. Keep large data on your side, and a reference to it here.`,
  );
}

/** Returns the arguments of a call as JSON text. Each repeat of the call sends this text. @throws RegistrationError */
export function argumentsText(value: unknown): string {
  if (!isObject(value)) {
    throw new RegistrationError(
      'request_invalid',
      'arguments: must be an object. Give the arguments by name.',
    );
  }
  return jsonText(ARGUMENTS, value);
}

/** Returns the `account` of a call's arguments as JSON text; undefined if there is none. @throws RegistrationError */
export function accountText({ account }: { readonly account?: unknown }): string | undefined {
  return isObject(account) ? jsonText(ACCOUNT, account) : undefined;
}

/** Returns the account of a subscription as JSON text. @throws RegistrationError */
export function accountJson(value: unknown): string {
  if (!isObject(value)) {
    throw new RegistrationError(
      'request_invalid',
      'account: must be an object. Give the account as the seller knows it, or leave it out.',
    );
  }
  return jsonText({ ...ACCOUNT, name: 'account' }, value);
}

/** Returns the `context` of a call as JSON text. The seller repeats it on every delivery. @throws RegistrationError */
export function contextText(value: unknown): string {
  if (!isObject(value)) {
    throw new RegistrationError('request_invalid', 'context: must be an object. Give one, or leave it out.');
  }
  return jsonText(CONTEXT, value);
}

/** Checks `ref`, the caller's own name for the call. @throws RegistrationError */
export function checkedRef(value: unknown): string {
  if (typeof value !== 'string') {
    throw new RegistrationError(
      'request_invalid',
      `ref: is ${describe(value)}. Give a string, or leave it out.`,
    );
  }
  requireFit(REF, value);
  return value;
}

/** True for a text that can be a task type, i.e. the name of a seller's operation, e.g. `create_media_buy`. */
export const isTaskType = (value: unknown): value is string =>
  typeof value === 'string' && /^[\w.-]{1,255}$/.test(value);

/** Refuses a task type that cannot be the name of an operation. @throws RegistrationError */
export function requireTaskType(taskType: unknown): void {
  if (isTaskType(taskType)) return;
  throw new RegistrationError(
    'request_invalid',
    'taskType: is not the name of an operation. Give e.g. create_media_buy.',
  );
}
