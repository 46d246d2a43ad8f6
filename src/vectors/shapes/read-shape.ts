// Reads members of vectors by schemas. It refuses unknown members that may influence the result, and reports those that
// it skips. All readers of shapes use it.
import * as z from 'zod/mini';
import { decodeBase64 } from '../../codec/encoding.ts';
import { isJsonObject, type JsonObject, present, textMember } from '../../codec/members.ts';
import type { Jwk } from '../../crypto/engine.ts';
import { headerFields, type HeadersInput } from '../../shared/delivery.ts';
import { editionFor, type EditionName } from '../../shared/editions.ts';
import { ConfigError } from '../../shared/errors.ts';
import { type NotJudgedCase, type UnreadableCase, VectorError } from '../vector-case.ts';
import type { Setup, VectorRequest, VectorSender } from '../subject.ts';

export interface ShapeContext {
  /** The file, for messages and results. */
  readonly file: string;
  /** The name of the case, if the file itself names none. */
  readonly stem: string;
  readonly protocol: string | undefined;
  /** The edition for vectors that name none. */
  readonly edition: EditionName;
  /** True if the caller has set the option `edition`. */
  readonly isEditionGiven?: boolean;
  /** Returns the keys in the file `keys.json` beside the file of vectors; an empty list if there is no such file. */
  readonly keys: () => readonly Jwk[];
  /** Translates an expected error code of the file to a code of this library. */
  readonly codeOf: (code: string) => string;
  /** The names of members that the caller declares to be comments. */
  readonly ignore?: ReadonlySet<string>;
  /** Called for each member that is skipped. */
  readonly passOver?: (member: string, why: string) => void;
}

/** The URL, sender and time (Unix ms) for a request that names none. */
export const DEFAULT_URL = 'https://buyer.example/webhooks/proto';
export const DEFAULT_AGENT = 'https://seller.example/mcp';
export const DEFAULT_NOW_MS = 1_790_000_000_000;

const encoder = new TextEncoder();

/** For each schema in `required`, the type of the values that it accepts. */
interface Members {
  readonly text: string;
  readonly texts: readonly string[];
  readonly number: number;
  readonly numberOrText: number | string;
  readonly seconds: number;
  readonly flag: boolean;
  readonly object: JsonObject;
  readonly objects: readonly JsonObject[];
  readonly headers: HeadersInput;
  readonly bytes: Uint8Array;
  readonly base64: Uint8Array;
}

/** The schemas of members. Each message completes the sentence "<name> is missing or wrong: expected …". */
export const required: { readonly [K in keyof Members]: z.ZodMiniType<Members[K]> } = {
  text: z.string('a string'),
  texts: z.array(z.string('an array of strings'), 'an array of strings'),
  number: z.number('a number'),
  numberOrText: z.union([z.number(), z.string()], 'a number or a text'),
  seconds: z.number('a number of Unix seconds'),
  flag: z.boolean('true or false'),
  object: z.custom<JsonObject>(isJsonObject, 'an object'),
  objects: z.custom<readonly JsonObject[]>(
    (value) => Array.isArray(value) && value.every(isJsonObject),
    'an array of objects',
  ),
  headers: z.custom<HeadersInput>(
    isHeaders,
    'an object of strings or arrays of strings, or [name, value] pairs',
  ),
  bytes: z.pipe(
    z.string('a string'),
    z.transform((text) => encoder.encode(text)),
  ),
  base64: z.pipe(
    z.string('base64').check(z.refine((text) => decodeBase64(text) !== undefined, 'base64')),
    z.transform((text) => decodeBase64(text) ?? new Uint8Array()),
  ),
};

type Optional = { readonly [K in keyof Members]: z.ZodMiniOptional<z.ZodMiniType<Members[K]>> };
export const optional: Optional = Object.fromEntries(
  Object.entries(required).map(([name, schema]) => [name, z.optional<z.ZodMiniType>(schema)]),
) as unknown as Optional;

/** True for valid headers. `headerFields` throws for any other value. */
function isHeaders(value: unknown): boolean {
  try {
    return headerFields(value).size >= 0;
  } catch {
    return false;
  }
}

type Shape = Readonly<Record<string, z.ZodMiniType>>;

/** Returns an object that has the same schema under several names. */
export function each<N extends string, S extends z.ZodMiniType>(
  names: readonly N[],
  schema: S,
): Record<N, S> {
  return Object.fromEntries(names.map((name) => [name, schema])) as Record<N, S>;
}

const at = (where: string, name: string): string => (where === '' ? name : `${where}.${name}`);

export function missing(name: string, expected: string): VectorError {
  return new VectorError(`${name} is missing or wrong: expected ${expected}`);
}

