// Recognises the shape of a file of vectors by its members, and reads it. The loader, load.ts, calls it.
import * as z from 'zod/mini';
import { isJsonObject, type JsonObject, defined } from '../../codec/members.ts';
import {
  type ReadCase,
  VectorError,
  type CanonicalizationCase,
  type ExtractionCase,
} from '../vector-case.ts';
import { readAnswers, readErrors, readRedirects } from './calls.ts';
import { HMAC_LISTS, HMAC_MEMBERS, readBearer, readEnvelopes, readHmac } from './legacy.ts';
import {
  isListOfObjects,
  notJudged,
  readEach,
  readOr,
  type ShapeContext,
  skipUnknown,
  aliasOf,
  each,
  optional,
  parse,
  read,
  readList,
  required,
} from './read-shape.ts';
import { OF_REQUESTS, readSequences, readSignature, readSignatures, SIGNATURES } from './signature-shape.ts';

const FORM = ['expected_target_uri', 'expected_authority'] as const;
/** The alternative names of the expected error code. */
const CODE = ['expected_error', 'expected_error_code', 'error_code'] as const;

const URL_CASE = z.object({
  input_url: required.text,
  reject: optional.flag,
  ...each(FORM, optional.text),
  ...each(CODE, optional.text),
});

function expectedForm(json: JsonObject, context: ShapeContext): CanonicalizationCase['expected'] {
  const given = parse(URL_CASE, json);
  const name = aliasOf(json, 'case', CODE);
  const code = name && given[name] && context.codeOf(given[name]).replace(OF_REQUESTS, 'webhook_');
  if (given.reject === true) {
    const form = FORM.find((member) => given[member] !== undefined);
    if (form !== undefined) throw new VectorError(`reject contradicts ${form}`);
    return { refused: true, ...(code !== undefined && { code }) };
  }
  if (name !== undefined) throw new VectorError(`${name} needs reject: true`);
  const [targetUri, authority] = FORM.map((member) => given[member]);
  if (targetUri === undefined && authority === undefined) {
    throw new VectorError('no expectation: expected expected_target_uri, expected_authority or reject: true');
  }
  return { refused: false, ...defined({ targetUri, authority }) };
}

/** Reads `{cases: [{name, input_url, expected_target_uri, expected_authority} | {name, input_url, reject: true}]}`. */
export function readCanonicalization(json: JsonObject, context: ShapeContext): readonly ReadCase[] {
  return readList(json, 'cases', context, (entry, name): CanonicalizationCase => {
    const { input_url: url } = read(URL_CASE, entry, '', context, 'may have others');
    return {
      kind: 'canonicalization',
      name,
      file: context.file,
      url,
      expected: expectedForm(entry, context),
    };
  });
}

const EXTRACTION = z.object({
  payload: z.optional(z.unknown()),
  expected_format: z.optional(z.nullable(required.text)),
  expected_data: z.optional(z.unknown()),
});

function extractionCase(vector: JsonObject, name: string, context: ShapeContext): ExtractionCase {
  const { expected_format: format } = read(EXTRACTION, vector, '', context, 'may have others');
  const data = Object.hasOwn(vector, 'expected_data') ? { value: vector['expected_data'] } : undefined;
  if (format === undefined && !data) {
    throw new VectorError('no expectation: expected expected_format or expected_data');
  }
  if (!Object.hasOwn(vector, 'payload')) {
    throw new VectorError('payload is missing: expected any JSON value');
  }
  return {
    kind: 'extraction',
    name,
    file: context.file,
    payload: vector['payload'],
    ...defined({ format, data }),
  };
}

/** Reads `{vectors: [{id, payload, expected_format, expected_data}]}`. */
export function readExtraction(json: JsonObject, context: ShapeContext): readonly ReadCase[] {
  return readList(json, 'vectors', context, (vector, name) => extractionCase(vector, name, context));
}

interface Shape {
  readonly described: string;
  readonly fits: (json: JsonObject) => boolean;
  readonly read: (json: JsonObject, context: ShapeContext) => readonly ReadCase[];
  /**
   * The members of a file of this shape, including its lists of vectors; absent if such a file is one single vector.
   */
  readonly members?: readonly string[];
}

const hasArray = (json: JsonObject, name: string): boolean => Array.isArray(json[name]);
const someVector = (json: JsonObject, ...members: readonly string[]): boolean => {
  const { vectors } = json;
  if (!Array.isArray(vectors)) return false;
  return vectors.some(
    (vector) => isJsonObject(vector) && members.some((name) => Object.hasOwn(vector, name)),
  );
};

