// `ctx.transaction`: commits the handler's writes and the event's completion together, once per run
// (admission.md §2.16).
// Made by `dispatch` for each run; `settle` asks whether it committed.

import { ConfigError, Fault } from '../shared/errors.ts';
import type { SafeLogger } from '../shared/logging.ts';
import type { CompleteRequest, Store, TransactionRequest } from '../stores/store.ts';

/** The state of a run's transactions. `idle`: one may begin. */
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

/**
 * Runs `work` with a signal that aborts when the run is over, so that a function that never ends holds no
 * connection.
 */
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

/** `ctx.transaction` of one run: at most one commit, which also completes the event. */
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
  /** The open transaction, and the last one that was asked for while it was open. */
  current: Promise<unknown> | undefined;
  last: Promise<unknown> | undefined;
  /**
   * Reason for which the run was ended from outside: that ends its transaction too. A deadline does not, so a
   * transaction may commit late.
   */
  givenUp: Fault | undefined;
  /** Called when `givenUp` is set, for the open transaction. */
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

/** Gives up what the handler has open, because the lease is over. */
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

/** @throws ConfigError (rejects) if the store has no transactions, or none may begin. */
export function transact<T>(of: RunTransaction, fn: (tx: unknown) => T | Promise<T>): Promise<T> {
  const begins = of.phase === 'idle';
  const next = commit(of, fn);
  if (begins) of.current = next;
  of.last = next;
  // If the handler does not await it, `settledTransaction` does, or the log reports the failure.
  next.catch((error: unknown) => {
    of.failure = { error };
  });
  return next;
}

/** True if the handler's writes and the completion are committed. */
export function isCommitted({ phase }: RunTransaction): boolean {
  return phase === 'committed';
}

/**
 * Closes the run's transactions after the handler settled, and waits for an open one, which may not have been
 * awaited. Rejects with the error of such a transaction, because nobody else has seen it.
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
