import type { Scope } from '../backend.ts';
import { scopeName } from '../driver/row-data.ts';
import type { ScopeIds } from './lines.ts';
import { scopeColumns } from './lines.ts';

/** Remembered at most; beyond, all are asked for again. */
const MOST = 20_000;

export interface Scopes extends ScopeIds {
  /** Until it has resolved, `idOf` knows not all of them. Undefined: it does. */
  readonly know: (scopes: Iterable<Scope>) => Promise<void> | undefined;
  /** What is remembered says nothing any more: the schema was made anew. */
  readonly forget: () => void;
}

/** Ids never change, so each scope is asked for once. @param ask ids of scopes, made where they are new. */
export function scopesOf(
  ask: (senders: readonly string[], keys: readonly string[]) => Promise<readonly number[]>,
): Scopes {
  const ids = new Map<string, number>();
  const scopes = new Map<number, Scope>();
  const learn = async (unknown: readonly Scope[]): Promise<void> => {
    const columns = unknown.map(scopeColumns);
    const found = await ask(
      columns.map(([sender]) => sender),
      columns.map(([, key]) => key),
    );
    if (ids.size > MOST) forget();
    for (const [at, scope] of unknown.entries()) {
      const id = found[at];
      if (id === undefined) continue;
      ids.set(scopeName(scope), id);
      scopes.set(id, scope);
    }
  };
  const forget = (): void => {
    ids.clear();
    scopes.clear();
  };
  return {
    idOf: (scope) => ids.get(scopeName(scope)) ?? -1,
    scopeOf: (id) => scopes.get(id),
    forget,
    know: (wanted) => {
      const unknown = new Map<string, Scope>();
      for (const scope of wanted) {
        const name = scopeName(scope);
        if (!ids.has(name)) unknown.set(name, scope);
      }
      return unknown.size > 0 ? learn([...unknown.values()]) : undefined;
    },
  };
}
