import { Fault } from '../shared/errors.ts';
import { requireOptions } from './text.ts';
import type { Store, StoreOptions } from './store.ts';
import { accept } from './rules/accept-rules.ts';
import { inboxOf } from './rules/claim.ts';
import { registrationsOf } from './rules/registration-rules.ts';
import { alive, complete, fail, peek, renew } from './rules/settle-rules.ts';
import { stepWatch } from './step-watch.ts';
import { type MemoryRows, memoryRows } from './memory/memory-rows.ts';
import { createMemoryState as newState, type MemoryState as State } from './memory/memory-state.ts';

/** What a memory store remembers, opaque. Stores that share one are one store, as two processes on one database are. */
export interface MemoryState {
  /** The store's identity; undefined until it is asked for. */
  readonly id: string | undefined;
}

/** Makes an empty state, for memory stores that share it. */
export const createMemoryState = (): MemoryState => newState();

/** `memoryStore`'s options. */
export interface MemoryStoreOptions extends StoreOptions {
  /** Shared by several stores, they are one: `createMemoryState()`. A new one by default. */
  readonly state?: MemoryState;
}

const OPTION_NAMES: Readonly<Record<keyof MemoryStoreOptions, true>> = { state: true, clockOffsetMs: true };

/**
 * A store for tests and development: everything is gone with the process, durability is `process`. A receiver
 * takes it only with `allowLoopback` or `durability: { require: 'process' }`, and never under `NODE_ENV=production`.
 * Without transactions.
 * @throws ConfigError for an option that is not known.
 */
export function memoryStore(
  options: MemoryStoreOptions = {},
): Store & Required<Pick<Store, typeof Symbol.asyncDispose>> {
  requireOptions('memoryStore', options, OPTION_NAMES);
  const { clockOffsetMs = () => 0 } = options;
  const state = stateOf(options);
  const rows = memoryRows(state);
  const watch = stepWatch();
  // Its rows stay over a close, as those of every store do.
  let closed = false;
  const now = (): number => {
    if (closed) throw new Fault('store_unavailable', 'The memory store is closed.');
    const at = Date.now() + clockOffsetMs();
    watch.seen(at);
    return at;
  };
  const close = async (): Promise<void> => {
    closed = true;
  };
  // Each method runs to its end without yielding, so that steps never overlap, whichever handle they come from.
  const atomic = async <T>(step: (rows: MemoryRows, now: number) => T): Promise<T> => step(rows, now());
  return {
    name: 'memory',
    open: async () => {
      closed = false;
    },
    durability: async () => 'process',
    identity: async () => ({ id: (state.id ??= globalThis.crypto.randomUUID()), isNew: false }),
    accept: async (request) => watch.told(accept(rows, request, now())),
    complete: async (request) => complete(rows, request, now()),
    fail: async (request) => fail(rows, request, now()),
    renew: async (request) => renew(rows, request, now()),
    alive: async (request) => alive(rows, request, now()),
    peek: async (sender, key) => peek(rows, sender, key, now()),
    inbox: inboxOf(atomic, watch),
    registrations: registrationsOf(atomic),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Every state is one that `createMemoryState` made. */
const stateOf = ({ state = createMemoryState() }: MemoryStoreOptions): State => state as State;
