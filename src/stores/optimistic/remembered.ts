// Remembers the rows that this process wrote last, and the counts of rows that the backend returned (admission.md §8.9,
// §8.11). Called by optimistic-store.ts, which makes one memory for rows and one for counts per store.
import type { LoadResult, RowKind } from '../backend.ts';
import type { RecordRow } from '../rules/rule-rows.ts';
import type { RegistrationRow } from '../store.ts';
import type { CountBook, Remembered } from './batch-commit.ts';
import type { Entry, KnownCount } from './plan-rows.ts';
import { isRegistration, scopeName } from './row-data.ts';

/** The largest number of rows that are remembered. The limit for counts is the same. */
const MOST = 8192;

/** Kinds of rows that are written once. They are not remembered, because no later plan writes them. */
const ONCE: ReadonlySet<RowKind> = new Set<RowKind>(['nonce', 'notification']);

/** The longest `value` of a registration that is remembered; longer ones could fill the memory. UTF-16 units. */
const LONGEST_VALUE = 2048;

/**
 * Remembers the rows that this process is likely to write next: tasks, its own process, leased records, and
 * registrations. Plans use them as guesses. A wrong guess costs one round trip and no more, because a commit compares
 * it with the stored row (admission.md §8.11).
 */
export function rememberedRows(): Remembered {
  const rows = new Map<string, Pick<Entry, 'version' | 'stored'>>();
  return {
    get: (name) => rows.get(name),
    forget: (name) => void rows.delete(name),
    put: ({ id, name, version, stored }) => {
      if (ONCE.has(id.kind)) return;
      rows.delete(name);
      if (id.kind === 'record' && (stored as RecordRow).state !== 'leased') return;
      if (isRegistration(id.kind) && (stored as RegistrationRow).value.length > LONGEST_VALUE) return;
      rows.set(name, { version, stored });
      forgetOldest(rows);
    },
  };
}

export function countBook(): CountBook {
  const known = new Map<string, KnownCount>();
  const swept = new Map<string, number>();
  let nonces = 0;
  return {
    sweptAt: (name) => swept.get(name),
    noteSwept: (name, now) => {
      swept.delete(name);
      swept.set(name, now);
      forgetOldest(swept);
    },
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
  if (map.size <= MOST) return;
  for (const oldest of map.keys()) {
    if (map.size <= MOST) return;
    map.delete(oldest);
  }
}
