// Records in the store that a run of an event succeeded or failed, and repeats that until the store has answered
// (admission.md §4).
// Called by the receiver, the worker and redrives with the result of `dispatch`.

import { sleep } from '../shared/time-limits.ts';
import type { RaiseAlarm } from '../shared/alarms.ts';
import type { Config } from '../config/resolve-options.ts';
import { Fault, isGivenBack, isOfKind, isPermanent } from '../shared/errors.ts';
import type { EventRegistrations } from '../events/event-registration.ts';
import { isTerminal } from '../events/status.ts';
import type { SafeLogger, Thinning } from '../shared/logging.ts';
import { type Unavailability, unavailable } from '../shared/outcome.ts';
import type { CompleteResult, FailRequest, FailResult, Store } from '../stores/store.ts';
import { type DeadEvent, raiseDead } from './announce.ts';
import { errorText } from './error-text.ts';
import type { Dispatched, HandledRun } from './dispatch.ts';
import { idsOf, runOf } from './ids.ts';
import type { RunObserver } from './on-handled.ts';
import { isCommitted } from './handler-transaction.ts';
import type { Waiting } from './wait.ts';
import type { DeadlineExceeded, RunEnd } from './lease.ts';
import type { AdmittedEvent } from './admitted-event.ts';
import type { Outages } from '../receiver/outages.ts';

/**
 * Returns the time in whole ms for which workers do not lease an event after run `attempt` (from 1) failed. It is
 * `baseMs` after the first failure and doubles up to `maxMs`. A random part of up to half is subtracted, so that events
 * that failed together do not return together. More is not subtracted: within this time at most one attempt is charged,
 * and replayed bytes cause at most one run. A retry by the seller does not wait for it.
 * @param random in [0, 1).
 */
export function backoffMs(
  attempt: number,
  { baseMs, maxMs }: Pick<Config['retry'], 'baseMs' | 'maxMs'>,
  random: () => number,
): number {
  const longest = Math.min(maxMs, baseMs * 2 ** Math.min(attempt - 1, 40));
  return Math.floor((longest * (1 + random())) / 2);
}

interface SettleContext {
  readonly config: Config;
  readonly store: Store;
  readonly waiting: Waiting;
  readonly raiseAlarm: RaiseAlarm;
  readonly observed: RunObserver;
  readonly registrations: EventRegistrations | undefined;
  /** Limits the logging of handler errors: for each text, a stack is logged once a minute. */
  readonly handlerErrors: Thinning;
  readonly outages: Outages;
  /** Returns the time of the receiver's clock, Unix ms. */
  readonly now: () => number;
  /** Returns a random number in [0, 1). */
  readonly random: () => number;
  /** Returns the signal that aborts when the receiver has stopped, because its store is then closed. */
  readonly closed: () => AbortSignal;
}

/** Facts and functions for one delivery, or one run of a worker. */
export interface SettleDelivery {
  readonly log: SafeLogger;
  /** Keeps the store open until this work, which goes on after the reply, has ended. */
  readonly background: (work: Promise<unknown>) => void;
  /** True for a run of a worker: no sender waits for an answer. */
  readonly isUnattended?: boolean;
  /** Arrival of the delivery or time of the redrive, Unix ms (receiver's clock). Absent for a worker's run. */
  readonly arrivedAt?: number;
}

/** The result of a run: its work is done, or the event is DEAD. */
interface Settled {
  readonly kind: 'settled';
  readonly state: 'applied' | 'dead';
}

interface Settling extends SettleDelivery {
  readonly parts: SettleContext;
  readonly outages: Outages;
  /** Answers the waiting sender while the store is still being retried. A second call does nothing. */
  replyWith: ((error: unknown) => void) | undefined;
  /** Set if the store was asked once to complete the event, and failed with this error. */
  unanswered: { readonly error: unknown } | undefined;
}

const APPLIED: Settled = { kind: 'settled', state: 'applied' };
const DEAD: Settled = { kind: 'settled', state: 'dead' };

