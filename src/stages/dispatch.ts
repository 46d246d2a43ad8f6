// Runs the handler of an admitted event under its lease, until it settles or its deadline is over
// (admission.md §4.8).
// Called by the receiver (mode `inline`), the worker and redrives; `settle` takes what it returns.

import type { RaiseAlarm } from '../shared/alarms.ts';
import type { SafeLogger } from '../shared/logging.ts';
import type { Config } from '../config/resolve-options.ts';
import type { WarningCode } from '../shared/codes.ts';
import type { DeliveryReportEvent, Event, OtherEvent, ResultSchemas } from '../events/event.ts';
import { withMembers } from '../events/event-members.ts';
import { notificationFamily } from '../events/notification-family.ts';
import type { EventRegistrations } from '../events/event-registration.ts';
import type { Instruments } from '../receiver/instruments.ts';
import type { Handler, HandlerContext, Handlers, NotificationHandlers } from '../config/receiver-options.ts';
import type { CompleteRequest, Store } from '../stores/store.ts';
import { announceEvent } from './announce.ts';
import type { ReadContext } from './read.ts';
import type { Running } from './running.ts';
import {
  giveUp,
  isCommitted,
  newTransaction,
  type RunTransaction,
  settledTransaction,
  transact,
} from './handler-transaction.ts';
import { type DeadlineExceeded, endWatch, type RunEnd, stopWatch, watchRun } from './lease.ts';
import type { AdmittedEvent, FirstCopy, Started } from './admitted-event.ts';
import { isThenable } from '../shared/realms.ts';
import { once } from '../shared/single-flight.ts';
import { reportWindows } from './reported-windows.ts';
import { notificationState } from './notified-states.ts';

/** Resolves to the chunk (file of the bundle) with the schemas, which a ready receiver has loaded. It is imported once. */
const loadReading = once(() => import('../events/reading.ts'));

interface HandleContext extends ReadContext {
  readonly handlers: Handlers;
  readonly resultSchemas: ResultSchemas | undefined;
  readonly registrations: EventRegistrations | undefined;
  readonly raiseAlarm: RaiseAlarm;
}

/** Adds warnings to an event. Their texts come from the chunk with the schemas. */
async function warned(event: Event, codes: readonly WarningCode[]): Promise<Event> {
  const { eventWarning } = await loadReading();
  return withMembers(event, { warnings: [...event.warnings, ...codes.map((code) => eventWarning(code))] });
}

/**
 * Returns the event for its handler: the first copy, with facts from the store and registrations. Rejects if
 * registrations cannot be looked up; no handler has run then.
 */
function eventToHandle(won: AdmittedEvent, context: HandleContext): Event | Promise<Event> {
  const { reemission, afterTerminal, afterFinal } = won.flags;
  const copy = won.firstCopy();
  const { registrations, resultSchemas, raiseAlarm } = context;
  if (reemission || afterTerminal || afterFinal || registrations || resultSchemas)
    return eventWithMore(won, copy, context);
  announceEvent(copy.event, raiseAlarm);
  return copy.event;
}

/** Converts the store's flags about an event to codes of warnings. */
function codesOf(
  { afterTerminal, afterFinal }: AdmittedEvent['flags'],
  { source }: Event,
  terminal: boolean,
): WarningCode[] {
  const codes: WarningCode[] = [];
  if (afterTerminal) codes.push(terminal ? 'second_terminal_status' : 'after_terminal');
  // A pulled report (fetched from the seller) normally comes after the final one (owed.md §7.5), so it gets no warning.
  if (afterFinal && source !== 'pull') codes.push('report_after_final');
  return codes;
}

async function eventWithMore(
  { flags }: AdmittedEvent,
  { event: first, terminal }: FirstCopy,
  { registrations, resultSchemas, raiseAlarm }: HandleContext,
): Promise<Event> {
  const { reemission } = flags;
  const codes = codesOf(flags, first, terminal);
  const { registration, warnings = [] } = (await registrations?.ofEvent(first)) ?? {};
  codes.push(...warnings);
  const subscribed = await subscriptionOf(first, registrations);
  const known: Event = withMembers(first, {
    reemission,
    ...(registration && { registration }),
    ...subscribed,
    ...accountOf(first, flags),
  });
  const event = codes.length === 0 ? known : await warned(known, codes);
  announceEvent(event, raiseAlarm, first);
  if (!resultSchemas) return event;
  const { parseResult } = await loadReading();
  return parseResult(event, resultSchemas);
}

/** Returns members of an event that only the store knows: the windows of a report, or the state of a notification. */
function accountOf(
  event: Event,
  { windows, claimedState }: AdmittedEvent['flags'],
): Pick<DeliveryReportEvent, 'windows'> | Pick<OtherEvent, 'state'> {
  if (windows && event.kind === 'delivery-report') return { windows: reportWindows(windows, event.report) };
  return claimedState && event.kind === 'other' ? { state: notificationState(claimedState) } : {};
}

/**
 * Returns the subscription that the event names, with the owner's `ref` if registrations know it (subscriptions.md
 * §5.1).
 */
async function subscriptionOf(
  { sender, subscription }: Event,
  registrations: EventRegistrations | undefined,
): Promise<Pick<Event, 'subscription'>> {
  if (!subscription) return {};
  const ref = await registrations?.subscriptionRef?.(sender, subscription.subscriberId);
  return ref === undefined ? {} : { subscription: { ...subscription, ref } };
}

/**
 * Returns the owner's handler for a notification (verification.md §7.38), by its exact name or else by its wholesale
 * feed. Undefined if there is no such handler, or if the payload does not fit its family.
 */
