import type { CacheState, Entry } from './cache-state.ts';
import type { DocumentKind } from './document.ts';
import { liveFetch } from './document-fetch.ts';

type Named = Pick<DocumentKind<unknown>, 'name'>;

/** The kind is part of it. */
function keyOf({ name }: Named, url: string): string {
  return `${name} ${url}`;
}

/** The entry, if there is one; it is then the one asked for last. It holds what its kind's `parse` gave. */
export function touched<T>(
  { entries }: CacheState,
  kind: DocumentKind<T>,
  url: string,
): Entry<T> | undefined {
  const key = keyOf(kind, url);
  const entry = entries.get(key);
  if (entry === undefined) return undefined;
  entries.delete(key);
  entries.set(key, entry);
  return entry as Entry<T>;
}

/** The same, made where there is none. */
export function entryOf<T>(state: CacheState, kind: DocumentKind<T>, url: string): Entry<T> {
  const known = touched(state, kind, url);
  if (known !== undefined) return known;
  const { entries, options } = state;
  if (entries.size >= options.limits.maxDocuments) dropOldest(state);
  const entry: Entry<T> = {
    copy: undefined,
    failure: undefined,
    refetched: undefined,
    began: undefined,
    running: undefined,
  };
  entries.set(keyOf(kind, url), entry);
  return entry;
}

function dropOldest({ entries, options }: CacheState): void {
  for (const [key, entry] of entries) {
    // Were it forgotten, its URL could have two fetches in flight.
    if (liveFetch(options, entry) !== undefined) continue;
    entries.delete(key);
    return;
  }
}

export function dropEntry({ entries }: CacheState, kind: Named, url: string): void {
  entries.delete(keyOf(kind, url));
}
