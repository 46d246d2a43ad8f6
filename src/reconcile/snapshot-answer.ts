// Reads the impairments of a media buy in an answer of `get_media_buys` (owed.md §6.3). The functions are pure.
// tell-states.ts calls them.
import { isJsonObject, type JsonObject, present, textMember } from '../codec/members.ts';
import { instantIn } from '../registrations/asked-reports.ts';
import type { SnapshotAnswer, SnapshotEntry } from '../states/judge.ts';
import { isTerminalBuy } from '../windows/ends.ts';
import { countedInstant, MAX_STATE_ID, stateWord } from '../states/states.ts';

/** The most impairments of a media buy that are read. */
const MOST_ENTRIES = 10_000;

/**
 * Reads the impairments in a media buy's row of an answer.
 * @param askedAt the time of the request, on the store's clock.
 * @returns undefined if the row says nothing about impairments.
 */
export function impairmentsIn(row: JsonObject, askedAt: number): SnapshotAnswer | undefined {
  const asOf = countedInstant(instantIn(row, 'status_as_of'), askedAt);
  // A terminal media buy has no impairments. It stays terminal, so the time that the seller states for its answer does
  // not matter.
  if (isTerminalBuy(textMember(row, 'status'))) return nothingImpaired(askedAt);
  const said = { isTerminal: false, askedAt, ...(asOf !== undefined && { asOf }) };
  const list = present(row, 'impairments');
  if (Array.isArray(list)) return { ...entriesIn(list, askedAt), ...said };
  return list === undefined && textMember(row, 'health') === 'ok' ? { entries: [], ...said } : undefined;
}

/** Makes the answer that a terminal media buy has no impairments. @param askedAt on the store's clock, Unix ms. */
export const nothingImpaired = (askedAt: number): SnapshotAnswer => ({
  entries: [],
  isTerminal: true,
  askedAt,
});

type Entries = Pick<SnapshotAnswer, 'entries' | 'isPartial'>;

function entriesIn(list: readonly unknown[], now: number): Entries {
  const entries = new Map<string, SnapshotEntry>();
  let isPartial = list.length > MOST_ENTRIES;
  for (const one of list.slice(0, MOST_ENTRIES)) {
    const entry = entryIn(one, now);
    const before = entry && entries.get(entry.id);
    if (!entry) isPartial = true;
    else if (!before || (before.at ?? 0) < (entry.at ?? 0)) entries.set(entry.id, entry);
  }
  return { entries: [...entries.values()], ...(isPartial && { isPartial }) };
}

/** Reads one impairment. @returns undefined if the impairment has no valid id. */
function entryIn(one: unknown, now: number): SnapshotEntry | undefined {
  const id = isJsonObject(one) ? textMember(one, 'impairment_id') : undefined;
  if (!isJsonObject(one) || !id || id.length > MAX_STATE_ID) return undefined;
  const transition = present(one, 'transition');
  const to = isJsonObject(transition) ? textMember(transition, 'to') : undefined;
  const at = countedInstant(instantIn(one, 'observed_at'), now);
  return {
    id,
    ...(at !== undefined && { at }),
    ...(to !== undefined && { to: stateWord(to) }),
    payload: one,
  };
}
