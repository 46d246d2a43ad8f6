import { boundedJson } from '../calls/bounds.ts';
import { utf8 } from '../codec/encoding.ts';
import { isJsonObject, type JsonObject } from '../codec/members.ts';
import { isFailedTool, parsableTexts, refusalIn, sellerText, type SellerError, textsIn } from './answer.ts';

/* How the result of a tool becomes the answer of an operation: calls.md §1.10. */

/** Members that an error has for itself. */
const ERRORS: ReadonlySet<string> = new Set(['adcp_error', 'proto_error']);

/** Whether an object is the report of an error and nothing else. */
export const isBareError = (object: JsonObject): boolean =>
  Object.keys(object).length > 0 && Object.keys(object).every((name) => ERRORS.has(name));

/**
 * The object that the operation answered: structured, or as JSON in a text; of a tool that has not failed a text with an
 * error alone is passed over where another one has more.
 * @param maxValues of one text.
 * @throws Error where there is none, and AnswerRefusedError where a text is beyond the bounds.
 */
export async function toolObject(
  { structuredContent, content, isError }: JsonObject,
  maxValues: number,
): Promise<JsonObject> {
  if (isJsonObject(structuredContent)) return structuredContent;
  const texts = textsIn(content);
  let bare: JsonObject | undefined;
  for (const text of parsableTexts(texts)) {
    const parsed = await boundedJson(utf8(text), maxValues);
    if (!isJsonObject(parsed)) continue;
    if (isError === true || !isBareError(parsed)) return parsed;
    bare ??= parsed;
  }
  if (bare) return bare;
  const detail = sellerText(texts.join(' '));
  // It is not known whether the operation was done: the call is repeated.
  throw new Error(isError ? `the operation failed: ${detail}` : `the answer has no JSON object: ${detail}`);
}

/** The error of a tool that has failed, with the object that it answered; undefined where nothing says what it is. */
export const toolRefusal = (result: JsonObject, answer: JsonObject): SellerError | undefined =>
  isFailedTool(result) ? refusalIn({ ...result, structuredContent: answer }) : undefined;