/**
 * First and longest pause before an unanswered completion or failure is sent to the store again, in ms. Each pause is 4
 * times the previous pause.
 */
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2_000;
/** Total of the pauses (50, 200 and 800) after which a waiting seller is answered. Ms. */
const PATIENCE_MS = 1_050;

/**
 * Records a completion or failure, and repeats that until the store answers, at most for `maxRunMs`. Otherwise finished
 * work would run again after a store outage. The store recognises a repeated request by the lease's owner. It accepts
 * the request even after the lease has expired, unless another owner has the event by then (admission.md §4.2).
 * Meanwhile the lease is renewed and the event counts as running here.
 */
function persist<T>(operation: () => Promise<T>, context: Settling): Promise<T> {
  return operation().catch((error: unknown) => persistAgain(operation, error, context));
}

async function persistAgain<T>(operation: () => Promise<T>, first: unknown, context: Settling): Promise<T> {
  const { config, closed } = context.parts;
  let error = first;
  let pausedMs = 0;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(4 * pauseMs, LONGEST_PAUSE_MS)) {
    if (!(error instanceof Fault) || error.code !== 'store_unavailable') throw error;
    // The store of a stopped receiver is closed, so a retry is useless.
    if (closed().aborted || pausedMs >= config.maxRunMs) throw error;
    if (pausedMs >= PATIENCE_MS) context.replyWith?.(error);
    pausedMs += pauseMs;
    await sleep(pauseMs);
    try {
      return await operation();
    } catch (again) {
      error = again;
    }
  }
}

async function succeed({ complete }: HandledRun, context: Settling): Promise<Settled | Unavailability> {
  const { store } = context.parts;
  const ask = (): Promise<CompleteResult> => store.complete(complete);
  const { unanswered } = context;
  return completed(await (unanswered ? persistAgain(ask, unanswered.error, context) : persist(ask, context)));
}

function completed(done: CompleteResult): Settled | Unavailability {
  return done === 'lost'
    ? unavailable('lease_lost', 'the lease was over when the handler returned')
    : APPLIED;
}

/**
 * True if a stopping worker aborted the run. The event may then be leased again immediately, and no attempt is charged.
 */
function isInterrupted({ abort: { signal } }: HandledRun): boolean {
  return signal.reason instanceof Fault && signal.reason.code === 'shutting_down';
}

/**
 * Returns the fault if the store caused the failure. Either the event's registration could not be looked up, so no
 * handler ran, or `ctx.transaction` could not begin or commit. No attempt is charged then (admission.md §4.3).
 */
function faultOfStore({ event, transaction }: HandledRun, error: unknown): Fault | undefined {
  const { failure } = transaction;
  if (failure) return isOfKind(failure.error, Fault) ? failure.error : undefined;
  const isAway = event === undefined && isOfKind(error, Fault) && error.code === 'store_unavailable';
  return isAway ? error : undefined;
}

async function failed(run: HandledRun, error: unknown, context: Settling): Promise<Settled | Unavailability> {
  const { won } = run;
  const permanent = won.once || isPermanent(error);
  const interrupted = isInterrupted(run);
  const givenBack = isGivenBack(error);
  const text = errorText(error);
  logFailure(error, text, run, context);
  const fault = faultOfStore(run, error);
  const uncharged = interrupted || givenBack || fault !== undefined;
  if (!uncharged) context.outages.handler(text);
  const end = { permanent, unstarted: uncharged && !permanent, error: text };
  const step = givenBack ? 1 : won.lease.chargedAttempts;
  const result = await failLease(run, end, interrupted ? undefined : step, context);
  if (result === 'lost') return unavailable('lease_lost', 'the lease was over when the handler failed');
  if (result === 'queued') {
    return fault
      ? unavailable(fault.code, text)
      : unavailable('handler_failed', `the handler failed: ${text}`);
  }
  raiseDead(deadEvent(run, text), whyDead(error, won), context.parts.raiseAlarm);
  return DEAD;
}

