import type { Store } from '../stores/store.ts';

/** By store: who has opened it and has not stopped. Weak: a store that nobody has is forgotten. */
const holders = new WeakMap<Store, Set<object>>();

/** A receiver's use of its store: several receivers of one process may have the same. */
export interface StoreHold {
  /** Before the store is opened: nobody else closes it from now on. */
  readonly take: () => void;
  /** The store was not opened. */
  readonly drop: () => void;
  /** Closes the store, unless another receiver has it. */
  readonly close: () => Promise<void>;
}

export function storeHold(store: Store): StoreHold {
  const me = {};
  const all = holders.get(store) ?? new Set<object>();
  holders.set(store, all);
  const drop = (): void => void all.delete(me);
  return {
    take: () => void all.add(me),
    drop,
    async close() {
      drop();
      if (all.size === 0) await store.close();
    },
  };
}
