// Hands events to the sink, and turns its answers into the receiver's outcomes (serve.md §2.6, §2.7). An instance uses
// it as the receiver's handler.
import { setTimeout as sleep } from 'node:timers/promises';
import { PermanentError } from '../../index.ts';
import type { Event } from '../../events/event.ts';
import type { HandlerContext } from '../../events/handler-context.ts';
import type { Logger, RaiseAlarm } from '../../shared/alarms.ts';
import {
  type Clock,
  createPause,
  GivenBack,
  type PauseHooks,
  type PauseState,
  type SinkRun,
} from './pause.ts';
import { printable, type Sink, type SinkAttempt } from './sink.ts';

export interface ForwarderOptions {
  readonly onAlarm: RaiseAlarm;
  readonly logger: Logger;
  /** Events that are under way at most. */
  readonly concurrency: number;
  readonly clock?: Clock;
}

/**
 * Hands events to a sink, with one or more attempts in each run (serve.md §2.6, §2.7). All its state is in this
 * process's memory.
 */
export interface Forwarder {
  /**
   * The receiver's handler. Resolves: done. Rejects with an error of the code `permanent_error`: DEAD; `given_back`: no
   * attempt is charged; any other: the attempt is charged.
   *
   * A run lasts at most a minute and two attempts: the receiver's `handlerDeadlineMs` has to be longer.
   */
  readonly handle: (event: Event, ctx: ForwardedContext) => Promise<void>;
  readonly state: () => PauseState;
}

type ForwardedContext = Pick<HandlerContext, 'deliveryId' | 'run' | 'signal' | 'log'>;

/**
 * The number of faults of one run that prove the event at fault, if another event passes after each (serve.md §2.7).
 */
const PROVEN = 2;

/** The shortest time between two lines at level warn about pauses, however many there are. Ms. */
const LOG_EVERY_MS = 60_000;

const REAL_CLOCK: Clock = {
  now: () => performance.timeOrigin + performance.now(),
  sleep: (ms, signal) => sleep(ms, undefined, { signal }).catch(() => undefined),
};

export function createForwarder(
  sink: Sink,
  { onAlarm, logger, concurrency, clock = REAL_CLOCK }: ForwarderOptions,
): Forwarder {
  const pause = createPause(clock, hooksOf(sink, onAlarm, logger, clock), concurrency);

  /** Makes one attempt. @returns false for a fault */
  async function attempt(run: SinkRun, one: SinkAttempt): Promise<boolean> {
    try {
      one.signal.throwIfAborted();
      await sink.send(one);
    } catch (error) {
      const { text, isPermanent, retryAfterMs } = read(error);
      if (isPermanent || one.signal.aborted) {
        pause.stopped(run);
        throw isPermanent ? new PermanentError(text, { cause: error }) : new GivenBack(text);
      }
      one.log.debug({ sink: sink.name, fault: text }, 'the sink has not taken an event');
      pause.faulted(run, text, retryAfterMs);
      return false;
    }
    pause.passed(run);
    return true;
  }

  return {
    async handle(event, { deliveryId: id, run: number, signal, log }) {
      const run = pause.begin(id);
      let isGivenBack = false;
      try {
        for (let repeated = number > 1; ; repeated = true) {
          await pause.turn(run, signal);
          if (run.proven >= PROVEN) throw new Error(run.fault);
          if (await attempt(run, { event, id, run: number, repeated, signal, log })) return;
        }
      } catch (error) {
        isGivenBack = error instanceof GivenBack;
        throw error;
      } finally {
        pause.end(run, isGivenBack);
      }
    },
    state: pause.state,
  };
}

function hooksOf({ name }: Sink, onAlarm: RaiseAlarm, logger: Logger, clock: Clock): PauseHooks {
  let loggedAt = -Infinity;
  return {
    begun(fault) {
      const isLogged = clock.now() - loggedAt >= LOG_EVERY_MS;
      if (isLogged) loggedAt = clock.now();
      logger[isLogged ? 'warn' : 'debug']({ sink: name, fault }, 'the sink is paused');
    },
    lasting: (fault, durationMs) => {
      const seconds = Math.round(durationMs / 1000);
      onAlarm({
        code: 'sink_unavailable',
        sink: name,
        durationMs: Math.round(durationMs),
        fault,
        message: `the sink ${name} has taken no event for ${seconds} s. They wait in the store, and none is charged for it. The last fault: ${fault}`,
      });
    },
    over: (durationMs, isTold) => {
      const fields = { sink: name, durationMs: Math.round(durationMs) };
      logger[isTold ? 'info' : 'debug'](fields, 'the sink takes events again');
    },
  };
}

interface ErrorRead {
  readonly text: string;
  readonly isPermanent: boolean;
  readonly retryAfterMs: number | undefined;
}

/** The longest text of a fault, characters. */
const MOST = 1_000;

/** Reads an error of the sink, which may be any value. */
function read(error: unknown): ErrorRead {
  try {
    const { message, code, retryAfterMs } = Object(error) as Readonly<Record<string, unknown>>;
    return {
      text: printable(String(message || error), MOST),
      isPermanent: code === 'permanent_error',
      retryAfterMs: typeof retryAfterMs === 'number' && retryAfterMs > 0 ? retryAfterMs : undefined,
    };
  } catch {
    return { text: 'an error that has no text', isPermanent: false, retryAfterMs: undefined };
  }
}
