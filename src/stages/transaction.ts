import { ConfigError } from '../errors.ts';
import type { CompleteRequest, Store } from '../stores/contract.ts';

/** `ctx.transaction` of one run: at most one commit, which is the event's completion too. */
export interface RunTransaction {
  readonly run: <T>(fn: (tx: unknown) => T | Promise<T>) => Promise<T>;
  /** The handler's writes and the completion are committed. */
  readonly committed: () => boolean;
  /** What the last one that did not commit threw. */
  readonly failure: () => { readonly error: unknown } | undefined;
  /**
   * Resolves when no transaction is under way; a handler may have returned without awaiting one. Rejects with what
   * such a one threw: nobody else has seen it.
   */
  readonly idle: () => Promise<void>;
}

function refuseWhere(
  store: Store,
  committed: boolean,
): asserts store is Store & Required<Pick<Store, 'transaction'>> {
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
}

export function runTransaction(store: Store, complete: CompleteRequest): RunTransaction {
  let committed = false;
  let failure: { readonly error: unknown } | undefined;
  let pending = 0;
  let last: Promise<unknown> | undefined;

  async function commit<T>(
    before: Promise<unknown> | undefined,
    fn: (tx: unknown) => T | Promise<T>,
  ): Promise<T> {
    pending += 1;
    try {
      // One after the other: a second one must see whether the first has committed.
      await before?.catch(() => {});
      refuseWhere(store, committed);
      const value = await store.transaction(complete, fn);
      committed = true;
      return value;
    } catch (error) {
      failure = { error };
      throw error;
    } finally {
      pending -= 1;
    }
  }

  return {
    committed: () => committed,
    failure: () => failure,
    run(fn) {
      const next = commit(last, fn);
      last = next;
      // Where the handler does not await it, `idle` does, or the log says so.
      next.catch(() => {});
      return next;
    },
    idle: async () => {
      if (pending > 0) await last;
    },
  };
}