/**
 * Returns the object without members that are null, because null means absent. A member whose schema allows null is
 * kept.
 */
function withoutNulls(json: JsonObject, shape: Shape): JsonObject {
  return Object.fromEntries(
    Object.entries(json).filter(([name, value]) => value !== null || shape[name]?.safeParse(null).success),
  );
}

/**
 * Returns the members of an object that the schema has. Other members are not read.
 * @param where the name of the object, for messages.
 * @throws VectorError for a member that is missing or wrong.
 */
export function parse<S extends Shape>(
  schema: z.ZodMiniObject<S>,
  json: JsonObject,
  where = '',
): z.output<z.ZodMiniObject<S>> {
  const parsed = schema.safeParse(withoutNulls(json, schema.shape));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw missing(at(where, String(issue?.path[0])), issue?.message ?? 'another value');
}

/** Matches the names of members that only inform a reader. */
const COMMENTS =
  /^(?:[$_].*|x[-_].*|id|name|title|summary|description|comments?|notes?|remarks?|rationale|reasons?|reject_reason|black_box_behaviou?r|rfc9421_error_code|why|explanation|references?|spec|spec_references?|rules?|rule_refs?|links?|tags?|category|group|section|author|source|since|version|introduced|license|copyright|generated(?:_by|_at)?)$/i;

/**
 * Words in the names of members that state an expectation, or the state of the receiver before the vector. Members with
 * such a word must not be skipped.
 */
const DECIDING: ReadonlySet<string> = new Set(
  [
    'expect expected expects expectation expectations must should shall assert assertion assertions',
    'outcome verdict result results decision reject rejected rejects refuse refused refuses accept accepted accepts',
    'allow allowed deny denied valid invalid verify verified verifies success pass passed passes fail fails failed failure',
    'error errors warning warnings state harness setup given precondition preconditions clock skew',
  ].flatMap((words) => words.split(' ')),
);

const wordsOf = (name: string): readonly string[] =>
  name
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z\d]+/);

export const isListOfObjects = (value: unknown): value is readonly unknown[] =>
  Array.isArray(value) && value.some(isJsonObject);

/** Returns the members that no schema names, without nulls and comments. */
function unknownMembers(
  json: JsonObject,
  known: readonly string[],
  context: ShapeContext,
): readonly string[] {
  const { ignore, passOver } = context;
  const names = Object.keys(json).filter(
    (name) => json[name] !== null && !known.includes(name) && !COMMENTS.test(name),
  );
  for (const name of names) if (ignore?.has(name)) passOver?.(name, 'named in ignore');
  return names.filter((name) => ignore?.has(name) !== true);
}

const notRead = (name: string, why: string, known: readonly string[]): VectorError =>
  new VectorError(
    `${name} ${why}: expected one of ${known.join(', ')}; if it is a comment, name it in ignore`,
  );

/**
 * Skips and reports unknown members of an object. It refuses members whose names contain a word of `DECIDING`, and
 * lists, which may contain further vectors.
 * @throws VectorError with the name of such a member.
 */
export function skipUnknown(
  json: JsonObject,
  where: string,
  known: readonly string[],
  context: ShapeContext,
): void {
  for (const name of unknownMembers(json, known, context)) {
    if (wordsOf(name).some((word) => DECIDING.has(word)))
      throw notRead(at(where, name), 'is not known', known);
    if (isListOfObjects(json[name])) throw notRead(at(where, name), 'is an unknown list', known);
    context.passOver?.(name, 'not known');
  }
}

/**
 * Parses an object that may have only the schema's members and comments. If `others` is set, `skipUnknown` decides
 * about further members.
 * @throws VectorError for a member that is missing, wrong or unknown.
 */
export function read<S extends Shape>(
  schema: z.ZodMiniObject<S>,
  json: JsonObject,
  where: string,
  context: ShapeContext,
  others?: 'may have others',
): z.output<z.ZodMiniObject<S>> {
  const known = Object.keys(schema.shape);
  if (others) skipUnknown(json, where, known, context);
  const [unknown] = others ? [] : unknownMembers(json, known, context);
  if (unknown !== undefined) throw notRead(at(where, unknown), 'is not known', known);
  return parse(schema, json, where);
}

/**
 * Parses an object of a published kind, whose authors may add members. Unknown members are skipped and reported, even
 * if their names contain a word of `DECIDING`.
 * @throws VectorError for a member that is missing or wrong.
 */
export function passUnknown<S extends Shape>(
  schema: z.ZodMiniObject<S>,
  json: JsonObject,
  context: ShapeContext,
  where = '',
): z.output<z.ZodMiniObject<S>> {
  for (const name of unknownMembers(json, Object.keys(schema.shape), context)) {
    context.passOver?.(at(where, name), 'not known');
  }
  return parse(schema, json, where);
}

