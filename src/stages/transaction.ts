import { ConfigError } from '../errors.ts';
import type { CompleteRequest, Store } from '../stores/contract.ts';

/** `ctx.transaction` of one run: at most one commit, which is the event's completion too. */
export interface RunTransaction {
  readonly run: <T>(fn: (tx: unknown) => T | Promise<T>) => Promise<T>;
  /** The handler's writes and the completion are committed. */
  readonly committed: () => boolean;
  /** Resolves when no transaction is under way; a handler may have returned without awaiting one. */
  readonly idle: () => Promise<void>;
}

export function runTransaction(store: Store, complete: CompleteRequest): RunTransaction {
  let committed = false;
  let last: Promise<unknown> = Promise.resolve();

  async function commit<T>(fn: (tx: unknown) => T | Promise<T>): Promise<T> {
    if (!store.transaction) {
      throw new ConfigError(
        `ctx.transaction: the ${store.name} store has no transactions. Use the SQLite or Postgres store, or make the effect idempotent by ctx.deliveryId.`,
      );
    }
    if (committed) {
      throw new ConfigError(
        'ctx.transaction: it committed already, and the event with it. Do all of the writes in one call.',
      );
    }
    const value = await store.transaction(complete, fn);
    committed = true;
    return value;
  }

  return {
    committed: () => committed,
    run(fn) {
      // One after the other: a second one must see whether the first has committed.
      const next = last.then(() => commit(fn));
      last = next.catch(() => {});
      return next;
    },
    idle: async () => {
      await last;
    },
  };
}
