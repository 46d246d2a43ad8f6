// Looks up if a media buy or a task of a seller is known, in any state. A reconciler asks before it takes one over;
// settling names the rows of media buys by it.
import type { Hashes } from '../crypto/engine.ts';
import { storedId } from '../stages/ids.ts';
import type { RegistrationRows } from '../stores/store.ts';
import { isRegistered, streamAt } from './streams.ts';

/**
 * The id of the row that says of which operation a media buy came. It looks like a task's row, and nobody polls it. No
 * well-meaning seller has such a task id.
 */
export const mediaBuyRowId = (mediaBuyId: string, hashes: Hashes): string =>
  storedId(`media_buy\0${mediaBuyId}`, hashes);

/** True if a media buy has an account, or an operation that it came of. */
export function isMediaBuyKnown(rows: RegistrationRows, hashes: Hashes, mediaBuyId: string): boolean {
  const stream = streamAt(rows, storedId(mediaBuyId, hashes));
  const owner = rows.get('watch', mediaBuyRowId(mediaBuyId, hashes));
  return owner !== undefined || (stream !== undefined && isRegistered(stream));
}

/** True if a task belongs to an operation, or did. */
export const isTaskKnown = (rows: RegistrationRows, hashes: Hashes, taskId: string): boolean =>
  rows.get('watch', storedId(taskId, hashes)) !== undefined;
