// Computes a sender's use of its caps (admission.md §8.9): the counts, and the additions of the current plan.
// Called by plan-rows.ts.
import type { StoreLimits } from '../store.ts';
import type { Counted, RowId } from '../backend.ts';
import type { Usage } from '../rules/rule-rows.ts';
import type { AnyRow } from './row-data.ts';

/**
 * The margins above which a cap is far. They are more than all processes can add before this process gets a new
 * count: 10,000 rows, 64 MiB of bodies.
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

/** Returns the counts of a sender and a key id, without the additions of the current plan. */
export function usageOf(own: Count | undefined, key: Count | undefined, allNonces: number): Sum {
  const { rows: entries = 0, bytes: pendingBytes = 0, nonces: senderNonces = 0 } = own ?? {};
  return { entries, pendingBytes, nonces: key?.rows ?? 0, senderNonces, allNonces };
}

/** Adds a plan's change of one row to the sender's sums. `stored` is the row as the store has it. */
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
