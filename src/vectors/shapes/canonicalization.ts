import type { CanonicalizationCase, VectorCase } from '../case.ts';
import { readEach } from './each.ts';
import { VectorError } from '../errors.ts';
import {
  type JsonObject,
  type ShapeContext,
  objectsOf,
  optionalFlag,
  optionalText,
  textOf,
} from './members.ts';

function expectedOf(json: JsonObject): CanonicalizationCase['expected'] {
  if (optionalFlag(json, 'reject') === true) return undefined;
  const targetUri = optionalText(json, 'expected_target_uri');
  const authority = optionalText(json, 'expected_authority');
  if (targetUri === undefined && authority === undefined) {
    throw new VectorError(`says nothing: expected expected_target_uri, expected_authority or reject: true`);
  }
  return { ...(targetUri !== undefined && { targetUri }), ...(authority !== undefined && { authority }) };
}

/** `{cases: [{name, input_url, expected_target_uri, expected_authority} | {name, input_url, reject: true}]}`. */
export function readCanonicalization(json: JsonObject, context: ShapeContext): readonly VectorCase[] {
  return readEach(objectsOf(json, 'cases'), 'case', context, (entry, name): CanonicalizationCase => ({
    kind: 'canonicalization',
    name,
    file: context.file,
    url: textOf(entry, 'input_url'),
    expected: expectedOf(entry),
  }));
}
