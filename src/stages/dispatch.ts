import type { Logger } from '../alarms.ts';
import type { Config } from '../config/resolve.ts';
import type { Fault } from '../errors.ts';
import type { Event } from '../events/event.ts';
import type { HandlerContext } from '../options.ts';
import type { CompleteRequest, Store } from '../stores/contract.ts';
import { eventToHandle, handlerFor, type HandleContext } from './handle.ts';
import { runTransaction, type RunTransaction } from './transaction.ts';
import type { Turns } from './turns.ts';
import { watchRun, type RunEnd } from './watch.ts';
import type { Won } from './won.ts';

/** A handler's run, under a lease that is being renewed. */
export interface Run {
  readonly won: Won;
  readonly complete: CompleteRequest;
  /** It is completed, failed or nobody's: its lease is renewed no more. */
  readonly stop: () => void;
  /** The event as the handler gets it, once it was read. */
  readonly event: () => Event | undefined;
  /** The handler's: why it aborted, where it did. */
  readonly signal: AbortSignal;
  /** The handler's writes and the completion are committed. */
  readonly committed: () => boolean;
  /** Never rejects. */
  readonly finished: Promise<RunEnd>;
}

/** A run that ended, or still goes on past its deadline (`overrun`). */
export interface Dispatched {
  readonly kind: 'dispatched';
  readonly run: Run;
  readonly end: RunEnd | { readonly kind: 'overrun' };
}

export interface DispatchContext extends HandleContext {
  readonly config: Config;
  readonly store: Store;
  readonly turns: Turns;
  /** Aborts when the receiver has stopped. */
  readonly closed: AbortSignal;
}

/** A transaction that was neither awaited nor noticed leaves its writes out of an event that is done. */
function warnOfLostWrites(transaction: RunTransaction, { log }: HandlerContext): void {
  const failure = transaction.failure();
  if (!failure || transaction.committed()) return;
  log.error(
    { err: failure.error },
    'ctx.transaction failed, and the handler returned all the same: the event is done without those writes. Await ctx.transaction and let what it throws through.',
  );
}

const RETURNED: RunEnd = { kind: 'returned' };
const OVERRUN = { kind: 'overrun' } as const;

/** The handler's work: reads what it is to get, calls it, waits for a transaction that it did not await. */
async function work(
  won: Won,
  context: DispatchContext,
  ctx: HandlerContext,
  transaction: RunTransaction,
  seen: (event: Event) => void,
): Promise<RunEnd> {
  try {
    const made = eventToHandle(won, context);
    const event = made instanceof Promise ? await made : made;
    seen(event);
    await handlerFor(context.handlers, event)(event as never, ctx);
    await transaction.idle();
    warnOfLostWrites(transaction, ctx);
    return RETURNED;
  } catch (error) {
    // What the handler threw is what counts.
    await transaction.idle().catch(() => {});
    return { kind: 'threw', error };
  }
}

function handlerContext(
  { won, complete }: Pick<Run, 'won' | 'complete'>,
  signal: AbortSignal,
  run: RunTransaction['run'],
  log: Logger,
): HandlerContext {
  const { sender } = complete;
  return { deliveryId: won.deliveryId, attempt: won.lease.attempt, signal, sender, log, transaction: run };
}

/**
 * Runs the handler until it settles or its deadline is over, whichever comes first.
 * @param abort the handler's signal, for a worker that has to stop.
 */
export function dispatch(
  won: Won,
  context: DispatchContext,
  log: Logger,
  abort: AbortController = new AbortController(),
): Promise<Dispatched> {
  const { config, store, closed, turns } = context;
  const { leaseMs, renewMs, maxRunMs, retentionMs, handlerDeadlineMs } = config;
  const heldSince = performance.now();
  const { origin, key } = won;
  const { agentUrl: sender } = origin;
  const { owner } = won.lease;
  const complete: CompleteRequest = { sender, key, owner, retentionMs };
  let givenUp: (why: Fault) => void = () => {};
  const over = new Promise<Fault>((resolve) => {
    givenUp = resolve;
  });
  const transaction = runTransaction(store, complete, { ended: over, closed });
  const { signal } = abort;
  const ctx = handlerContext({ won, complete }, signal, transaction.run, log);
  let event: Event | undefined;
  const ended = work(won, context, ctx, transaction, (handled) => {
    event = handled;
  });
  return new Promise((resolve) => {
    const watch = watchRun(ended, turns, {
      lease: { store, sender, key, owner, leaseMs, renewMs, maxRunMs, log, closed, heldSince },
      abort,
      handlerDeadlineMs,
      givenUp,
      overrun: () => resolve({ kind: 'dispatched', run, end: OVERRUN }),
    });
    const { finished, stop } = watch;
    const committed = transaction.committed;
    const run: Run = { won, complete, stop, event: () => event, signal, committed, finished };
    void finished.then((end) => resolve({ kind: 'dispatched', run, end }));
  });
}
