// Completes or fails an event after its run, by the owner of its lease, until the store has answered
// (admission.md §4).
// Called by the receiver, the worker and redrives with what `dispatch` returned.

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
 * Time in whole ms for which workers leave an event alone after run `attempt` (from 1) failed. It is `baseMs`
 * after the first and doubles up to `maxMs`. A random part of up to half is subtracted, so that events that
 * failed together do not return together. Not shorter, because attempts, and runs for bytes that came before,
 * are counted by steps. A seller's retry does not wait.
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
  /** Thins handler errors by their text: the stack of each is logged once a minute. */
  readonly handlerErrors: Thinning;
  readonly outages: Outages;
  /** Unix ms. */
  readonly now: () => number;
  /** In [0, 1). */
  readonly random: () => number;
  /** Aborts when the receiver has stopped: its store is closed. */
  readonly closed: () => AbortSignal;
}

/** Facts and functions that belong to one delivery. */
export interface SettleDelivery {
  readonly log: SafeLogger;
  /** Keeps the receiver from closing its store while work goes on after the reply. */
  readonly background: (work: Promise<unknown>) => void;
  /** Nobody waits for an answer: a worker's run. */
  readonly isUnattended?: boolean;
  /**
   * Arrival of the delivery, or time of the owner's redrive: Unix ms on the receiver's clock. Absent for a
   * worker's run.
   */
  readonly arrivedAt?: number;
}

/** End of a run: its work is done, or it is DEAD. */
interface Settled {
  readonly kind: 'settled';
  readonly state: 'applied' | 'dead';
}

interface Settling extends SettleDelivery {
  readonly parts: SettleContext;
  readonly outages: Outages;
  /** Answers the waiting caller while the store is asked again. A second call does nothing. */
  replyWith: ((error: unknown) => void) | undefined;
  /** The completion was sent once and failed with this error. */
  unanswered: { readonly error: unknown } | undefined;
}

const APPLIED: Settled = { kind: 'settled', state: 'applied' };
const DEAD: Settled = { kind: 'settled', state: 'dead' };

/** First and longest pause between repeated completions, in ms; each is 4 × the one before. */
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2_000;
/** Pauses of 50, 200 and 800 before a waiting seller is answered. Ms. */
const PATIENCE_MS = 1_050;

/**
 * Repeats a completion or failure until the store answers, at most for `maxRunMs`: a store outage must not
 * make finished work run again. Both are idempotent by owner and may count after the lease's end. Meanwhile
 * the lease is renewed and the event counts as running here.
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
    // A stopped receiver's store answers nobody.
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

/** True if a stopping worker aborted the run: it may be leased at once, and no attempt is counted. */
function isInterrupted({ abort: { signal } }: HandledRun): boolean {
  return signal.reason instanceof Fault && signal.reason.code === 'shutting_down';
}

/**
 * The store's own fault. Either the event's registration could not be looked up, so no handler ran, or
 * `ctx.transaction` could not begin or commit. The attempt is not counted (admission.md §4.3).
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

/** Logs the failure. A delivery that is answered has a line of its own, with the text. */
function logFailure(
  error: unknown,
  text: string,
  { won: { lease }, event }: HandledRun,
  { log, parts, isUnattended }: Settling,
): void {
  const fields = { ...idsOf(event), ...runOf(lease) };
  // Many events may be given back for one reason, which is reported by whoever gives them back.
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

/** @param step of the back-off. If absent, the event is due at once. */
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

/** Ends a run over `maxRunMs`: the process reports the crash, and does not let the lease run out. */
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

/** Settles a run by its end, and tells of it once the store knows. */
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

/** Ends the run here, and wakes the deliveries that wait for it. */
function letGo({ run, stop }: Dispatched, { parts }: Settling): void {
  stop();
  parts.waiting.wake(run.complete.sender);
}

interface Closed {
  readonly end: RunEnd;
  /** On the clock of `performance.now()`. */
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
  // If the lease was lost, its present owner reports the end.
  if (!ran || (result.kind !== 'settled' && result.code === 'lease_lost')) return result;
  const state = result.kind === 'settled' ? result.state : 'failed';
  const error = state === 'applied' ? undefined : errorOf(end, context);
  ran(run, { state, error, endedAt, arrivedAt: context.arrivedAt });
  return result;
}

/** Ends the task's watch after the answer. If that fails, the poller still sees that the task has ended. */
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

/** Lets the late end be settled after the answer. */
function goOn(late: Promise<unknown>, { background, log }: Settling): void {
  background(
    late.catch((error: unknown) => log.error({ err: error }, 'a late handler could not be settled')),
  );
}

/** Reports only a success: a run past its deadline has already counted as a failure. */
const onlyDone =
  ({ handler }: Outages): Outages['handler'] =>
  (failure) => {
    if (failure === undefined) handler();
  };

/**
 * Completes or fails by owner; every path after `admit` ends here. A handler past its deadline, or an end
 * that the store does not take while somebody waits, is answered 503 and settled later. The sender's retry is
 * then answered 200.
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
  // The way of nearly every run: its transaction has completed it, or the store answers at once.
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

/** Answers now, and settles the run after the answer, when it ends. */
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

/** Answers a waiting caller even while an unreachable store is asked again. */
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