/** Logs the failure of a handler. An answered delivery also has a log line of its own, with the same text. */
function logFailure(
  error: unknown,
  text: string,
  { won: { lease }, event }: HandledRun,
  { log, parts, isUnattended }: Settling,
): void {
  const fields = { ...idsOf(event), ...runOf(lease) };
  // A handler that gives events back (`GivenBack`) reports the reason itself, so a short line is enough.
  if (isGivenBack(error)) return log.info({ error: text, ...fields }, 'an event was given back');
  const suppressed = parts.handlerErrors(text, parts.now());
  if (suppressed !== undefined) {
    log.error({ err: error, ...fields, ...(suppressed > 0 && { suppressed }) }, 'a handler failed');
  } else if (isUnattended) log.error({ error: text, ...fields }, 'a handler failed');
}

function deadEvent({ complete: { sender, key }, won, event }: HandledRun, lastError: string): DeadEvent {
  const { deliveryId, lease } = won;
  return { sender, key, deliveryId, ...idsOf(event), ...runOf(lease), lastError };
}

/**
 * Records a failed run in the store.
 * @param step number of the failure, from which the back-off is computed; without it, the event is due immediately.
 */
function failLease(
  { complete }: HandledRun,
  end: Pick<FailRequest, 'permanent' | 'unstarted' | 'overrun' | 'error'>,
  step: number | undefined,
  context: Settling,
): Promise<FailResult> {
  const { config, store, random } = context.parts;
  const { retry } = config;
  const waitMs = step === undefined ? 0 : backoffMs(step, retry, random);
  return persist(() => store.fail({ ...complete, ...end, retry, backoffMs: waitMs }), context);
}

function whyDead(error: unknown, { once, lease }: AdmittedEvent): string {
  if (isPermanent(error)) return 'PermanentError';
  return once ? 'it was redriven, and failed again' : `${lease.chargedAttempts} runs failed`;
}

const overrunText = ({ maxRunMs }: Config): string => `the handler ran over maxRunMs (${maxRunMs} ms)`;

/** Ends a run that exceeded `maxRunMs`. The crash is recorded now, and not only when the lease expires. */
async function overran(run: HandledRun, context: Settling): Promise<Settled | Unavailability> {
  const error = overrunText(context.parts.config);
  const fields = { ...idsOf(run.event), ...runOf(run.won.lease) };
  context.log.error(fields, `${error} and was abandoned: it may still run`);
  context.outages.handler(error);
  const end = { permanent: run.won.once, overrun: true, error };
  if ((await failLease(run, end, run.won.lease.chargedAttempts, context)) !== 'dead')
    return unavailable('handler_timeout', error);
  raiseDead(deadEvent(run, error), error, context.parts.raiseAlarm);
  return DEAD;
}

/** Records the run's end in the store, then reports it. */
async function close(
  dispatched: Dispatched,
  end: RunEnd,
  context: Settling,
): Promise<Settled | Unavailability> {
  const endedAt = performance.now();
  let result: Settled | Unavailability;
  try {
    result = await settleBy(end, dispatched.run, context);
  } catch (error) {
    letGo(dispatched, context);
    throw error;
  }
  return closed(dispatched, { end, endedAt, result }, context);
}

/** Stops renewing the lease, and wakes the deliveries that wait for this run. */
function letGo({ run, stop }: Dispatched, { parts }: Settling): void {
  stop();
  parts.waiting.wake(run.complete.sender);
}

interface Closed {
  readonly end: RunEnd;
  /** The time of the run's end, as `performance.now()`. */
  readonly endedAt: number;
  readonly result: Settled | Unavailability;
}

function closed(
  dispatched: Dispatched,
  { end, endedAt, result }: Closed,
  context: Settling,
): Settled | Unavailability {
  const { run } = dispatched;
  letGo(dispatched, context);
  if (result === APPLIED) context.outages.handler();
  if (result.kind === 'settled') endWatch(run, context);
  const { ran } = context.parts.observed;
  // If the lease was lost, the process that has it now reports the end.
  if (!ran || (result.kind !== 'settled' && result.code === 'lease_lost')) return result;
  const state = result.kind === 'settled' ? result.state : 'failed';
  const error = state === 'applied' ? undefined : errorOf(end, context);
  ran(run, { state, error, endedAt, arrivedAt: context.arrivedAt });
  return result;
}

