import type { CanonicalizationCase, VectorCase } from '../case.ts';
import { readEach } from './each.ts';
import { VectorError } from '../errors.ts';
import { mostMembers } from './known.ts';
import { type JsonObject, type ShapeContext, aliasOf, objectsOf, optionalFlag } from './members.ts';
import { optionalText, present, textOf } from './members.ts';

const FORM = ['expected_target_uri', 'expected_authority'] as const;
/** The code of a refusal. */
const CODE = ['expected_error', 'expected_error_code', 'error_code'] as const;

function expectedOf(json: JsonObject, context: ShapeContext): CanonicalizationCase['expected'] {
  const code = aliasOf(json, 'case', CODE);
  if (optionalFlag(json, 'reject') === true) {
    const form = FORM.find((name) => present(json, name) !== undefined);
    if (form !== undefined) throw new VectorError(`reject contradicts ${form}`);
    return { refused: true, ...(code !== undefined && { code: context.codeOf(textOf(json, code)) }) };
  }
  if (code !== undefined) throw new VectorError(`${code} is there without reject: true`);
  const [targetUri, authority] = FORM.map((name) => optionalText(json, name));
  if (targetUri === undefined && authority === undefined) {
    throw new VectorError(`says nothing: expected expected_target_uri, expected_authority or reject: true`);
  }
  return {
    refused: false,
    ...(targetUri !== undefined && { targetUri }),
    ...(authority !== undefined && { authority }),
  };
}

/** `{cases: [{name, input_url, expected_target_uri, expected_authority} | {name, input_url, reject: true}]}`. */
export function readCanonicalization(json: JsonObject, context: ShapeContext): readonly VectorCase[] {
  return readEach(objectsOf(json, 'cases'), 'case', context, (entry, name): CanonicalizationCase => {
    mostMembers(entry, '', ['input_url', 'reject', ...FORM, ...CODE], context);
    return {
      kind: 'canonicalization',
      name,
      file: context.file,
      url: textOf(entry, 'input_url'),
      expected: expectedOf(entry, context),
    };
  });
}
