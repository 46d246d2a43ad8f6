import type { DeliveryCase, Expectation, ExtractionCase, VectorCase } from '../case.ts';
import { readEach } from './each.ts';
import { VectorError } from '../errors.ts';
import { mostMembers } from './known.ts';
import { DEFAULT_AGENT, DEFAULT_NOW_MS, DEFAULT_URL, type JsonObject, type ShapeContext } from './members.ts';
import { bodyOf, editionOf, isJsonObject, objectsOf, optionalNumber, optionalText } from './members.ts';
import { plainSetup, present, textsOf } from './members.ts';

/** Envelopes are judged behind the scheme that needs no signature of ours. */
const TOKEN = 'a-token-of-the-vectors-for-envelopes';

/** `payload`, serialised; or `raw_body`, byte for byte. */
function payloadBytes(vector: JsonObject): Uint8Array {
  if (!Object.hasOwn(vector, 'payload')) return bodyOf(vector, 'raw_body');
  return new TextEncoder().encode(JSON.stringify(vector['payload']));
}

const ENVELOPE = ['payload', 'raw_body', 'raw_body_base64', 'edition'] as const;

function envelopeCase(
  vector: JsonObject,
  name: string,
  expected: Expectation,
  context: ShapeContext,
): DeliveryCase {
  const legacy = { scheme: 'bearer', secret: TOKEN } as const;
  const sender = { agentUrl: DEFAULT_AGENT, keys: [], edition: editionOf(vector, context), legacy };
  const request = {
    method: 'POST',
    url: DEFAULT_URL,
    headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${TOKEN}` },
    body: payloadBytes(vector),
  };
  return {
    kind: 'envelope',
    name,
    file: context.file,
    setup: plainSetup(context, { url: DEFAULT_URL, nowMs: DEFAULT_NOW_MS, senders: [sender] }),
    steps: [{ request, nowMs: DEFAULT_NOW_MS, handlerFails: false, expected }],
  };
}

function errorOf(vector: JsonObject, { codeOf }: ShapeContext): string {
  const error = present(vector, 'expected_error');
  const code = isJsonObject(error) ? error['code'] : error;
  if (typeof code !== 'string') throw new VectorError('expected_error is missing or wrong: expected a code');
  return codeOf(code);
}

/** `{positive: [{id, payload}], negative: [{id, payload, expected_error}]}`. */
export function readEnvelopes(json: JsonObject, context: ShapeContext): readonly VectorCase[] {
  const positive = readEach(objectsOf(json, 'positive'), 'positive', context, (vector, name) => {
    mostMembers(
      vector,
      '',
      [...ENVELOPE, 'expected_warnings', 'expected_event_kind', 'expected_family'],
      context,
    );
    const warnings = textsOf(vector, 'expected_warnings');
    const eventKind = optionalText(vector, 'expected_event_kind');
    const expected = {
      status: 200,
      code: null,
      ...(warnings && { warnings }),
      ...(eventKind !== undefined && { eventKind }),
      ...(Object.hasOwn(vector, 'expected_family') && {
        family: optionalText(vector, 'expected_family') ?? null,
      }),
    };
    return envelopeCase(vector, name, expected, context);
  });
  const negative = readEach(objectsOf(json, 'negative'), 'negative', context, (vector, name) => {
    mostMembers(vector, '', [...ENVELOPE, 'expected_error', 'expected_status'], context);
    const status = optionalNumber(vector, 'expected_status');
    const expected = { code: errorOf(vector, context), ...(status !== undefined && { status }) };
    return envelopeCase(vector, name, expected, context);
  });
  return [...positive, ...negative];
}

const EXTRACTION = ['payload', 'expected_format', 'expected_data'] as const;

function extractionCase(vector: JsonObject, name: string, context: ShapeContext): ExtractionCase {
  mostMembers(vector, '', EXTRACTION, context);
  const has = (member: (typeof EXTRACTION)[number]): boolean => Object.hasOwn(vector, member);
  const expected = {
    ...(has('expected_format') && { format: optionalText(vector, 'expected_format') ?? null }),
    ...(has('expected_data') && { data: { value: vector['expected_data'] } }),
  };
  if (Object.keys(expected).length === 0) {
    throw new VectorError('says nothing: expected expected_format or expected_data');
  }
  if (!has('payload')) throw new VectorError('payload is missing: expected any JSON value');
  return { kind: 'extraction', name, file: context.file, payload: vector['payload'], ...expected };
}

/** `{vectors: [{id, payload, expected_format, expected_data}]}`. */
export function readExtraction(json: JsonObject, context: ShapeContext): readonly VectorCase[] {
  return readEach(objectsOf(json, 'vectors'), 'vector', context, (vector, name) =>
    extractionCase(vector, name, context),
  );
}
