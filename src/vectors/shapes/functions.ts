import * as z from 'zod/mini';
import { defined, type JsonObject } from '../../codec/members.ts';
import { type CanonicalizationCase, type ExtractionCase, type VectorCase, VectorError } from '../case.ts';
import { aliasOf, each, optional, parse, read, readList, required, type ShapeContext } from './read.ts';

const FORM = ['expected_target_uri', 'expected_authority'] as const;
/** Names for the code of a refusal. */
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
  const code = name && given[name];
  if (given.reject === true) {
    const form = FORM.find((member) => given[member] !== undefined);
    if (form !== undefined) throw new VectorError(`reject contradicts ${form}`);
    return { refused: true, ...(code !== undefined && { code: context.codeOf(code) }) };
  }
  if (name !== undefined) throw new VectorError(`${name} is there without reject: true`);
  const [targetUri, authority] = FORM.map((member) => given[member]);
  if (targetUri === undefined && authority === undefined) {
    throw new VectorError(`says nothing: expected expected_target_uri, expected_authority or reject: true`);
  }
  return { refused: false, ...defined({ targetUri, authority }) };
}

/** `{cases: [{name, input_url, expected_target_uri, expected_authority} | {name, input_url, reject: true}]}`. */
export function readCanonicalization(json: JsonObject, context: ShapeContext): readonly VectorCase[] {
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
    throw new VectorError('says nothing: expected expected_format or expected_data');
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

/** `{vectors: [{id, payload, expected_format, expected_data}]}`. */
export function readExtraction(json: JsonObject, context: ShapeContext): readonly VectorCase[] {
  return readList(json, 'vectors', context, (vector, name) => extractionCase(vector, name, context));
}
