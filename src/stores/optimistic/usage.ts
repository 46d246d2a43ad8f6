import type { StoreLimits } from '../store.ts';
import type { Counted, RowId, Scope } from '../backend.ts';
import type { Usage } from '../rules/rule-rows.ts';
import { type AnyRow, scopeName } from './row-data.ts';

/* What a sender uses of its caps: as it was counted, and what plans add before it is counted again. */

/**
 * A cap that is so far away counts as far: what all processes may add before this one is told, and 64 MiB of bodies.
 */
const MARGIN_ROWS = 10_000;
const MARGIN_BYTES = 67_108_864;

/** @param share of each limit that is far away. */
export function isFar(usage: Usage, limits: StoreLimits, share: number, hasNonce: boolean): boolean {
  return (
    usage.entries + MARGIN_ROWS < limits.maxRecordsPerSender * share &&
    usage.pendingBytes + MARGIN_BYTES < limits.maxPendingBytesPerSender * share &&
    (!hasNonce ||
      (usage.nonces + MARGIN_ROWS < limits.maxNoncesPerKey * share &&
        usage.senderNonces + MARGIN_ROWS < (limits.maxNoncesPerSender ?? Infinity) * share &&
        usage.allNonces + MARGIN_ROWS < limits.maxNonces * share))
  );
}

type Count = Pick<Counted, 'rows' | 'bytes' | 'nonces'>;

const bytesOf = (row: AnyRow | undefined): number => (row && 'bodyBytes' in row ? row.bodyBytes : 0);

/** What is counted of a sender and of the key id, before the plans of this round. */
export function usageOf(own: Count | undefined, key: Count | undefined, allNonces: number): Usage {
  const { rows: entries = 0, bytes: pendingBytes = 0, nonces: senderNonces = 0 } = own ?? {};
  return { entries, pendingBytes, nonces: key?.rows ?? 0, senderNonces, allNonces };
}

/** A row, and what the store has of it. */
interface Changed {
  readonly id: RowId;
  readonly stored: AnyRow | undefined;
}

type Sum = { -readonly [K in keyof Usage]: Usage[K] };

/** Adds what a plan makes of a row. @returns whether that changes what is counted of the sender or of the key id. */
export function addTo(
  sum: Sum,
  { id, stored }: Changed,
  row: AnyRow | undefined,
  of: readonly Scope[],
): boolean {
  const [own, key] = of;
  const rows = Number(row !== undefined) - Number(stored !== undefined);
  const isOfSender = id.scope.sender === own?.sender;
  if (id.kind === 'nonce') {
    sum.allNonces += rows;
    if (isOfSender) sum.senderNonces += rows;
    if (key === undefined || scopeName(id.scope) !== scopeName(key)) return false;
    sum.nonces += rows;
    return rows !== 0;
  }
  if (!isOfSender) return false;
  const bytes = bytesOf(row) - bytesOf(stored);
  sum.entries += rows;
  sum.pendingBytes += bytes;
  return rows !== 0 || bytes !== 0;
}
