// Reads the rows of media buys in a seller's answer, which is hostile input. Used by the reconciler, and by checks and
// moves of URLs.
import { isJsonObject, type JsonObject, textMember } from '../codec/members.ts';

/** The largest number of objects that are read of each list. */
const MOST_ROWS = 10_000;

/** The rows of all lists of an answer, because sellers differ in the list's name. */
export function listedRows(data: unknown): readonly JsonObject[] {
  if (!isJsonObject(data)) return [];
  return Object.values(data)
    .filter(Array.isArray)
    .flatMap((list: readonly unknown[]) => list.slice(0, MOST_ROWS))
    .filter(isJsonObject);
}

/** The rows of one media buy. */
export const rowsOf = (data: unknown, mediaBuyId: string): readonly JsonObject[] =>
  listedRows(data).filter((row) => textMember(row, 'media_buy_id') === mediaBuyId);