/** The shapes of files, each with its test. A file is read as the first shape that fits. */
const SHAPES: readonly Shape[] = [
  {
    described: '{request, reference_now, expected_outcome}',
    fits: (json) => isJsonObject(json['request']),
    read: readSignature,
  },
  {
    described: '{vectors: [{request, reference_now, expected_outcome}]}',
    fits: (json) => someVector(json, 'request'),
    read: readSignatures,
    members: SIGNATURES,
  },
  {
    described: '{cases: [{input_url}]}',
    fits: (json) => hasArray(json, 'cases'),
    read: readCanonicalization,
    members: ['cases'],
  },
  {
    described: '{sequences: [{steps}]}',
    fits: (json) => hasArray(json, 'sequences'),
    read: readSequences,
    members: ['sequences'],
  },
  {
    described: '{positive: [{payload}], negative: [{payload, expected_error}]}',
    fits: (json) => hasArray(json, 'positive') || hasArray(json, 'negative'),
    read: readEnvelopes,
    members: ['positive', 'negative'],
  },
  {
    described: '{secret, vectors: [{timestamp, raw_body, expected_signature}]}',
    fits: (json) => 'secret' in json && HMAC_LISTS.some((list) => hasArray(json, list)),
    read: readHmac,
    members: HMAC_MEMBERS,
  },
  {
    described: '{token, vectors: [{raw_body, expected}]}',
    fits: (json) => 'token' in json && hasArray(json, 'vectors'),
    read: readBearer,
    members: ['token', 'previous_token', 'url', 'vectors'],
  },
  {
    described: '{vectors: [{target, origin_url, redirect_chain, expected}]}',
    fits: (json) => someVector(json, 'origin_url', 'redirect_chain'),
    read: readRedirects,
    members: ['vectors'],
  },
  {
    described: '{vectors: [{transport, response, expected_error, expected_action}]}',
    fits: (json) => someVector(json, 'response') && someVector(json, 'expected_error', 'expected_action'),
    read: readErrors,
    members: ['vectors'],
  },
  {
    described: '{vectors: [{response, expected_data}]}',
    fits: (json) => someVector(json, 'response'),
    read: readAnswers,
    members: ['vectors'],
  },
  {
    described: '{vectors: [{payload, expected_format, expected_data}]}',
    fits: (json) => someVector(json, 'expected_format', 'expected_data'),
    read: readExtraction,
    members: ['vectors'],
  },
];

const shapeOf = (json: JsonObject): Shape | undefined => SHAPES.find(({ fits }) => fits(json));

/** Returns the keys of a JWK Set, even if other members are beside them; undefined if there are none. */
export function keysIn(json: unknown): readonly JsonObject[] | undefined {
  const keys = isJsonObject(json) ? json['keys'] : undefined;
  return Array.isArray(keys) && keys.every(isJsonObject) ? keys : undefined;
}

/** True for a JWK Set. It may be in the same folder as vectors, but contains none. */
export function isKeySet(json: unknown): json is { readonly keys: readonly JsonObject[] } {
  if (!isJsonObject(json) || keysIn(json) === undefined || shapeOf(json)) return false;
  // A file is no key set if another member is a list of objects, because that list might contain vectors.
  return Object.keys(json).every((name) => name === 'keys' || !isListOfObjects(json[name]));
}

/**
 * Reports the unknown members of a file of vectors. An unknown list becomes a case that fails, because it may contain
 * further vectors.
 */
function restOf(json: JsonObject, members: readonly string[], context: ShapeContext): readonly ReadCase[] {
  const read = readOr(context.stem, context, () => skipUnknown(json, '', [...members, 'keys'], context));
  return read ? [read] : [];
}

/** The most members that a message names for a vector of unknown kind. */
const MOST_MEMBERS = 8;

/** Returns the reason why a file with a list of objects cannot be judged; undefined if it has no such list. */
function unknownVectors(json: JsonObject): string | undefined {
  // A file that has `keys` too gets an error instead, because its list may be vectors under a misspelt name.
  const lists = Object.hasOwn(json, 'keys') ? [] : Object.entries(json);
  const [list] = lists.filter(([, value]) => isListOfObjects(value));
  const [first] = list ? (list[1] as readonly unknown[]).filter(isJsonObject) : [];
  if (!list || !first) return undefined;
  const members = Object.keys(first).slice(0, MOST_MEMBERS).join(', ');
  return `no known kind of vectors: ${list[0]} has members ${members}`;
}

function casesOf(json: JsonObject, context: ShapeContext): readonly ReadCase[] {
  const shape = shapeOf(json);
  const unknown = shape ? undefined : unknownVectors(json);
  if (unknown) return [notJudged(context, context.stem, unknown, 'file')];
  if (!shape) {
    const known = SHAPES.map(({ described }) => described).join(', ');
    throw new VectorError(`no known shape of vectors: expected one of ${known}`);
  }
  const keys = keysIn(json);
  const own = keys ? { ...context, keys: () => keys } : context;
  const cases = shape.read(json, own);
  if (cases.length === 0) throw new VectorError(`no vectors: expected at least one in ${shape.described}`);
  return shape.members ? [...cases, ...restOf(json, shape.members, own)] : cases;
}

/**
 * Returns the cases of one parsed file, or of an array of files. @throws VectorError for an unknown shape, or a wrong
 * member.
 */
export function readCases(json: unknown, context: ShapeContext): readonly ReadCase[] {
  if (isListOfObjects(json) && json.every(isJsonObject)) {
    return readEach(json, 'vector', context, (one, stem) => casesOf(one, { ...context, stem })).flat();
  }
  return casesOf(isJsonObject(json) ? json : {}, context);
}
