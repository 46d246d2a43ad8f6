import type { Hashes } from '../crypto/engine.ts';
import type { RegistrationRow, RegistrationRows } from '../stores/store.ts';

/*
 * The row by which a seller is asked for the impairments of its open media buys: one for each account and `ref` (owed.md §6.2).
 */

/** How far a row's round is. Times are Unix ms on the store's clock. */
export interface SnapshotRound {
  /** As JSON text. */
  readonly account?: string;
  readonly ref?: string;
  /** Media buys that were added to it, all in all: where it is another number, one came meanwhile. */
  readonly added: number;
  /** The present round; absent: it has not begun. */
  readonly began?: number;
  /** Behind the streams that are done in this round: `RegistrationPage.next`. */
  readonly after?: string;
  /** Streams that were found in this round. */
  readonly found?: number;
  /** The seller's place in its answer about the present streams, and how many of them it has not brought. */
  readonly page?: { readonly cursor: string; readonly left: number };
  /** Questions in a row that failed. */
  readonly failures?: number;
}

/** Of a row of this kind. */
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

/** The id of the row that has a stream's media buy. Ids of other rows of this kind have a space. */
export const roundId = ({ account, ref }: Pick<SnapshotRound, 'account' | 'ref'>, hashes: Hashes): string =>
  hashes.sha256Hex(JSON.stringify([account ?? null, ref ?? null]));

/** A stream is made: its seller is asked for it from now on. */
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
