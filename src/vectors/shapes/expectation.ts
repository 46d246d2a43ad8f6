import { defined } from '../../codec/members.ts';
import type { Expectation } from '../case.ts';
import { VectorError } from '../errors.ts';
import { verdictOf } from './action.ts';
import { onlyMembers } from './known.ts';
import { type JsonObject, type ShapeContext, aliasOf, fail, isJsonObject, present } from './members.ts';
import { optionalFlag, optionalNumber, optionalText, textsOf } from './members.ts';

/** Names for one thing, of which a vector has one: the first are ours. */
const STATUS = ['status', 'http_status', 'status_code'] as const;
const CODE = ['error_code', 'code', 'error'] as const;
const CHECK = ['failed_step', 'check'] as const;
/** True or false: the delivery is authentic. */
const FLAGS = ['success', 'valid', 'verified', 'accepted', 'authentic'] as const;
/** The same as a word: accept, reject. */
const WORDS = ['verdict', 'outcome', 'result', 'action', 'decision'] as const;

const MEMBERS: readonly string[] = [
  ...FLAGS,
  ...WORDS,
  ...STATUS,
  ...CODE,
  ...CHECK,
  'sub_step',
  'www_authenticate',
  'body',
  'sender',
  'kind',
  'handled',
  'changed',
  'reemission',
  'warnings',
];

function nullable(json: JsonObject, name: string | undefined): string | null | undefined {
  if (name === undefined) return undefined;
  return Object.hasOwn(json, name) ? (optionalText(json, name) ?? null) : undefined;
}

function wordOf(json: JsonObject, name: string): string | undefined {
  const value = present(json, name);
  if (value === undefined) return undefined;
  return typeof value === 'number' || typeof value === 'string'
    ? String(value).trim().toLowerCase()
    : fail(name, 'a number or a text');
}

/** A check, written `9`, `"9a"`, or 9 with the `sub_step` "a". */
function checkOf(json: JsonObject, where: string): string | undefined {
  const name = aliasOf(json, where, CHECK);
  const step = name === undefined ? undefined : wordOf(json, name);
  const sub = wordOf(json, 'sub_step')?.replace(/[^a-z\d]/g, '');
  if (step === undefined || sub === undefined || step.endsWith(sub)) return step;
  return sub.startsWith(step) ? sub : `${step}${sub}`;
}

/** @throws VectorError for a word that is not known: a guess could turn the verdict round. */
function verdictOfWord(name: string, word: string): boolean {
  return verdictOf(word) ?? fail(`${name} ${JSON.stringify(word)}`, 'accept or reject');
}

function authenticOf(json: JsonObject, where: string): boolean | undefined {
  const flag = aliasOf(json, where, FLAGS);
  const word = aliasOf(json, where, WORDS);
  const said =
    word === undefined ? undefined : verdictOfWord(`${where}.${word}`, optionalText(json, word) ?? '');
  const stated = flag === undefined ? undefined : optionalFlag(json, flag);
  if (said !== undefined && stated !== undefined && said !== stated) {
    throw new VectorError(`${where}: ${flag ?? ''} contradicts ${word ?? ''}`);
  }
  return stated ?? said;
}

function membersOf(json: JsonObject, where: string, context: ShapeContext): Expectation {
  const status = aliasOf(json, where, STATUS);
  const name = aliasOf(json, where, CODE) ?? CODE.find((alias) => Object.hasOwn(json, alias));
  const code = nullable(json, name);
  return defined({
    authentic: authenticOf(json, where),
    status: status === undefined ? undefined : optionalNumber(json, status),
    code: typeof code === 'string' ? context.codeOf(code) : code,
    check: checkOf(json, where),
    wwwAuthenticate: nullable(json, 'www_authenticate'),
    body: optionalText(json, 'body'),
    sender: optionalText(json, 'sender'),
    kind: optionalText(json, 'kind'),
    handled: optionalFlag(json, 'handled'),
    changed: optionalFlag(json, 'changed'),
    reemission: optionalFlag(json, 'reemission'),
    warnings: textsOf(json, 'warnings'),
  });
}

/**
 * What a vector says must come: an object, or a word (accept, reject).
 * @param where its name, for messages.
 * @throws VectorError where a member is not known or wrong.
 */
export function expectationOf(value: unknown, where: string, context: ShapeContext): Expectation {
  if (typeof value === 'string') return { authentic: verdictOfWord(where, value) };
  if (!isJsonObject(value)) return fail(where, 'an object, or accept or reject');
  onlyMembers(value, where, MEMBERS, context);
  return membersOf(value, where, context);
}

/** The same of one that may not be empty: it would be met by any answer. */
export function someExpectation(value: unknown, where: string, context: ShapeContext): Expectation {
  const expected = expectationOf(value, where, context);
  if (Object.keys(expected).length > 0) return expected;
  throw new VectorError(`${where} says nothing: expected at least one of ${MEMBERS.join(', ')}`);
}

/**
 * What a signature vector says must come. Null is no code here: it says that the vector is not about one.
 * @param placed what the file's place says, where the vector does not.
 */
export function outcomeExpectation(
  value: unknown,
  where: string,
  placed: boolean | undefined,
  context: ShapeContext,
): Expectation {
  const { authentic = placed, code, check, ...rest } = expectationOf(value, where, context);
  if (authentic === undefined) {
    throw new VectorError(`${where}.success is missing: expected true or false`);
  }
  if (!authentic) return { ...rest, authentic, ...defined({ code: code ?? undefined, check }) };
  if (typeof code === 'string') throw new VectorError(`${where}: error_code contradicts success`);
  if (check !== undefined) throw new VectorError(`${where}: failed_step contradicts success`);
  return { ...rest, authentic };
}
