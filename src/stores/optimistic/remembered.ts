import type { LoadResult, RowKind } from '../backend.ts';
import type { RecordRow } from '../rules/rule-rows.ts';
import type { RegistrationRow } from '../store.ts';
import type { CountBook, Remembered } from './batch-commit.ts';
import type { Entry, KnownCount } from './plan-rows.ts';
import { isRegistration, scopeName } from './row-data.ts';

/** Rows that are remembered; of the senders' counts as many. */
const MOST = 8192;

/** Written once. */
const ONCE: ReadonlySet<RowKind> = new Set<RowKind>(['nonce', 'notification']);

/** Rows with a longer value are not remembered: they would be as large as an owner's data. UTF-16 units. */
const LONGEST_VALUE = 2048;

/**
 * The rows that this process is likely to write next: tasks, its own, records whose lease is its own, and rows of registrations. A
 * guess that is wrong costs a round, and no more: what is committed is compared with what is there (admission.md §8.11).
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
