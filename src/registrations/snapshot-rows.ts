// Keeps the rows by which the impairments of a seller's open media buys are requested (owed.md §6.2). There is one row
// for each account and `ref`. New media buys are added to their row here; the reconciler makes the requests.
import type { Hashes } from '../crypto/engine.ts';
import type { RegistrationRow, RegistrationRows } from '../stores/store.ts';

/** The progress of one pass of requests over the media buys of a row. Times are Unix ms on the store's clock. */
export interface SnapshotRound {
  /** The buyer's account as JSON text. */
  readonly account?: string;
  readonly ref?: string;
  /**
   * The number of media buys that were ever added to the row. It changes with each new one, so that a reconciler does
   * not delete the row as empty meanwhile.
   */
  readonly added: number;
  /** The time at which the current pass of requests began; absent: no pass is under way. */
  readonly began?: number;
  /**
   * The cursor (`RegistrationPage.next`) after the last stream that this pass has handled. A stream is one media buy's.
   */
  readonly after?: string;
  /** The number of streams (one for each media buy) that this pass has found. */
  readonly found?: number;
  /**
   * `cursor`: the seller's cursor for the next page of its answer. `left`: the number of requested media buys that the
   * pages so far lack.
   */
  readonly page?: { readonly cursor: string; readonly left: number };
  /** The number of consecutive requests that failed. */
  readonly failures?: number;
}

/** Parses the progress in a row. */
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
 * Returns the id of the row for an account and `ref`. The ids of other rows of this kind contain a space, which this id
 * lacks, so they never collide.
 */
export const roundId = ({ account, ref }: Pick<SnapshotRound, 'account' | 'ref'>, hashes: Hashes): string =>
  hashes.sha256Hex(JSON.stringify([account ?? null, ref ?? null]));

/** Adds a new media buy to the row of its account and `ref`, so that its impairments are requested from now on. */
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
