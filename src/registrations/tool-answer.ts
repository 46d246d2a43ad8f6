// Finds the JSON object that an operation returned, in the result of an MCP tool (calls.md §1.10). `mcpCaller` and the
// conformance tests call it.
import { boundedJson } from '../calls/bounds.ts';
import { utf8 } from '../codec/encoding.ts';
import { isJsonObject, type JsonObject } from '../codec/members.ts';
import { isFailedTool, parsableTexts, refusalIn, sellerText, type SellerError, textsIn } from './answer.ts';

/** The members that report an error. */
const ERRORS: ReadonlySet<string> = new Set(['adcp_error', 'proto_error']);

/** True if an object contains only an error. */
export const isBareError = (object: JsonObject): boolean =>
  Object.keys(object).length > 0 && Object.keys(object).every((name) => ERRORS.has(name));

/**
 * Returns the object that the operation answered: structured, or as JSON in a text. If the tool has not failed and
 * there are several texts, a text that has more than an error is preferred.
 * @param maxValues the largest number of members and items in one text.
 * @throws Error if there is no object, and AnswerRefusedError if a text exceeds the limits.
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
  // Without an object it is unknown if the operation was done. This error counts as no answer, so the call is repeated.
  throw new Error(isError ? `the operation failed: ${detail}` : `the answer has no JSON object: ${detail}`);
}

/**
 * Returns the seller's error if the tool has failed, as the tool's object reports it. Undefined if the kind of error is
 * unknown.
 */
export const toolRefusal = (result: JsonObject, answer: JsonObject): SellerError | undefined =>
  isFailedTool(result) ? refusalIn({ ...result, structuredContent: answer }) : undefined;
