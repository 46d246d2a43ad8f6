// Reads the expected answer in a vector, in the words of its publisher. The readers of signature, HMAC, bearer and
// sequence vectors call this file.
import * as z from 'zod/mini';
import { defined, isJsonObject, type JsonObject } from '../../codec/members.ts';
import { type Expectation, VectorError } from '../vector-case.ts';
import { aliasOf, each, missing, optional, read, required, type ShapeContext } from './read-shape.ts';

/** The words with which publishers of vectors state a verdict, in lower case, with `_` for spaces and hyphens. */
const ACCEPTING = 'accept accepted verify verified valid pass passed success ok'.split(' ');
const REJECTING = 'reject rejected refuse refused deny denied invalid fail failed failure error'.split(' ');

const VERDICTS: ReadonlyMap<string, boolean> = new Map([
  ...[...ACCEPTING, 'must_accept', 'must_verify', 'must_pass', 'must_not_reject'].map(
    (word) => [word, true] as const,
  ),
  ...[...REJECTING, 'must_reject', 'must_refuse', 'must_fail'].map((word) => [word, false] as const),
  ...['must_not_accept', 'must_not_verify', 'must_not_pass'].map((word) => [word, false] as const),
]);

/** Matches a refusal with its reason, as in `reject-malformed`, after `-` was replaced by `_`. */
const WITH_REASON = /^(?:must_)?(?:reject|refuse|deny|rejected|refused|denied)_(.+)$/;
/**
 * Words that invert or limit a verdict. If the text behind `reject` has one of them, it is not a reason, e.g.
 * `reject_unless_signed`.
 */
const CONDITIONS = ['or', 'not', 'no', 'if', 'unless', 'when', 'may', 'never', 'nothing'];

const isReason = (reason: string): boolean =>
  reason.split('_').every((part) => !CONDITIONS.includes(part) && !ACCEPTING.includes(part));

/**
 * True if a word asks to accept, false if it asks to refuse. Undefined for an unknown word, because a guess could
 * invert the verdict.
 */
function verdictOf(action: string): boolean | undefined {
  const word = action
    .trim()
    .toLowerCase()
    .replace(/[\s_-]+/g, '_');
  const reason = WITH_REASON.exec(word)?.[1];
  return VERDICTS.get(word) ?? (reason !== undefined && isReason(reason) ? false : undefined);
}

/** Returns the verdict of a word. @throws VectorError for an unknown word. */
function verdictOfWord(name: string, word: string): boolean {
  const verdict = verdictOf(word);
  if (verdict === undefined) throw missing(`${name} ${JSON.stringify(word)}`, 'accept or reject');
  return verdict;
}

/** Returns the expectation in `expected_verifier_action` of an HMAC vector. @throws VectorError for an unknown word. */
export function hmacAction(action: string): Expectation {
  const authentic = verdictOf(action);
  if (authentic !== undefined) return { authentic };
  const name = JSON.stringify(action);
  throw new VectorError(`expected_verifier_action ${name} is not known: expected accept or reject`);
}

/** Alternative names of a member that states the HTTP status. A vector uses one of them; the first is our own. */
const STATUS = ['status', 'http_status', 'status_code'] as const;
const CODE = ['error_code', 'code', 'error'] as const;
const CHECK = ['failed_step', 'check'] as const;
/** Members that say with true or false if the delivery must be authentic. */
const FLAGS = ['success', 'valid', 'verified', 'accepted', 'authentic'] as const;
/** Members that state by a word, e.g. accept or reject, if the delivery must be authentic. */
const WORDS = ['verdict', 'outcome', 'result', 'action', 'decision'] as const;

const EXPECTATION = z.object({
  ...each(FLAGS, optional.flag),
  ...each(WORDS, optional.text),
  ...each(STATUS, optional.number),
  ...each(CODE, z.optional(z.nullable(required.text))),
  ...each(CHECK, optional.numberOrText),
  sub_step: optional.numberOrText,
  www_authenticate: z.optional(z.nullable(required.text)),
  body: optional.text,
  sender: optional.text,
  kind: optional.text,
  handled: optional.flag,
  changed: optional.flag,
  reemission: optional.flag,
  warnings: optional.texts,
});

type Given = z.output<typeof EXPECTATION>;

const word = (value: number | string): string => String(value).trim().toLowerCase();

/** Returns the number of the expected failed check, which is written as `9`, `"9a"`, or 9 with the `sub_step` "a". */
function checkOf(given: Given, where: string): string | undefined {
  const name = aliasOf(given, where, CHECK);
  const step = name && given[name];
  if (step === undefined || given.sub_step === undefined) return step === undefined ? step : word(step);
  const [own, sub] = [word(step), word(given.sub_step).replace(/[^a-z\d]/g, '')];
  if (own.endsWith(sub)) return own;
  return sub.startsWith(own) ? sub : `${own}${sub}`;
}

function authenticOf(given: Given, where: string): boolean | undefined {
  const flagName = aliasOf(given, where, FLAGS);
  const wordName = aliasOf(given, where, WORDS);
  const stated = flagName && given[flagName];
  const worded = wordName && verdictOfWord(`${where}.${wordName}`, given[wordName] ?? '');
  if (worded !== undefined && stated !== undefined && worded !== stated) {
    throw new VectorError(`${where}: ${flagName} contradicts ${wordName}`);
  }
  return stated ?? worded;
}

function membersOf(json: JsonObject, where: string, context: ShapeContext): Expectation {
  const given = read(EXPECTATION, json, where, context);
  const status = aliasOf(given, where, STATUS);
  // A code of null says that the answer must have no code.
  const code = given[aliasOf(given, where, CODE) ?? CODE.find((name) => given[name] === null) ?? CODE[0]];
  const { body, sender, kind, handled, changed, reemission, warnings } = given;
  return defined({
    authentic: authenticOf(given, where),
    status: status && given[status],
    code: typeof code === 'string' ? context.codeOf(code) : code,
    check: checkOf(given, where),
    wwwAuthenticate: given.www_authenticate,
    body,
    sender,
    kind,
    handled,
    changed,
    reemission,
    warnings,
  });
}

/**
 * Returns the expectation in a vector: an object, or a word (accept, reject).
 * @param where the name of the member, for messages.
 * @throws VectorError if a member is unknown or wrong.
 */
function expectationOf(value: unknown, where: string, context: ShapeContext): Expectation {
  if (typeof value === 'string') return { authentic: verdictOfWord(where, value) };
  if (isJsonObject(value)) return membersOf(value, where, context);
  throw missing(where, 'an object, or accept or reject');
}

/** Returns the expectation in a vector. An empty one is refused, because every answer would fulfil it. */
export function someExpectation(value: unknown, where: string, context: ShapeContext): Expectation {
  const expected = expectationOf(value, where, context);
  if (Object.keys(expected).length > 0) return expected;
  const members = Object.keys(EXPECTATION.shape).join(', ');
  throw new VectorError(`${where} is empty: expected at least one of ${members}`);
}

/**
 * Returns the expectation of a signature vector. Here a code of null means that no code is compared.
 * @param placed the verdict that the name of the file's folder gives. It is used if the vector has none.
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
