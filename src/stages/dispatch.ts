import type { Logger } from '../alarms.ts';
import type { Config } from '../config/resolve.ts';
import { Fault } from '../errors.ts';
import type { Event } from '../events/event.ts';
import type { HandlerContext } from '../options.ts';
import type { CompleteRequest, Store } from '../stores/contract.ts';
import { eventToHandle, handlerFor, type HandleContext } from './handle.ts';
import { keepLease, type LeaseKeeper } from './lease.ts';
import { runTransaction, type RunTransaction } from './transaction.ts';
import type { Won } from './won.ts';

/** How a handler's run ended. `lost`: another owner has the event. `abandoned`: `maxRunMs` is over. */
export type RunEnd =
  | { readonly kind: 'returned' }
  | { readonly kind: 'threw'; readonly error: unknown }
  | { readonly kind: 'lost' }
  | { readonly kind: 'abandoned' };

/** A handler's run, under a lease that is being renewed. */
export interface Run {
  readonly won: Won;
  readonly complete: CompleteRequest;
  readonly keeper: LeaseKeeper;
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

/** The handler's work: reads what it is to get, calls it, waits for a transaction that it did not await. */
function work(won: Won, context: DispatchContext, ctx: HandlerContext, transaction: RunTransaction) {
  let handled: Event | undefined;
  async function run(): Promise<RunEnd> {
    try {
      const event = await eventToHandle(won, context);
      handled = event;
      await handlerFor(context.handlers, event)(event as never, ctx);
      await transaction.idle();
      warnOfLostWrites(transaction, ctx);
      return { kind: 'returned' };
    } catch (error) {
      // What the handler threw is what counts.
      await transaction.idle().catch(() => {});
      return { kind: 'threw', error };
    }
  }
  return { ended: run(), event: () => handled };
}

function startRun(won: Won, context: DispatchContext, log: Logger, abort: AbortController): Run {
  const { config, store } = context;
  const { agentUrl: sender } = won.origin;
  const { key } = won;
  const { owner, attempt } = won.lease;
  const { leaseMs, renewMs, maxRunMs, retentionMs } = config;
  const complete: CompleteRequest = { sender, key, owner, retentionMs };
  const keeper = keepLease({
    store,
    sender,
    key,
    owner,
    leaseMs,
    renewMs,
    maxRunMs,
    log,
    closed: context.closed,
  });
  const transaction = runTransaction(store, complete);
  const ctx: HandlerContext = {
    deliveryId: won.deliveryId,
    attempt,
    signal: abort.signal,
    sender,
    log,
    transaction: transaction.run,
  };
  const { ended, event } = work(won, context, ctx, transaction);
  const given = keeper.ended.then((kind): RunEnd => {
    abort.abort(new Fault(kind === 'lost' ? 'lease_lost' : 'handler_timeout', 'the lease is over'));
    return { kind };
  });
  const finished = Promise.race([ended, given]);
  return { won, complete, keeper, event, signal: abort.signal, committed: transaction.committed, finished };
}

/**
 * Runs the handler until it settles or its deadline is over, whichever comes first.
 * @param abort the handler's signal, for a worker that has to stop.
 */
export async function dispatch(
  won: Won,
  context: DispatchContext,
  log: Logger,
  abort: AbortController = new AbortController(),
): Promise<Dispatched> {
  const { handlerDeadlineMs } = context.config;
  const run = startRun(won, context, log, abort);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const deadline = new Promise<Dispatched['end']>((resolve) => {
    timer = setTimeout(() => {
      abort.abort(new Fault('handler_timeout', `the handler ran over ${handlerDeadlineMs} ms`));
      resolve({ kind: 'overrun' });
    }, handlerDeadlineMs);
  });
  const end = await Promise.race([run.finished, deadline]);
  clearTimeout(timer);
  return { kind: 'dispatched', run, end };
}
