import type { Hashes } from '../crypto/engine.ts';
import { storedId } from '../stages/ids.ts';
import type { RegistrationRows } from '../stores/store.ts';
import { isRegistered, streamAt } from './streams.ts';

/* What is known of a seller's media buys and tasks, in any state, by their ids. */

/** A row like a task's, which nobody polls. No task of a seller that means well has such an id. */
export const mediaBuyRowId = (mediaBuyId: string, hashes: Hashes): string =>
  storedId(`media_buy\0${mediaBuyId}`, hashes);

/** Whether a media buy has an account, or an operation that it came of. */
export function isMediaBuyKnown(rows: RegistrationRows, hashes: Hashes, mediaBuyId: string): boolean {
  const stream = streamAt(rows, storedId(mediaBuyId, hashes));
  const owner = rows.get('watch', mediaBuyRowId(mediaBuyId, hashes));
  return owner !== undefined || (stream !== undefined && isRegistered(stream));
}

/** Whether a task is, or was, an operation's. */
export const isTaskKnown = (rows: RegistrationRows, hashes: Hashes, taskId: string): boolean =>
  rows.get('watch', storedId(taskId, hashes)) !== undefined;
