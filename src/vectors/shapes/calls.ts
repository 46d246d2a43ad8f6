// Reads vectors about clients of sellers: answers, errors in answers, and redirected documents. The file index.ts calls
// this one for files of these shapes.
import * as z from 'zod/mini';
import { defined, isJsonObject, type JsonObject } from '../../codec/members.ts';
import type { Transport } from '../../events/event.ts';
import type { AnswerCase, ErrorAction, ErrorCase, RedirectsCase, VectorCase } from '../vector-case.ts';
import { VectorError } from '../vector-case.ts';
import type { Redirect } from '../subject.ts';
import { missing, optional, passUnknown, readList, required, type ShapeContext } from './read-shape.ts';

/** Patterns of the words by which vectors name the two transports, including the words of other editions. */
const TRANSPORTS: readonly (readonly [RegExp, Transport])[] = [
  [/^(?:tool|mcp)/i, 'tool'],
  [/^(?:agent|a2a)/i, 'agent'],
];

/** Returns the transport that a word names; undefined if the word names none. */
export const transportNamed = (word: string): Transport | undefined =>
  TRANSPORTS.find(([pattern]) => pattern.test(word))?.[1];

/**
 * For each value of a vector's member `path` (the place of the data in the answer), the transport to which the answer
 * belongs.
 */
const PATHS: ReadonlyMap<string, Transport> = new Map<string, Transport>([
  ['structuredContent', 'tool'],
  ['text_fallback', 'tool'],
  ['artifact', 'agent'],
  ['status_message', 'agent'],
  ['none', 'agent'],
]);

/** Returns the answer in a vector. @throws VectorError if there is none. */
function responseOf(vector: JsonObject): unknown {
  if (Object.hasOwn(vector, 'response')) return vector['response'];
  throw missing('response', 'the answer of a call');
}

const ANSWER = z.object({
  status: optional.text,
  path: optional.text,
  response: z.optional(z.unknown()),
  expected_data: z.optional(z.unknown()),
  expected_error_type: z.optional(z.nullable(required.text)),
});

function answerCase(vector: JsonObject, name: string, context: ShapeContext): AnswerCase {
  const { path, expected_error_type: error } = passUnknown(ANSWER, vector, context);
  const transport = path === undefined ? transportOf(vector['response']) : PATHS.get(path);
  if (transport === undefined) throw missing('path', `one of ${[...PATHS.keys()].join(', ')}`);
  if (!Object.hasOwn(vector, 'expected_data'))
    throw missing('expected_data', 'the data of the answer, or null');
  return {
    kind: 'answer',
    name,
    file: context.file,
    transport,
    response: responseOf(vector),
    data: vector['expected_data'],
    ...defined({ error }),
  };
}

/** Returns the transport of an answer: `tool` if it has a member that only a tool's result has, otherwise `agent`. */
const transportOf = (response: unknown): Transport =>
  isJsonObject(response) && ['content', 'structuredContent', 'isError'].some((name) => name in response)
    ? 'tool'
    : 'agent';

/** Reads `{vectors: [{id, status, path, response, expected_data, expected_error_type?}]}`, of either transport. */
export function readAnswers(json: JsonObject, context: ShapeContext): readonly VectorCase[] {
  return readList(json, 'vectors', context, (vector, name) => answerCase(vector, name, context));
}

const ACTIONS = [
  'retry',
  'surface_to_caller',
  'escalate_to_human',
  'generic_error',
] as const satisfies readonly ErrorAction[];

const ERROR = z.object({
  transport: required.text,
  path: optional.text,
  response: z.optional(z.unknown()),
  expected_error: z.optional(z.nullable(required.object)),
  expected_action: z.optional(z.enum(ACTIONS, `one of ${ACTIONS.join(', ')}`)),
});

function errorCase(vector: JsonObject, name: string, context: ShapeContext): ErrorCase {
  const given = passUnknown(ERROR, vector, context);
  const transport = transportNamed(given.transport);
  if (transport === undefined) throw missing('transport', 'mcp or a2a');
  const { expected_error: error, expected_action: action } = given;
  if (error === undefined && action === undefined)
    throw new VectorError('no expectation: expected expected_error or expected_action');
  return {
    kind: 'error',
    name,
    file: context.file,
    transport,
    response: responseOf(vector),
    ...defined({ error, action }),
  };
}

/** Reads `{vectors: [{id, transport, path, response, expected_error, expected_action}]}`. */
export function readErrors(json: JsonObject, context: ShapeContext): readonly VectorCase[] {
  return readList(json, 'vectors', context, (vector, name) => errorCase(vector, name, context));
}

const TARGETS = { well_known: 'well-known', authoritative_location: 'authoritative' } as const;

const REDIRECTS = z.object({
  target: z.enum(
    Object.keys(TARGETS) as (keyof typeof TARGETS)[],
    `one of ${Object.keys(TARGETS).join(', ')}`,
  ),
  origin_url: required.text,
  redirect_chain: optional.objects,
  expected: required.object,
});

const HOP = z.object({ status: required.number, location: optional.text });

const OUTCOME = z.object({
  result: z.enum(['resolved', 'refused'], 'resolved or refused'),
  final_url: optional.text,
  reason: optional.text,
});

function hopOf(hop: JsonObject, index: number, context: ShapeContext): Redirect {
  const { status, location } = passUnknown(HOP, hop, context, `redirect_chain[${index}]`);
  if (!Number.isInteger(status) || status < 300 || status > 399) {
    throw missing(`redirect_chain[${index}].status`, 'an HTTP status from 300 to 399');
  }
  return { status, ...defined({ location }) };
}

function redirectsCase(vector: JsonObject, name: string, context: ShapeContext): RedirectsCase {
  const given = passUnknown(REDIRECTS, vector, context);
  const {
    result,
    final_url: finalUrl,
    reason: why,
  } = passUnknown(OUTCOME, given.expected, context, 'expected');
  const isRefused = result === 'refused';
  if (isRefused && finalUrl !== undefined)
    throw new VectorError('expected.final_url contradicts expected.result');
  return {
    kind: 'redirects',
    name,
    file: context.file,
    target: TARGETS[given.target],
    url: given.origin_url,
    redirects: (given.redirect_chain ?? []).map((hop, index) => hopOf(hop, index, context)),
    expected: isRefused
      ? { refused: true, ...defined({ why }) }
      : { refused: false, ...defined({ finalUrl }) },
  };
}

/**
 * Reads `{vectors: [{id, target, origin_url, redirect_chain: [{status, location}], expected: {result, final_url?,
 * reason?}}]}`.
 */
export function readRedirects(json: JsonObject, context: ShapeContext): readonly VectorCase[] {
  return readList(json, 'vectors', context, (vector, name) => redirectsCase(vector, name, context));
}
