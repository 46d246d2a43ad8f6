// Keeps the rows for asking a seller about the impairments of its open media buys (owed.md §6.2). There is one row for
// each account and `ref`. New media buys are added to it; the reconciler works through it.
import type { Hashes } from '../crypto/engine.ts';
import type { RegistrationRow, RegistrationRows } from '../stores/store.ts';

/** The progress of one pass through the media buys of a row. Times are Unix ms on the store's clock. */
export interface SnapshotRound {
  /** As JSON text. */
  readonly account?: string;
  readonly ref?: string;
  /** The number of media buys that were ever added. If it grows during a pass, a media buy was added meanwhile. */
  readonly added: number;
  /** The beginning of the current pass; absent: the pass has not begun. */
  readonly began?: number;
  /** The cursor after the streams that this pass has handled: `RegistrationPage.next`. */
  readonly after?: string;
  /** The number of streams that this pass has found. */
  readonly found?: number;
  /**
   * The seller's cursor in its answer about the current streams, and the number of them that are still missing in the
   * answer.
   */
  readonly page?: { readonly cursor: string; readonly left: number };
  /** The number of requests in a row that failed. */
  readonly failures?: number;
}

/** Returns the progress that a row contains. */
export const roundIn = ({ value }: Pick<RegistrationRow, 'value'>): SnapshotRound =>
  JSON.parse(value) as SnapshotRound;

export const roundRow = (
  { sender, id }: Pick<RegistrationRow, 'sender' | 'id'>,
  round: SnapshotRound,
  dueAt: number,
): RegistrationRow => ({
  kind: 'snapshot',
  sender,
  id,
  value: JSON.stringify(round),
  dueAt: Math.ceil(dueAt),
  list: null,
  expiresAt: null,
});

/**
 * Returns the id of the row for a stream's media buy. Ids of other rows of this kind contain a space, so they never
 * collide.
 */
export const roundId = ({ account, ref }: Pick<SnapshotRound, 'account' | 'ref'>, hashes: Hashes): string =>
  hashes.sha256Hex(JSON.stringify([account ?? null, ref ?? null]));

/** Adds a new stream to the pass of its account and `ref`: its seller is asked about it from now on. */
export function addToRound(
  rows: RegistrationRows,
  sender: string,
  { round: id, account, ref }: Pick<SnapshotRound, 'account' | 'ref'> & { readonly round?: string },
  now: number,
): void {
  if (id === undefined) return;
  const row = rows.get('snapshot', id);
  if (row) {
    const known = roundIn(row);
    rows.save({ ...row, value: JSON.stringify({ ...known, added: known.added + 1 }) });
    return;
  }
  const of = { ...(account !== undefined && { account }), ...(ref !== undefined && { ref }) };
  rows.save(roundRow({ sender, id }, { ...of, added: 1 }, now));
}
