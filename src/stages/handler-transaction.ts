// `ctx.transaction`: commits the handler's writes and the event's completion together, once per run
// (admission.md §2.16).
// Made by `dispatch` for each run; `settle` asks whether it committed.

import { ConfigError, Fault } from '../shared/errors.ts';
import type { SafeLogger } from '../shared/logging.ts';
import type { CompleteRequest, Store, TransactionRequest } from '../stores/store.ts';

/** The state of a run's transactions. A transaction may begin only in `idle`. */
type Phase = 'idle' | 'under way' | 'committed' | 'settled';

const REFUSED: Readonly<Record<Exclude<Phase, 'idle'>, string>> = {
  'under way':
    'ctx.transaction: another transaction of this event is open. It would wait for this one, or commit the event without it. Do all writes in one call.',
  committed:
    'ctx.transaction: the transaction of this event has already committed. Do all writes in one call.',
  settled: 'ctx.transaction: the handler has returned or thrown. Await ctx.transaction in it.',
};

function refuseWhere(
  store: Store,
  phase: Phase,
): asserts store is Store & Required<Pick<Store, 'transaction'>> {
  if (!store.transaction) {
    throw new ConfigError(
      `ctx.transaction: the ${store.name} store has no transactions. Use the SQLite, Postgres or MySQL store, or make the effect idempotent by ctx.deliveryId.`,
    );
  }
  if (phase !== 'idle') throw new ConfigError(REFUSED[phase]);
}

/** Runs `work` with a signal that aborts when the run is over, so that work that never ends keeps no connection. */
async function withSignal<T>(of: RunTransaction, work: (over: AbortSignal) => Promise<T>): Promise<T> {
  const { closed } = of;
  const over = new AbortController();
  const close = (): void => over.abort(new Fault('shutting_down', 'the receiver was stopped'));
  if (closed.aborted) close();
  closed.addEventListener('abort', close);
  of.onGivenUp = (why) => over.abort(why);
  if (of.givenUp) over.abort(of.givenUp);
  try {
    return await work(over.signal);
  } finally {
    closed.removeEventListener('abort', close);
  }
}

/**
 * The state of `ctx.transaction` in one run. At most one transaction commits; its commit also completes the event.
 */
export interface RunTransaction {
  readonly store: Store;
  readonly complete: CompleteRequest;
  readonly leaseMs: number;
  /** Aborts when the receiver has stopped. */
  readonly closed: AbortSignal;
  readonly log: SafeLogger;
  phase: Phase;
  /** The error of the last transaction that did not commit. */
  failure: { readonly error: unknown } | undefined;
  /**
   * `current`: the transaction that began last. `last`: the transaction that was requested last, even if it was refused
   * because another was open.
   */
  current: Promise<unknown> | undefined;
  last: Promise<unknown> | undefined;
  /**
   * The reason why the run was ended from outside, e.g. that its lease was lost. An open transaction is then ended too.
   * The handler's deadline does not set `givenUp`, so a transaction may still commit after the deadline.
   */
  givenUp: Fault | undefined;
  /** Called when `givenUp` is set, to end the open transaction. */
  onGivenUp: ((why: Fault) => void) | undefined;
}

export function newTransaction(
  of: Pick<RunTransaction, 'store' | 'complete' | 'leaseMs' | 'closed' | 'log'>,
): RunTransaction {
  return {
    ...of,
    phase: 'idle',
    failure: undefined,
    current: undefined,
    last: undefined,
    givenUp: undefined,
    onGivenUp: undefined,
  };
}

/** Ends the handler's open transaction, because the lease is over. */
export function giveUp(of: RunTransaction, why: Fault): void {
  of.givenUp = why;
  of.onGivenUp?.(why);
}

function requestOf({ complete, leaseMs, log }: RunTransaction): TransactionRequest {
  const { sender, key } = complete;
  const onLateUse = (error: Error): void =>
    log.error(
      { err: error, sender, key },
      'a query came after its ctx.transaction had ended, and was refused',
    );
  return { ...complete, leaseMs, onLateUse };
}

async function commit<T>(of: RunTransaction, fn: (tx: unknown) => T | Promise<T>): Promise<T> {
  const { store } = of;
  refuseWhere(store, of.phase);
  of.phase = 'under way';
  try {
    const value = await withSignal(of, (over) => store.transaction(requestOf(of), fn, over));
    of.phase = 'committed';
    return value;
  } catch (error) {
    of.phase = 'idle';
    throw error;
  }
}

/**
 * Runs `fn` in a transaction that also completes the event.
 * @throws ConfigError (rejects) if the store has no transactions, or if no transaction may begin now.
 */
export function transact<T>(of: RunTransaction, fn: (tx: unknown) => T | Promise<T>): Promise<T> {
  const begins = of.phase === 'idle';
  const next = commit(of, fn);
  if (begins) of.current = next;
  of.last = next;
  // Prevents an unhandled rejection if the handler does not await the transaction. `settledTransaction` then awaits it,
  // or the kept failure is logged.
  next.catch((error: unknown) => {
    of.failure = { error };
  });
  return next;
}

/** True if a transaction has committed the handler's writes and the event's completion. */
export function isCommitted({ phase }: RunTransaction): boolean {
  return phase === 'committed';
}

/**
 * Allows no further transaction after the handler settled, and waits for an open one that the handler may not have
 * awaited. Rejects with the error of that transaction, because no other code has seen the error.
 */
export function settledTransaction(of: RunTransaction): Promise<void> | undefined {
  if (of.phase === 'under way') return whenOver(of);
  if (of.phase === 'idle') of.phase = 'settled';
  return undefined;
}

async function whenOver(of: RunTransaction): Promise<void> {
  const unseen = await Promise.allSettled([of.current, of.last]);
  if (of.phase === 'idle') of.phase = 'settled';
  for (const result of unseen) if (result.status === 'rejected') throw result.reason;
}
