import type { Logger } from '../alarms.ts';
import type { Config } from '../config/resolve.ts';
import type { Fault } from '../errors.ts';
import type { Event } from '../events/event.ts';
import type { Instruments } from '../instruments.ts';
import type { HandlerContext } from '../options.ts';
import type { CompleteRequest, Store } from '../stores/contract.ts';
import { eventToHandle, handlerFor, type HandleContext } from './handle.ts';
import {
  isCommitted,
  newTransaction,
  settledTransaction,
  transact,
  type RunLimits,
  type RunTransaction,
} from './transaction.ts';
import type { Running } from './running.ts';
import type { Turns } from './turns.ts';
import { watchRun, type Overrun, type RunEnd } from './watch.ts';
import type { Started, Won } from './won.ts';

/** A handler's run, under a lease that is being renewed. */
export interface Run {
  readonly won: Won;
  readonly complete: CompleteRequest;
  /** Of the handler's signal. */
  readonly abort: AbortController;
  readonly transaction: RunTransaction;
  /** As the handler gets it, once it was read. */
  event: Event | undefined;
  /** When it began: on the clock of `performance.now()`, and on the receiver's, Unix ms. */
  readonly began: number;
  readonly beganAt: number;
}

/** A run that ended, or still goes on past its deadline. */
export interface Dispatched {
  readonly kind: 'dispatched';
  readonly run: Run;
  readonly end: RunEnd | Overrun;
  /** It is completed, failed or nobody's: its lease is renewed no more. To be called once. */
  readonly stop: () => void;
}

export interface DispatchContext extends HandleContext {
  readonly config: Config;
  readonly store: Store;
  readonly turns: Turns;
  readonly instruments: Pick<Instruments, 'handler'>;
  readonly running: Running;
  /** Receiver's clock, Unix ms. */
  readonly now: () => number;
  /** Aborts when the receiver has stopped. */
  readonly closed: AbortSignal;
}

/** A transaction that was neither awaited nor noticed leaves its writes out of an event that is done. */
function warnOfLostWrites(transaction: RunTransaction, { log }: HandlerContext): void {
  const { failure } = transaction;
  if (!failure || isCommitted(transaction)) return;
  log.error(
    { err: failure.error },
    'ctx.transaction failed, and the handler returned all the same: the event is done without those writes. Await ctx.transaction and let what it throws through.',
  );
}

const RETURNED: RunEnd = { kind: 'returned' };

/**
 * The handler's work: reads what it is to get, calls it, waits for a transaction that it did not await. Never rejects.
 * @param end told how it ended: a promise of it would be one more for each delivery.
 */
async function work(
  run: Run,
  context: DispatchContext,
  ctx: HandlerContext,
  end: (end: RunEnd) => void,
): Promise<void> {
  const { won, transaction } = run;
  try {
    const made = eventToHandle(won, context);
    const event = made instanceof Promise ? await made : made;
    run.event = event;
    const own = handlerFor(context.handlers, event);
    const { handler } = context.instruments;
    await (handler ? handler(won, event, () => own(event as never, ctx)) : own(event as never, ctx));
    const underWay = settledTransaction(transaction);
    if (underWay) await underWay;
    warnOfLostWrites(transaction, ctx);
    end(RETURNED);
  } catch (error) {
    // What the handler threw is what counts.
    await settledTransaction(transaction)?.catch(() => {});
    end({ kind: 'threw', error });
  }
}

function handlerContext({ won, complete, abort, transaction }: Run, log: Logger): HandlerContext {
  return {
    deliveryId: won.deliveryId,
    attempt: won.lease.attempt,
    sender: complete.sender,
    log,
    signal: abort.signal,
    transaction: (fn) => transact(transaction, fn),
  };
}

/** Whoever gives a lease up, and who is told of it. */
interface GivingUp {
  readonly givenUp: (why: Fault) => void;
  readonly onGivenUp: RunLimits['onGivenUp'];
}

function givingUp(): GivingUp {
  let over: Fault | undefined;
  let listener: ((why: Fault) => void) | undefined;
  return {
    givenUp(why) {
      over = why;
      listener?.(why);
    },
    onGivenUp(told) {
      listener = told;
      if (over) told(over);
    },
  };
}

/**
 * Runs the handler until it settles or its deadline is over, whichever comes first.
 * @param abort the handler's signal, for a worker that has to stop.
 */
export function dispatch(
  { won, over }: Started,
  context: DispatchContext,
  log: Logger,
  abort: AbortController = new AbortController(),
): Promise<Dispatched> {
  const { config, store, closed, turns, running } = context;
  const { leaseMs, renewMs, maxRunMs, retentionMs, handlerDeadlineMs } = config;
  const began = performance.now();
  const { agentUrl: sender } = won.origin;
  const { key } = won;
  const { owner } = won.lease;
  const complete: CompleteRequest = { sender, key, owner, retentionMs };
  const { givenUp, onGivenUp } = givingUp();
  const onLateUse = (error: Error): void =>
    log.error(
      { err: error, sender, key },
      'a query came after its ctx.transaction had ended, and was refused',
    );
  const transaction = newTransaction(store, { ...complete, leaseMs, onLateUse }, { onGivenUp, closed });
  const run: Run = { won, complete, abort, transaction, event: undefined, began, beganAt: context.now() };
  const { beat } = running;
  const lease = { store, sender, key, owner, leaseMs, renewMs, maxRunMs, log, closed, beat };
  return new Promise((resolve) => {
    const watch = watchRun(turns, {
      lease,
      began,
      abort,
      handlerDeadlineMs,
      givenUp,
      tell: (end) => resolve({ kind: 'dispatched', run, end, stop }),
    });
    const stop = (): void => {
      watch.stop();
      over();
    };
    void work(run, context, handlerContext(run, log), (end) => {
      watch.ended(end);
      over();
    });
  });
}
