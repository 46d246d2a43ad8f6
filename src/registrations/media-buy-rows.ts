import { isJsonObject, type JsonObject, textMember } from '../codec/members.ts';

/* Rows of media buys in a seller's answer, which is hostile input. */

/** Objects of the answer's lists that are looked at. */
const MOST_ROWS = 10_000;

/** The rows of all lists of an answer: sellers name the list after what it has. */
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
