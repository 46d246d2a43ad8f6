// Computes a sender's use of its caps (admission.md §8.9): the counts, and the additions of the current plan.
// Called by plan-rows.ts.
import type { StoreLimits } from '../store.ts';
import type { Counted, RowId } from '../backend.ts';
import type { Usage } from '../rules/rule-rows.ts';
import type { AnyRow } from './row-data.ts';

/**
 * A cap is far if more than these margins are left: 10,000 rows, 64 MiB of bodies. All processes together add less than
 * that before this process gets new counts.
 */
const MARGIN_ROWS = 10_000;
const MARGIN_BYTES = 67_108_864;

export function isFar(usage: Usage, limits: StoreLimits, hasNonce: boolean): boolean {
  return (
    usage.entries + MARGIN_ROWS < limits.maxRecordsPerSender &&
    usage.pendingBytes + MARGIN_BYTES < limits.maxPendingBytesPerSender &&
    (!hasNonce ||
      (usage.nonces + MARGIN_ROWS < limits.maxNoncesPerKey &&
        usage.senderNonces + MARGIN_ROWS < (limits.maxNoncesPerSender ?? Infinity) &&
        usage.allNonces + MARGIN_ROWS < limits.maxNonces))
  );
}

type Count = Pick<Counted, 'rows' | 'bytes' | 'nonces'>;
export type Sum = { -readonly [K in keyof Usage]: Usage[K] };

const bytesOf = (row: AnyRow | undefined): number => (row && 'bodyBytes' in row ? row.bodyBytes : 0);

/**
 * Returns the usage of a sender and one of its key ids from the counts alone, without the additions of the current
 * plan.
 */
export function usageOf(own: Count | undefined, key: Count | undefined, allNonces: number): Sum {
  const { rows: entries = 0, bytes: pendingBytes = 0, nonces: senderNonces = 0 } = own ?? {};
  return { entries, pendingBytes, nonces: key?.rows ?? 0, senderNonces, allNonces };
}

/**
 * Adds a plan's change of one row to the sender's usage. `stored` is the row before the change, as the store has it.
 */
export function addTo(
  sum: Sum,
  { id, stored }: { readonly id: RowId; readonly stored: AnyRow | undefined },
  row: AnyRow,
): void {
  const rows = Number(stored === undefined);
  if (id.kind === 'nonce') {
    sum.nonces += rows;
    sum.senderNonces += rows;
    sum.allNonces += rows;
  } else {
    sum.entries += rows;
    sum.pendingBytes += bytesOf(row) - bytesOf(stored);
  }
}
