// Reads the entries about media buys in a seller's answer, which is hostile input. Used by the reconciler, and by
// checks and moves of URLs.
import { isJsonObject, type JsonObject, textMember } from '../codec/members.ts';

/** The largest number of entries that are read of each list in an answer. */
const MOST_ROWS = 10_000;

/** Returns the entries of all lists in an answer, because sellers name the list differently. */
export function listedRows(data: unknown): readonly JsonObject[] {
  if (!isJsonObject(data)) return [];
  return Object.values(data)
    .filter(Array.isArray)
    .flatMap((list: readonly unknown[]) => list.slice(0, MOST_ROWS))
    .filter(isJsonObject);
}

/** Returns the entries in an answer about one media buy. */
export const rowsOf = (data: unknown, mediaBuyId: string): readonly JsonObject[] =>
  listedRows(data).filter((row) => textMember(row, 'media_buy_id') === mediaBuyId);