function notificationHandler(
  notifications: NotificationHandlers,
  { family, warnings }: OtherEvent,
): Handler<never> | undefined {
  if (family === undefined || warnings.some(({ code }) => code === 'invalid_notification')) return undefined;
  // `hasOwn` excludes inherited members, e.g. for a family called `constructor`.
  const name = [family, notificationFamily(family)].find((one) => Object.hasOwn(notifications, one));
  return name === undefined ? undefined : notifications[name];
}

/**
 * For each kind of event, the function that finds the owner's handler. The table's types ensure that the handler takes
 * events of that kind.
 */
const HANDLER: {
  readonly [K in Event['kind']]: (
    handlers: Handlers,
    event: Extract<Event, { kind: K }>,
  ) => Handler<never> | undefined;
} = {
  task: (handlers, { status }) => handlers[status],
  'delivery-report': ({ deliveryReport }) => deliveryReport,
  other: ({ notifications }, event) => notifications && notificationHandler(notifications, event),
};

/** Returns the handler for this event or, if the owner gave none, the handler `other`. */
function handlerFor(handlers: Handlers, event: Event): Handler<never> {
  return HANDLER[event.kind](handlers, event as never) ?? handlers.other;
}

/** A run of a handler. Its lease is renewed until the run's end is recorded or the lease is over. */
export interface HandledRun {
  readonly won: AdmittedEvent;
  readonly complete: CompleteRequest;
  /** Aborts the handler's signal. */
  readonly abort: AbortController;
  readonly transaction: RunTransaction;
  /** The event that the handler receives. Undefined until it was read. */
  event: Event | undefined;
  /** Start of the run, as `performance.now()`. `beganAt` is the same time on the receiver's clock in Unix ms. */
  readonly began: number;
  readonly beganAt: number;
}

/** A run that has ended, or that still goes on after its deadline. */
export interface Dispatched {
  readonly kind: 'dispatched';
  readonly run: HandledRun;
  readonly end: RunEnd | DeadlineExceeded;
  /**
   * Stops renewing the lease. To be called once, when the run was completed, was recorded as failed, or was given up.
   */
  readonly stop: () => void;
}

interface DispatchContext extends HandleContext {
  readonly config: Config;
  readonly store: Store;
  readonly instruments: Pick<Instruments, 'handler'>;
  readonly running: Running;
  /** Returns the time of the receiver's clock, Unix ms. */
  readonly now: () => number;
  /** Returns the signal that aborts when the receiver has stopped. */
  readonly closed: () => AbortSignal;
}

/**
 * Logs an error if the handler returned although its transaction had failed: the event is then done without those
 * writes.
 */
function warnOfLostWrites(transaction: RunTransaction, { log }: HandlerContext): void {
  const { failure } = transaction;
  if (!failure || isCommitted(transaction)) return;
  log.error(
    { err: failure.error },
    'ctx.transaction failed but the handler returned: the event is done without those writes. Await ctx.transaction, and do not catch its error.',
  );
}

const RETURNED: RunEnd = { kind: 'returned' };

/**
 * Reads the event, calls the handler, and waits for a transaction that the handler did not await. Never rejects.
 * @param end called with the result. A callback saves one promise per delivery.
 */
async function work(
  run: HandledRun,
  context: DispatchContext,
  ctx: HandlerContext,
  end: (end: RunEnd) => void,
): Promise<void> {
  const { won, transaction } = run;
  try {
    const read = eventToHandle(won, context);
    const event = isThenable(read) ? await read : read;
    run.event = event;
    const own = handlerFor(context.handlers, event);
    const { handler } = context.instruments;
    await (handler ? handler(won, event, () => own(event as never, ctx)) : own(event as never, ctx));
    const underWay = settledTransaction(transaction);
    if (underWay) await underWay;
    warnOfLostWrites(transaction, ctx);
    end(RETURNED);
  } catch (error) {
    // The error of the transaction is ignored, because the handler's own error is reported.
    await settledTransaction(transaction)?.catch(() => {});
    end({ kind: 'threw', error });
  }
}

function handlerContext({ won, complete, abort, transaction }: HandledRun, log: SafeLogger): HandlerContext {
  const { run, chargedAttempts } = won.lease;
  return {
    deliveryId: won.deliveryId,
    run,
    chargedAttempts,
    sender: complete.sender,
    ...(won.url !== undefined && { url: won.url }),
    log: log.own,
    signal: abort.signal,
    transaction: (fn) => transact(transaction, fn),
  };
}

/**
 * Runs the handler until it settles or its deadline has passed, whichever is first.
 * @param abort controls the handler's signal, for a worker that has to stop.
 */
export function dispatch(
  { won, over }: Started,
  context: DispatchContext,
  log: SafeLogger,
  abort: AbortController = new AbortController(),
): Promise<Dispatched> {
  const { config, store } = context;
  const { leaseMs, retentionMs } = config;
  const { beat } = context.running;
  const closed = context.closed();
  const began = performance.now();
  const complete: CompleteRequest = {
    sender: won.origin.agentUrl,
    key: won.key,
    owner: won.lease.owner,
    retentionMs,
  };
  const transaction = newTransaction({ store, complete, leaseMs, closed, log });
  const run: HandledRun = {
    won,
    complete,
    abort,
    transaction,
    event: undefined,
    began,
    beganAt: context.now(),
  };
  return new Promise((resolve) => {
    const watch = watchRun({
      store,
      complete,
      config,
      log,
      closed,
      beat,
      began,
      abort,
      givenUp: (why) => giveUp(transaction, why),
      tell: (end) => resolve({ kind: 'dispatched', run, end, stop }),
    });
    const stop = (): void => {
      stopWatch(watch);
      over();
    };
    void work(run, context, handlerContext(run, log), (end) => {
      endWatch(watch, end);
      over();
    });
  });
}