/** Stops polling the event's task, after the answer. If that fails, the next poll still sees the task's end. */
function endWatch({ event }: HandledRun, { parts, background, log }: Settling): void {
  if (!event?.registration || event.kind !== 'task' || !isTerminal(event.status)) return;
  const ended = parts.registrations?.ended?.(event);
  if (ended)
    background(
      ended.catch((error: unknown) => log.debug({ err: error }, 'the watch of a lease did not end')),
    );
}

const errorOf = (end: RunEnd, { parts }: Settling): string =>
  end.kind === 'threw' ? errorText(end.error) : overrunText(parts.config);

function settleBy(
  end: RunEnd,
  run: HandledRun,
  context: Settling,
): Settled | Unavailability | Promise<Settled | Unavailability> {
  if (isCommitted(run.transaction)) {
    if (end.kind === 'threw') {
      context.log.error(
        { err: end.error },
        'a handler threw after its transaction committed: the event is done',
      );
    }
    return APPLIED;
  }
  switch (end.kind) {
    case 'returned':
      return succeed(run, context);
    case 'threw':
      return failed(run, end.error, context);
    case 'lost':
      return unavailable('lease_lost', 'the lease was lost while the handler ran');
    case 'abandoned':
      return overran(run, context);
  }
}

/** Lets the end of a run be recorded in the background, after the answer, and logs if that fails. */
function goOn(late: Promise<unknown>, { background, log }: Settling): void {
  background(
    late.catch((error: unknown) => log.error({ err: error }, 'a late handler could not be settled')),
  );
}

/** Passes on only the success of a run that exceeded its deadline. Its failure was reported at the deadline. */
const onlyDone =
  ({ handler }: Outages): Outages['handler'] =>
  (failure) => {
    if (failure === undefined) handler();
  };

/**
 * Records the end of a run in the store. Every event that `admit` let through ends here. The answer is 503 if a handler
 * exceeds its deadline, or if the store cannot record the end in time. The end is then recorded later, and the sender's
 * retry is answered 200.
 */
export async function settle(
  dispatched: Dispatched,
  parts: SettleContext,
  delivery: SettleDelivery,
): Promise<Settled | Unavailability> {
  const { run, end } = dispatched;
  const { store, outages } = parts;
  const context: Settling = { ...delivery, parts, outages, replyWith: undefined, unanswered: undefined };
  if (end.kind === 'overrun') return overrun(dispatched, end, context);
  if (end.kind !== 'returned') return outlast(dispatched, end, context);
  // The usual case: a transaction has completed the event, or the store answers the first request.
  const endedAt = performance.now();
  let result: Settled | Unavailability = APPLIED;
  try {
    if (!isCommitted(run.transaction)) result = completed(await store.complete(run.complete));
  } catch (error) {
    context.unanswered = { error };
    return outlast(dispatched, end, context);
  }
  return closed(dispatched, { end, endedAt, result }, context);
}

/** Answers at the deadline, and records the run's end later, when the handler has ended. */
function overrun(
  dispatched: Dispatched,
  { finished }: DeadlineExceeded,
  context: Settling,
): Settled | Unavailability {
  const { outages } = context;
  const late = { ...context, outages: { ...outages, handler: onlyDone(outages) } };
  goOn(
    finished.then((end) => close(dispatched, end, late)),
    context,
  );
  if (isCommitted(dispatched.run.transaction)) return APPLIED;
  const over = `the handler ran over ${context.parts.config.handlerDeadlineMs} ms`;
  outages.handler(over);
  return unavailable('handler_timeout', over);
}

/** Answers a waiting sender even if the store cannot be reached, and goes on retrying the store. */
function outlast(dispatched: Dispatched, end: RunEnd, context: Settling): Promise<Settled | Unavailability> {
  if (context.isUnattended) return close(dispatched, end, context);
  return new Promise((resolve, reject) => {
    let replied = false;
    context.replyWith = (error) => {
      if (replied) return;
      replied = true;
      goOn(closing, context);
      reject(error);
    };
    const closing = close(dispatched, end, context);
    closing.then(resolve, reject);
  });
}
