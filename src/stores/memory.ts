// The public entry `proto-webhooks/memory`: a store in this process, for tests and development (admission.md §9.1).
// Called by users and by tests; each method runs a rule of `stores/rules` in one synchronous step.
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

/**
 * The data of a memory store, made by `createMemoryState` and passed as `memoryStore({ state })`. Memory stores with
 * the same state act as one store, like two processes on one database.
 */
export interface MemoryState {
  /** The identity of the store; undefined until it is first needed. */
  readonly id: string | undefined;
}

/**
 * Creates an empty state. Pass it to several memory stores (`memoryStore({ state })`), and they share it as several
 * processes share one database.
 *
 * @example
 * ```ts
 * import { createMemoryState, memoryStore } from 'proto-webhooks/memory';
 *
 * const state = createMemoryState();
 * const [a, b] = [memoryStore({ state }), memoryStore({ state })];
 * await Promise.all([a.open(), b.open()]);
 * ```
 */
export const createMemoryState = (): MemoryState => newState();

/** Options of `memoryStore`: a state to share with other memory stores, and a clock offset for tests. */
export interface MemoryStoreOptions extends StoreOptions {
  /** The state, made by `createMemoryState()`. Stores that share a state are one store. Default: a new state. */
  readonly state?: MemoryState;
}

const OPTION_NAMES: Readonly<Record<keyof MemoryStoreOptions, true>> = { state: true, clockOffsetMs: true };

/**
 * Creates a store in memory, for tests and development. Its data are lost with the process (durability `process`),
 * and it has no transactions.
 *
 * A receiver accepts it only with `allowLoopback` or `durability: { require: 'process' }`, and never if `NODE_ENV`
 * is `production`.
 * @throws ConfigError for an unknown option.
 * @example
 * ```ts
 * import { memoryStore } from 'proto-webhooks/memory';
 *
 * const store = memoryStore();
 * await store.open();
 * console.log(await store.durability()); // process
 * ```
 */
export function memoryStore(
  options: MemoryStoreOptions = {},
): Store & Required<Pick<Store, typeof Symbol.asyncDispose>> {
  requireOptions('memoryStore', options, OPTION_NAMES);
  const { clockOffsetMs = () => 0 } = options;
  const state = stateOf(options);
  const rows = memoryRows(state);
  const watch = stepWatch();
  // Closing only makes later calls fail. The rows survive, as in every store.
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
  // Each step runs to its end without yielding. So steps never overlap, even the steps of several stores on one state.
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

/** The cast is safe, because `createMemoryState` made every state. */
const stateOf = ({ state = createMemoryState() }: MemoryStoreOptions): State => state as State;
