import type { Logger, RaiseAlarm } from '../alarms.ts';
import type { Config } from '../config/resolve.ts';
import { Fault } from '../errors.ts';
import type { Event, EventWarning, ResultSchemas } from '../events/event.ts';
import { parseResult } from '../events/index.ts';
import { eventWarning } from '../events/warnings.ts';
import type { Handler, HandlerContext, Handlers } from '../options.ts';
import type { CompleteRequest, Store } from '../stores/contract.ts';
import type { Won } from './admit.ts';
import { announceEvent } from './announce.ts';
import { keepLease, type LeaseKeeper } from './lease.ts';
import { readFrom, type ReadContext } from './read.ts';
import { runTransaction } from './transaction.ts';

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
  /** The event as the handler gets it. */
  readonly event: () => Event;
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

export interface DispatchContext extends ReadContext {
  readonly config: Config;
  readonly store: Store;
  readonly handlers: Handlers;
  readonly resultSchemas: ResultSchemas | undefined;
  /** Has the delivery's id and sender bound to it. */
  readonly log: Logger;
  readonly deliveryId: string;
  readonly raiseAlarm: RaiseAlarm;
}

/** The stored first copy where the payload changed, with what only the store knows. */
async function eventToHandle(won: Won, context: DispatchContext): Promise<Event> {
  const { win } = won;
  const first = win.body ? firstCopy(won, win.body, context) : won.event;
  const warnings: EventWarning[] = [...first.warnings];
  const terminal = won.claim.task?.terminal === true;
  if (win.afterTerminal && !terminal) {
    warnings.push(eventWarning('after_terminal'));
  }
  const event: Event = { ...first, reemission: win.reemission, warnings };
  announceEvent(event, win.afterTerminal && terminal, context.raiseAlarm);
  return context.resultSchemas ? parseResult(event, context.resultSchemas) : event;
}

function firstCopy(won: Won, body: Uint8Array, context: DispatchContext): Event {
  const reading = readFrom(won.read.identity, body, context);
  if (reading.ok) return reading.event;
  throw new Fault('misconfigured', `the stored first copy cannot be read any more: ${reading.detail}`);
}

function handlerFor(handlers: Handlers, event: Event): Handler<never> {
  if (event.kind === 'task') return handlers[event.status] ?? handlers.other;
  return event.kind === 'delivery-report' ? (handlers.deliveryReport ?? handlers.other) : handlers.other;
}

function startRun(won: Won, context: DispatchContext, abort: AbortController): Run {
  const { config, store, log } = context;
  const sender = won.read.identity.sender.agentUrl;
  const { owner, attempt } = won.win.lease;
  const { key } = won.claim;
  const complete: CompleteRequest = { sender, key, owner, retentionMs: config.retentionMs };
  const { leaseMs, renewMs, maxRunMs } = config;
  const keeper = keepLease({ store, sender, key, owner, leaseMs, renewMs, maxRunMs, log });
  const transaction = runTransaction(store, complete);
  let handled = won.event;
  const ctx: HandlerContext = {
    deliveryId: context.deliveryId,
    attempt,
    signal: abort.signal,
    sender,
    log,
    transaction: transaction.run,
  };
  async function run(): Promise<RunEnd> {
    try {
      handled = await eventToHandle(won, context);
      await handlerFor(context.handlers, handled)(handled as never, ctx);
      await transaction.idle();
      return { kind: 'returned' };
    } catch (error) {
      await transaction.idle();
      return { kind: 'threw', error };
    }
  }
  const given = keeper.ended.then((kind): RunEnd => {
    abort.abort(new Fault(kind === 'lost' ? 'lease_lost' : 'handler_timeout', 'the lease is over'));
    return { kind };
  });
  return {
    won,
    complete,
    keeper,
    event: () => handled,
    committed: transaction.committed,
    finished: Promise.race([run(), given]),
  };
}

/** Runs the handler until it settles or its deadline is over, whichever comes first. */
export async function dispatch(won: Won, context: DispatchContext): Promise<Dispatched> {
  const abort = new AbortController();
  const run = startRun(won, context, abort);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const deadline = new Promise<Dispatched['end']>((resolve) => {
    timer = setTimeout(() => {
      abort.abort(
        new Fault('handler_timeout', `the handler ran over ${context.config.handlerDeadlineMs} ms`),
      );
      resolve({ kind: 'overrun' });
    }, context.config.handlerDeadlineMs);
  });
  const end = await Promise.race([run.finished, deadline]);
  clearTimeout(timer);
  return { kind: 'dispatched', run, end };
}
