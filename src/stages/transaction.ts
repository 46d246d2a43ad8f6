import { ConfigError, Fault } from '../errors.ts';
import type { CompleteRequest, Store } from '../stores/contract.ts';

/** `ctx.transaction` of one run: at most one commit, which is the event's completion too. */
export interface RunTransaction {
  readonly run: <T>(fn: (tx: unknown) => T | Promise<T>) => Promise<T>;
  /** The handler's writes and the completion are committed. */
  readonly committed: () => boolean;
  /** What the last one that did not commit threw. */
  readonly failure: () => { readonly error: unknown } | undefined;
  /**
   * For a handler that has settled: resolves when no transaction is under way (it may not have awaited one), and no
   * other begins. Rejects with what such a one threw: nobody else has seen it.
   */
  readonly idle: () => Promise<void>;
}

/** What ends a run from outside: then its transaction is given up. Its deadline does not: it may commit late. */
export interface RunLimits {
  /** Resolves when the lease is given up. Never rejects. */
  readonly ended: Promise<Fault>;
  /** Aborts when the receiver has stopped. */
  readonly closed: AbortSignal;
}

/** In which a run's transactions are. `idle`: one may begin. */
type Phase = 'idle' | 'under way' | 'committed' | 'settled';

const REFUSED: Readonly<Record<Exclude<Phase, 'idle'>, string>> = {
  'under way':
    'ctx.transaction: another one of this event is under way, and would wait for this one, or commit the event without it. Do all of the writes in one call.',
  committed:
    'ctx.transaction: it committed already, and the event with it. Do all of the writes in one call.',
  settled: 'ctx.transaction: the handler has returned or thrown. Await ctx.transaction in it.',
};

function refuseWhere(
  store: Store,
  phase: Phase,
): asserts store is Store & Required<Pick<Store, 'transaction'>> {
  if (!store.transaction) {
    throw new ConfigError(
      `ctx.transaction: the ${store.name} store has no transactions. Use the SQLite or Postgres store, or make the effect idempotent by ctx.deliveryId.`,
    );
  }
  if (phase !== 'idle') throw new ConfigError(REFUSED[phase]);
}

/** Runs `work` with a signal that aborts when the run is over: a function that never ends must not keep a connection. */
async function withSignal<T>(
  { ended, closed }: RunLimits,
  work: (over: AbortSignal) => Promise<T>,
): Promise<T> {
  const over = new AbortController();
  const close = (): void => over.abort(new Fault('shutting_down', 'the receiver was stopped'));
  if (closed.aborted) close();
  closed.addEventListener('abort', close);
  void ended.then((why) => over.abort(why));
  try {
    return await work(over.signal);
  } finally {
    closed.removeEventListener('abort', close);
  }
}

interface Commits {
  readonly phase: () => Phase;
  /** The handler has settled: no other begins. */
  readonly end: () => void;
  /** @throws ConfigError where none may begin. */
  readonly commit: <T>(fn: (tx: unknown) => T | Promise<T>) => Promise<T>;
}

function commitsOf(store: Store, complete: CompleteRequest, limits: RunLimits): Commits {
  let phase: Phase = 'idle';
  return {
    phase: () => phase,
    end: () => {
      if (phase === 'idle') phase = 'settled';
    },
    async commit(fn) {
      refuseWhere(store, phase);
      phase = 'under way';
      try {
        const value = await withSignal(limits, (over) => store.transaction(complete, fn, over));
        phase = 'committed';
        return value;
      } catch (error) {
        phase = 'idle';
        throw error;
      }
    },
  };
}

export function runTransaction(store: Store, complete: CompleteRequest, limits: RunLimits): RunTransaction {
  const commits = commitsOf(store, complete, limits);
  let failure: { readonly error: unknown } | undefined;
  let current: Promise<unknown> = Promise.resolve();
  let last: Promise<unknown> = Promise.resolve();
  return {
    committed: () => commits.phase() === 'committed',
    failure: () => failure,
    run(fn) {
      const begins = commits.phase() === 'idle';
      const next = commits.commit(fn);
      if (begins) current = next;
      last = next;
      // Where the handler does not await it, `idle` does, or the log says so.
      next.catch((error: unknown) => {
        failure = { error };
      });
      return next;
    },
    idle: async () => {
      const unseen = commits.phase() === 'under way' ? await Promise.allSettled([current, last]) : [];
      commits.end();
      for (const result of unseen) if (result.status === 'rejected') throw result.reason;
    },
  };
}
