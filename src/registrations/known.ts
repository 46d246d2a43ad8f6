// Looks up if a media buy or a task of a seller is known, in any state. A reconciler asks this before it adopts one.
// `mediaBuyRowId` also names the rows that settling writes for media buys.
import type { Hashes } from '../crypto/engine.ts';
import { storedId } from '../stages/ids.ts';
import type { RegistrationRows } from '../stores/store.ts';
import { isRegistered, streamAt } from './streams.ts';

/**
 * Returns the id of the row that names the operation of a media buy. The row has the kind of a task's row, but it is
 * never polled. No well-meaning seller has a task with such an id.
 */
export const mediaBuyRowId = (mediaBuyId: string, hashes: Hashes): string =>
  storedId(`media_buy\0${mediaBuyId}`, hashes);

/** True if a media buy has a registered account of its reports, or an operation that made it. */
export function isMediaBuyKnown(rows: RegistrationRows, hashes: Hashes, mediaBuyId: string): boolean {
  const stream = streamAt(rows, storedId(mediaBuyId, hashes));
  const owner = rows.get('watch', mediaBuyRowId(mediaBuyId, hashes));
  return owner !== undefined || (stream !== undefined && isRegistered(stream));
}

/** True if a task belongs to an operation, or did so before. */
export const isTaskKnown = (rows: RegistrationRows, hashes: Hashes, taskId: string): boolean =>
  rows.get('watch', storedId(taskId, hashes)) !== undefined;