/**
 * Returns the name that an object uses, out of several names for the same thing. @throws VectorError if it uses two
 * with different values.
 */
export function aliasOf<N extends string>(
  json: JsonObject,
  where: string,
  names: readonly N[],
): N | undefined {
  const [first, ...others] = names.filter((name) => present(json, name) !== undefined);
  const other = others.find((name) => first !== undefined && json[name] !== json[first]);
  if (other !== undefined) throw new VectorError(`${where}: ${first} and ${other} differ`);
  return first;
}

export const RAW_BODY: {
  readonly raw_body: Optional['bytes'];
  readonly raw_body_base64: Optional['base64'];
} = { raw_body: optional.bytes, raw_body_base64: optional.base64 };

const REQUEST = z.object({
  method: optional.text,
  url: required.text,
  headers: optional.headers,
  body: optional.bytes,
  body_base64: optional.base64,
  ...RAW_BODY,
});

/**
 * Returns the body, which may have one of several names; empty if there is none. @throws VectorError if two bodies
 * differ.
 */
export function bodyOf(given: JsonObject, where: string): Uint8Array {
  const names = ['raw_body_base64', 'raw_body', 'body_base64', 'body'].filter((name) => given[name]);
  const [first, ...others] = names.map((name) => ({ name, body: given[name] as Uint8Array }));
  if (!first) return new Uint8Array();
  const other = others.find(({ body }) => Buffer.compare(body, first.body) !== 0);
  if (other) throw new VectorError(`${where}: ${other.name} and ${first.name} differ`);
  return first.body;
}

export function requestOf(json: JsonObject, where: string, context: ShapeContext): VectorRequest {
  const given = read(REQUEST, json, where, context);
  const { method = 'POST', url, headers = {} } = given;
  return { method: method.toUpperCase(), url, headers, body: bodyOf(given, where) };
}

const EDITION = z.object({ edition: optional.text });

/** Returns the edition of a vector. @throws ConfigError for an unknown one. */
export function editionOf(json: JsonObject, context: ShapeContext): EditionName {
  const { edition } = parse(EDITION, json);
  return edition === undefined ? context.edition : editionFor(edition as EditionName).name;
}

/** Returns a setup with an empty store, no revoked keys and default limits. */
export function plainSetup(
  context: ShapeContext,
  setup: Pick<Setup, 'url' | 'nowMs'> & { readonly senders: readonly VectorSender[] },
): Setup {
  return {
    ...(context.protocol !== undefined && { protocol: context.protocol }),
    usedNonces: [],
    fullKids: [],
    revokedKids: [],
    limits: {},
    ...setup,
  };
}

/**
 * Reads each vector of a file's list, named by its `id`, its `name` or its position. A vector with an error becomes a
 * case that fails.
 */
export function readList<C>(
  json: JsonObject,
  list: string,
  context: ShapeContext,
  readOne: (vector: JsonObject, name: string) => C,
): readonly (C | UnreadableCase)[] {
  const vectors = parse(z.object({ [list]: optional.objects }), json)[list] ?? [];
  return readEach(vectors, list.replace(/s$/, ''), context, readOne);
}

/** Reads each vector. @param what the word for a vector without a name: `vector` gives "vector 1". */
export function readEach<C>(
  vectors: readonly JsonObject[],
  what: string,
  context: ShapeContext,
  readOne: (vector: JsonObject, name: string) => C,
): readonly (C | UnreadableCase)[] {
  return vectors.map((vector, index) => {
    const name = textMember(vector, 'id') ?? textMember(vector, 'name') ?? `${what} ${index + 1}`;
    return readOr(name, context, () => readOne(vector, name));
  });
}

/** Returns the result of `readOne`. If `readOne` throws, returns a case that fails with the reason. */
export function readOr<C>(name: string, { file }: ShapeContext, readOne: () => C): C | UnreadableCase {
  try {
    return readOne();
  } catch (error) {
    // An unknown edition in a vector throws a ConfigError, which is reported like any error of the vector.
    if (!(error instanceof VectorError) && !(error instanceof ConfigError)) throw error;
    return { kind: 'unreadable', name, file, reason: `${file}: ${name}: ${error.message}` };
  }
}

/** Returns the case for a vector, or a file, that cannot be judged here. */
export const notJudged = (
  { file }: ShapeContext,
  name: string,
  reason: string,
  what: NotJudgedCase['what'] = 'vector',
): NotJudgedCase => ({ kind: 'not-judged', name, file, what, reason });
