import type { Expectation } from '../case.ts';
import { type JsonObject, type ShapeContext, optionalFlag, optionalNumber, optionalText } from './members.ts';
import { present, textsOf } from './members.ts';

function nullable(json: JsonObject, name: string): string | null | undefined {
  return Object.hasOwn(json, name) ? (optionalText(json, name) ?? null) : undefined;
}

/** A check's number, which vectors write as a number or as text (`"9a"`). */
function checkOf(json: JsonObject, name: string): string | undefined {
  const value = present(json, name);
  return typeof value === 'number' || typeof value === 'string' ? String(value) : undefined;
}

/** Only the members that are there. */
function defined(expected: { readonly [K in keyof Expectation]: Expectation[K] | undefined }): Expectation {
  return Object.fromEntries(Object.entries(expected).filter(([, value]) => value !== undefined));
}

/** Members that every kind of vector may have. */
function answerOf(json: JsonObject): Expectation {
  return defined({
    status: optionalNumber(json, 'status'),
    wwwAuthenticate: nullable(json, 'www_authenticate'),
    sender: optionalText(json, 'sender'),
    kind: optionalText(json, 'kind'),
    handled: optionalFlag(json, 'handled'),
    changed: optionalFlag(json, 'changed'),
    reemission: optionalFlag(json, 'reemission'),
    warnings: textsOf(json, 'warnings'),
  });
}

/** `expected` of a step of ours. */
export function stepExpectation(json: JsonObject): Expectation {
  return {
    ...answerOf(json),
    ...defined({ code: nullable(json, 'code'), check: checkOf(json, 'check') }),
  };
}

/**
 * `expected_outcome` of a signature vector.
 * @param success what the file's place says, where the member does not.
 */
export function outcomeExpectation(
  json: JsonObject,
  success: boolean | undefined,
  { codeOf }: ShapeContext,
): Expectation {
  const authentic = optionalFlag(json, 'success') ?? success;
  const code = optionalText(json, 'error_code');
  return {
    ...answerOf(json),
    ...defined({
      authentic,
      // An authentic body may be no valid envelope, whose code is no business of a signature vector.
      code: code === undefined || authentic === true ? undefined : codeOf(code),
      check: authentic === true ? undefined : checkOf(json, 'failed_step'),
    }),
  };
}
