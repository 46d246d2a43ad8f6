import type { Logger, RaiseAlarm } from '../alarms.ts';
import type { Config } from '../config/resolve.ts';
import { Fault, PermanentError } from '../errors.ts';
import type { Unavailability, Verdict } from '../outcome.ts';
import type { Store } from '../stores/contract.ts';
import { raiseDead } from './announce.ts';
import type { Dispatched, Run, RunEnd } from './dispatch.ts';
import type { Waiting } from './wait.ts';

export interface SettleContext {
  readonly config: Config;
  readonly store: Store;
  readonly waiting: Waiting;
  readonly raiseAlarm: RaiseAlarm;
  /** In [0, 1). */
  readonly random: () => number;
}

/** What belongs to one delivery. */
export interface SettleDelivery {
  readonly log: Logger;
  /** Keeps the receiver from closing its store under work that goes on after the reply. */
  readonly background: (work: Promise<unknown>) => void;
}

type Settling = SettleContext & Pick<SettleDelivery, 'log'>;

const unavailable = (code: Unavailability['code'], detail: string): Unavailability => ({
  kind: 'unavailable',
  code,
  detail,
});

/** Pauses before an unanswered completion is sent again, ms: it is idempotent by its owner. */
const RETRY_PAUSES_MS = [50, 200, 800] as const;

/** A blip of the store must not turn work that was done into work that is done twice. */
async function persist<T>(operation: () => Promise<T>): Promise<T> {
  for (const pause of RETRY_PAUSES_MS) {
    try {
      return await operation();
    } catch (error) {
      if (!(error instanceof Fault) || error.code !== 'store_unavailable') throw error;
      await new Promise((resolve) => {
        setTimeout(resolve, pause);
      });
    }
  }
  return operation();
}

/** Full jitter over an exponential: how long workers leave the event alone. A sender's retry does not wait. */
function backoffMs(attempt: number, { baseMs, maxMs }: Config['retry'], random: () => number): number {
  return Math.floor(random() * Math.min(maxMs, baseMs * 2 ** Math.min(attempt, 40)));
}

async function succeed(run: Run, context: SettleContext): Promise<Verdict> {
  const done = run.committed() ? 'done' : await persist(() => context.store.complete(run.complete));
  if (done === 'lost') return unavailable('lease_lost', 'the lease was over when the handler returned');
  return { kind: 'accepted', state: 'applied', event: run.event(), changed: run.won.win.changed };
}

async function failed(run: Run, error: unknown, context: Settling): Promise<Verdict> {
  const { config, store, random } = context;
  const { sender, key, owner, retentionMs } = run.complete;
  const permanent = error instanceof PermanentError;
  const attempt = run.won.win.lease.attempt;
  context.log.error({ err: error, attempt }, 'a handler failed');
  const result = await persist(() =>
    store.fail({
      sender,
      key,
      owner,
      permanent,
      retry: config.retry,
      backoffMs: backoffMs(attempt, config.retry, random),
      retentionMs,
    }),
  );
  if (result === 'lost') return unavailable('lease_lost', 'the lease was over when the handler failed');
  if (result === 'queued') return unavailable('handler_failed', 'the handler failed');
  raiseDead(sender, key, permanent ? 'PermanentError' : `${attempt} runs failed`, context.raiseAlarm);
  return { kind: 'accepted', state: 'dead', event: run.event(), changed: run.won.win.changed };
}

async function close(run: Run, end: RunEnd, context: Settling): Promise<Verdict> {
  try {
    if (run.committed()) {
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
    run.keeper.stop();
    context.waiting.wake(run.complete.sender);
  }
}

/**
 * Every path after `admit` ends here: complete or fail, by owner. A handler past its deadline is answered 503 and
 * settled when it ends; the sender's retry is then told 200.
 */
export async function settle(
  { run, end }: Dispatched,
  rooms: SettleContext,
  { log, background }: SettleDelivery,
): Promise<Verdict> {
  const { config, store, waiting, raiseAlarm, random } = rooms;
  const context: Settling = { config, store, waiting, raiseAlarm, random, log };
  if (end.kind !== 'overrun') return close(run, end, context);
  const late = run.finished.then((lateEnd) => close(run, lateEnd, context));
  background(
    late.catch((error: unknown) => log.error({ err: error }, 'a late handler could not be settled')),
  );
  if (run.committed()) return succeed(run, context);
  return unavailable('handler_timeout', `the handler ran over ${rooms.config.handlerDeadlineMs} ms`);
}
