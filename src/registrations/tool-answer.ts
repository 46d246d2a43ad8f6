// Finds the object that an operation answered in the result of a tool (calls.md §1.10). `mcpCaller` and the conformance
// vectors call it.
import { boundedJson } from '../calls/bounds.ts';
import { utf8 } from '../codec/encoding.ts';
import { isJsonObject, type JsonObject } from '../codec/members.ts';
import { isFailedTool, parsableTexts, refusalIn, sellerText, type SellerError, textsIn } from './answer.ts';

/** The members that are an error. */
const ERRORS: ReadonlySet<string> = new Set(['adcp_error', 'proto_error']);

/** True if an object reports an error and has nothing else. */
export const isBareError = (object: JsonObject): boolean =>
  Object.keys(object).length > 0 && Object.keys(object).every((name) => ERRORS.has(name));

/**
 * The object that the operation answered: structured, or as JSON in a text. If the tool has not failed, a text with an
 * error alone is skipped in favour of one that has more.
 * @param maxValues the limit for one text.
 * @throws Error if there is none, and AnswerRefusedError if a text is beyond the bounds.
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
  // It is unknown if the operation was done, so the call is repeated.
  throw new Error(isError ? `the operation failed: ${detail}` : `the answer has no JSON object: ${detail}`);
}

/** The error of a failed tool, with the object that it answered; undefined if nothing says what it is. */
export const toolRefusal = (result: JsonObject, answer: JsonObject): SellerError | undefined =>
  isFailedTool(result) ? refusalIn({ ...result, structuredContent: answer }) : undefined;
