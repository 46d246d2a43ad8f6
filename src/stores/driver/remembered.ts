import type { LoadResult, RowKind } from '../backend.ts';
import type { RecordRow } from '../rules/rows.ts';
import type { Entry, KnownCount } from './journal.ts';
import { scopeName } from './row-data.ts';
import type { CountBook, Remembered } from './round.ts';

/** Rows that are remembered; of the senders' counts as many. */
const MOST = 8192;

const KINDS: ReadonlySet<RowKind> = new Set<RowKind>(['task', 'record', 'process']);

/**
 * The rows that this process is likely to write next: tasks, its own, and records whose lease is its own. A guess that is wrong
 * costs a round, and no more: what is committed is compared with what is there (admission.md §8.11).
 */
export function rememberedRows(): Remembered {
  const rows = new Map<string, Pick<Entry, 'version' | 'stored'>>();
  return {
    get: (name) => rows.get(name),
    forget: (name) => void rows.delete(name),
    put: ({ id, name, version, stored }) => {
      if (!KINDS.has(id.kind)) return;
      rows.delete(name);
      if (id.kind === 'record' && (stored as RecordRow).state !== 'leased') return;
      rows.set(name, { version, stored });
      forgetOldest(rows);
    },
  };
}

export function countBook(): CountBook {
  const known = new Map<string, KnownCount>();
  let nonces = 0;
  return {
    get: (name) => known.get(name),
    nonces: () => nonces,
    put: (result: LoadResult) => {
      for (const count of result.counts) {
        const name = scopeName(count.scope);
        known.delete(name);
        known.set(name, { ...count, seenAt: performance.now() });
      }
      forgetOldest(known);
      nonces = result.nonces ?? nonces;
    },
  };
}

function forgetOldest(map: Map<string, unknown>): void {
  for (const oldest of map.keys()) {
    if (map.size <= MOST) return;
    map.delete(oldest);
  }
}
