import type { VectorCase } from '../case.ts';
import { VectorError } from '../errors.ts';
import { readCanonicalization } from './canonicalization.ts';
import { readEnvelopes, readExtraction } from './events.ts';
import { readBearer, readHmac } from './legacy.ts';
import { type JsonObject, type ShapeContext, isJsonObject } from './members.ts';
import { readSequences } from './sequence.ts';
import { readSignature } from './signature.ts';

export type { ShapeContext } from './members.ts';

interface Shape {
  readonly described: string;
  readonly fits: (json: JsonObject) => boolean;
  readonly read: (json: JsonObject, context: ShapeContext) => readonly VectorCase[];
}

const hasArray = (json: JsonObject, name: string): boolean => Array.isArray(json[name]);
const someVector = (json: JsonObject, ...members: readonly string[]): boolean => {
  const { vectors } = json;
  if (!Array.isArray(vectors)) return false;
  return vectors.some(
    (vector) => isJsonObject(vector) && members.some((name) => Object.hasOwn(vector, name)),
  );
};

/** How a file is told by its members; the first that fits decides. */
const SHAPES: readonly Shape[] = [
  {
    described: '{request, reference_now, expected_outcome}',
    fits: (json) => isJsonObject(json['request']),
    read: readSignature,
  },
  {
    described: '{cases: [{input_url}]}',
    fits: (json) => hasArray(json, 'cases'),
    read: readCanonicalization,
  },
  { described: '{sequences: [{steps}]}', fits: (json) => hasArray(json, 'sequences'), read: readSequences },
  {
    described: '{positive: [{payload}], negative: [{payload, expected_error}]}',
    fits: (json) => hasArray(json, 'positive') || hasArray(json, 'negative'),
    read: readEnvelopes,
  },
  {
    described: '{secret, vectors: [{timestamp, raw_body, expected_signature}]}',
    fits: (json) => 'secret' in json && hasArray(json, 'vectors'),
    read: readHmac,
  },
  {
    described: '{token, vectors: [{raw_body, expected}]}',
    fits: (json) => 'token' in json && hasArray(json, 'vectors'),
    read: readBearer,
  },
  {
    described: '{vectors: [{payload, expected_format, expected_data}]}',
    fits: (json) => someVector(json, 'expected_format', 'expected_data'),
    read: readExtraction,
  },
];

/** A JWK Set is no vector: it stands beside them. */
export function isKeySet(json: unknown): json is { readonly keys: readonly JsonObject[] } {
  return isJsonObject(json) && Array.isArray(json['keys']) && json['keys'].every(isJsonObject);
}

/** The cases of one parsed file. @throws VectorError where it has no known shape, or a member is wrong. */
export function readCases(json: unknown, context: ShapeContext): readonly VectorCase[] {
  const shape = isJsonObject(json) ? SHAPES.find(({ fits }) => fits(json)) : undefined;
  if (!shape || !isJsonObject(json)) {
    const known = SHAPES.map(({ described }) => described).join(', ');
    throw new VectorError(`no known shape of vectors: expected one of ${known}`);
  }
  const cases = shape.read(json, context);
  if (cases.length === 0)
    throw new VectorError(`no vectors in it: expected at least one in ${shape.described}`);
  return cases;
}
