// Reads the rows of media buys in a seller's answer, which is hostile input. Used by the reconciler, and by checks and
// moves of URLs.
import { isJsonObject, type JsonObject, textMember } from '../codec/members.ts';

/** The most objects that are read of each list. */
const MOST_ROWS = 10_000;

/** Returns the rows of all lists in an answer, because sellers use different names for the list. */
export function listedRows(data: unknown): readonly JsonObject[] {
  if (!isJsonObject(data)) return [];
  return Object.values(data)
    .filter(Array.isArray)
    .flatMap((list: readonly unknown[]) => list.slice(0, MOST_ROWS))
    .filter(isJsonObject);
}

/** Returns the rows of one media buy. */
export const rowsOf = (data: unknown, mediaBuyId: string): readonly JsonObject[] =>
  listedRows(data).filter((row) => textMember(row, 'media_buy_id') === mediaBuyId);
