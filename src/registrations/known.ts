// Tells if a seller's media buy or task is in the store, in any state. A reconciler checks this before it adopts a
// media buy or task. `mediaBuyRowId` also names the rows that settling writes for media buys.
import type { Hashes } from '../crypto/engine.ts';
import { storedId } from '../stages/ids.ts';
import type { RegistrationRows } from '../stores/store.ts';
import { isRegistered, streamAt } from './streams.ts';

/**
 * Returns the id of the row that names the operation of a media buy. The row has the kind `watch`, like a task's row,
 * but is never polled. No well-meaning seller has a task with such an id.
 */
export const mediaBuyRowId = (mediaBuyId: string, hashes: Hashes): string =>
  storedId(`media_buy\0${mediaBuyId}`, hashes);

/**
 * True if the store has a registered stream (the record of the reports) of a media buy, or the operation that made the
 * media buy.
 */
export function isMediaBuyKnown(rows: RegistrationRows, hashes: Hashes, mediaBuyId: string): boolean {
  const stream = streamAt(rows, storedId(mediaBuyId, hashes));
  const owner = rows.get('watch', mediaBuyRowId(mediaBuyId, hashes));
  return owner !== undefined || (stream !== undefined && isRegistered(stream));
}

/** True if the task belongs to an operation, or belonged to one before another task replaced it. */
export const isTaskKnown = (rows: RegistrationRows, hashes: Hashes, taskId: string): boolean =>
  rows.get('watch', storedId(taskId, hashes)) !== undefined;
