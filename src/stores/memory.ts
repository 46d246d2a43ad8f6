import { Fault } from '../errors.ts';
import type { Store, StoreOptions } from './contract.ts';
import { accept } from './kernel/accept.ts';
import { inboxOf } from './kernel/inbox.ts';
import type { Rows } from './kernel/rows.ts';
import { complete, fail, peek, renew } from './kernel/settle.ts';
import { memoryRows } from './memory/rows.ts';
import type { MemoryState } from './memory/state.ts';
import { createMemoryState } from './memory/state.ts';

export { createMemoryState } from './memory/state.ts';
export type { MemoryState } from './memory/state.ts';

/** `memoryStore`'s options. */
export interface MemoryStoreOptions extends StoreOptions {
  /** Shared by several stores, they are one: `createMemoryState()`. A new one by default. */
  readonly state?: MemoryState;
}

/**
 * A store for tests and development: everything is gone with the process, durability is `process`. A receiver
 * takes it only with `requireDurability: 'process'`, and never under `NODE_ENV=production`. Without transactions.
 */
export function memoryStore(options: MemoryStoreOptions = {}): Store {
  const { state = createMemoryState(), clockOffsetMs = () => 0 } = options;
  const rows = memoryRows(state);
  let closed = false;
  const now = (): number => {
    if (closed) throw new Fault('store_unavailable', 'The memory store is closed.');
    return Date.now() + clockOffsetMs();
  };
  // Each method runs to its end without yielding, so that steps never overlap, whichever handle they come from.
  const atomic = async <T>(step: (rows: Rows, now: number) => T): Promise<T> => step(rows, now());
  return {
    name: 'memory',
    open: async () => void now(),
    durability: async () => 'process',
    accept: async (request) => accept(rows, request, now()),
    complete: async (request) => complete(rows, request, now()),
    fail: async (request) => fail(rows, request, now()),
    renew: async (request) => renew(rows, request, now()),
    peek: async (sender, key) => peek(rows, sender, key, now()),
    inbox: inboxOf(atomic),
    close: async () => {
      closed = true;
    },
  };
}
