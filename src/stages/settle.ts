import type { Logger, RaiseAlarm } from '../alarms.ts';
import type { Config } from '../config/resolve.ts';
import { Fault, isOfKind, PermanentError } from '../errors.ts';
import { unavailable, type Unavailability } from '../outcome.ts';
import type { FailRequest, Store } from '../stores/contract.ts';
import { raiseDead } from './announce.ts';
import { backoffMs } from './backoff.ts';
import type { Dispatched, Run } from './dispatch.ts';
import { errorText } from './error-text.ts';
import { isCommitted } from './transaction.ts';
import type { Waiting } from './wait.ts';
import type { RunEnd } from './watch.ts';
import type { Won } from './won.ts';

export interface SettleContext {
  readonly config: Config;
  readonly store: Store;
  readonly waiting: Waiting;
  readonly raiseAlarm: RaiseAlarm;
  /** In [0, 1). */
  readonly random: () => number;
  /** Aborts when the receiver has stopped: its store is closed. */
  readonly closed: AbortSignal;
}

/** What belongs to one delivery. */
export interface SettleDelivery {
  readonly log: Logger;
  /** Keeps the receiver from closing its store under work that goes on after the reply. */
  readonly background: (work: Promise<unknown>) => void;
  /** How long an unanswered completion is tried again: as long as somebody waits for the answer. Ms; 1 050. */
  readonly patienceMs?: number;
}

/** How a run ended: its work is done, or it is DEAD. */
export interface Settled {
  readonly kind: 'settled';
  readonly state: 'applied' | 'dead';
}

interface Settling extends SettleContext {
  readonly log: Logger;
  readonly patienceMs: number;
}

const APPLIED: Settled = { kind: 'settled', state: 'applied' };
const DEAD: Settled = { kind: 'settled', state: 'dead' };

/** The first pause before an unanswered completion is sent again, and the longest, ms; each is 4 × the one before. */
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2_000;
/** 50, 200 and 800: a seller waits for the answer. */
const PATIENCE_MS = 1_050;

/**
 * A blip of the store must not turn work that was done into work that is done twice: completions and failures are
 * idempotent by their owner, and the lease is renewed meanwhile.
 */
function persist<T>(operation: () => Promise<T>, context: Settling): Promise<T> {
  return operation().catch((error: unknown) => persistAgain(operation, error, context));
}

async function persistAgain<T>(
  operation: () => Promise<T>,
  first: unknown,
  { patienceMs, closed }: Settling,
): Promise<T> {
  let error = first;
  let leftMs = patienceMs;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(4 * pauseMs, LONGEST_PAUSE_MS)) {
    if (!(error instanceof Fault) || error.code !== 'store_unavailable' || leftMs <= 0) throw error;
    // It answers nobody any more.
    if (closed.aborted) throw error;
    const ms = Math.min(pauseMs, leftMs);
    leftMs -= ms;
    await new Promise((resolve) => {
      setTimeout(resolve, ms);
    });
    try {
      return await operation();
    } catch (again) {
      error = again;
    }
  }
}

async function succeed({ transaction, complete }: Run, context: Settling): Promise<Settled | Unavailability> {
  const done = isCommitted(transaction)
    ? 'done'
    : await persist(() => context.store.complete(complete), context);
  if (done === 'lost') return unavailable('lease_lost', 'the lease was over when the handler returned');
  return APPLIED;
}

/** A worker that stops has aborted it: it is the next one's at once, and the attempt is not counted. */
function isInterrupted({ abort: { signal } }: Run): boolean {
  return signal.reason instanceof Fault && signal.reason.code === 'shutting_down';
}

async function failed(run: Run, error: unknown, context: Settling): Promise<Settled | Unavailability> {
  const { config, store, random } = context;
  const { complete, won } = run;
  const { sender, key } = complete;
  const { attempt } = won.lease;
  const permanent = won.once || isOfKind(error, PermanentError);
  const interrupted = isInterrupted(run);
  context.log.error({ err: error, attempt }, 'a handler failed');
  const request: FailRequest = {
    ...complete,
    permanent,
    retry: config.retry,
    unstarted: interrupted && !permanent,
    backoffMs: interrupted ? 0 : backoffMs(attempt, config.retry, random),
    error: errorText(error),
  };
  const result = await persist(() => store.fail(request), context);
  if (result === 'lost') return unavailable('lease_lost', 'the lease was over when the handler failed');
  if (result === 'queued') return unavailable('handler_failed', 'the handler failed');
  raiseDead(sender, key, whyDead(error, won), context.raiseAlarm);
  return DEAD;
}

function whyDead(error: unknown, { once, lease }: Won): string {
  if (isOfKind(error, PermanentError)) return 'PermanentError';
  return once ? 'it was redriven, and failed again' : `${lease.attempt} runs failed`;
}

async function close(
  { run, stop }: Dispatched,
  end: RunEnd,
  context: Settling,
): Promise<Settled | Unavailability> {
  try {
    if (isCommitted(run.transaction)) {
      if (end.kind === 'threw') {
        context.log.error(
          { err: end.error },
          'a handler threw after its transaction committed: the event is done',
        );
      }
      return await succeed(run, context);
    }
    switch (end.kind) {
      case 'returned':
        return await succeed(run, context);
      case 'threw':
        return await failed(run, end.error, context);
      case 'lost':
        return unavailable('lease_lost', 'the lease was lost while the handler ran');
      case 'abandoned':
        return unavailable('handler_timeout', 'the handler ran over maxRunMs: its lease runs out');
    }
  } finally {
    stop();
    context.waiting.wake(run.complete.sender);
  }
}

/**
 * Every path after `admit` ends here: complete or fail, by owner. A handler past its deadline is answered 503 and
 * settled when it ends; the sender's retry is then told 200.
 */
export function settle(
  dispatched: Dispatched,
  rooms: SettleContext,
  { log, background, patienceMs = PATIENCE_MS }: SettleDelivery,
): Promise<Settled | Unavailability> {
  const { run, end } = dispatched;
  const { config, store, waiting, raiseAlarm, random, closed } = rooms;
  const context: Settling = { config, store, waiting, raiseAlarm, random, closed, log, patienceMs };
  if (end.kind !== 'overrun') return close(dispatched, end, context);
  const late = end.finished.then((lateEnd) => close(dispatched, lateEnd, context));
  background(
    late.catch((error: unknown) => log.error({ err: error }, 'a late handler could not be settled')),
  );
  if (isCommitted(run.transaction)) return succeed(run, context);
  const over = `the handler ran over ${config.handlerDeadlineMs} ms`;
  return Promise.resolve(unavailable('handler_timeout', over));
}
