// Closes a store that several receivers of a process share, when the last of them has stopped (admission.md §2.13).
// Made once per receiver.

import type { Store } from '../stores/store.ts';

/** For each store, the receivers that opened it and have not stopped. The WeakMap forgets a store that nobody uses. */
const holders = new WeakMap<Store, Set<object>>();

/** A receiver's use of its store, which several receivers of one process may share. */
export interface StoreHold {
  /** Called before the store is opened. From then on no other receiver closes the store. */
  readonly take: () => void;
  /** Called if the store could not be opened. Undoes `take`. */
  readonly drop: () => void;
  /** Closes the store, unless another receiver is using it. */
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
