// Passes events to the sink (their destination), and turns the sink's answers into the receiver's outcomes (serve.md
// §2.6, §2.7). An instance uses it as the receiver's handler.
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
  /** The largest number of events that are being sent to the sink, or wait for it, at the same time. */
  readonly concurrency: number;
  readonly clock?: Clock;
}

/**
 * Passes events to a sink, with one or more attempts in each run of the handler (serve.md §2.6, §2.7). Its whole state
 * is in the memory of this process.
 */
export interface Forwarder {
  /**
   * The handler that the receiver calls. If it resolves, the event is done. If it rejects with an error of the code
   * `permanent_error`, the event becomes DEAD. After the code `given_back`, the run is not counted as an attempt. After
   * any other error, the run is counted.
   *
   * A run lasts at most a minute plus two attempts, so the receiver's `handlerDeadlineMs` must be longer.
   */
  readonly handle: (event: Event, ctx: ForwardedContext) => Promise<void>;
  readonly state: () => PauseState;
}

type ForwardedContext = Pick<HandlerContext, 'deliveryId' | 'run' | 'signal' | 'log'>;

/**
 * The number of faults in a run that prove that the event itself is at fault. A fault is counted only if another event
 * succeeds after it (serve.md §2.7).
 */
const PROVEN = 2;

/** The shortest time between two log lines at level warn about pauses. Ms. */
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

  /**
   * Makes one attempt to send an event.
   * @returns false if the sink did not take the event, so that another attempt may follow.
   */
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

/** The longest text of a fault that is kept, in characters. */
const MOST = 1_000;

/** Reads the text and the code of an error that the sink threw, which may be any value. */
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
