// Defines a sink (destination of events), an attempt to pass an event to it, and the fault of an attempt (serve.md §2).
// The HTTP sink and the module sink are sinks; the forwarder passes events to them.
import { PrintableError } from '../../index.ts';
import type { Event } from '../../events/event.ts';
import type { Logger } from '../../shared/alarms.ts';

/** One attempt to pass an event to the sink. */
export interface SinkAttempt {
  readonly event: Event;
  /** The delivery id of the event. */
  readonly id: string;
  /** The number of the handler's run (`ctx.run`). All attempts of one run have the same number. */
  readonly run: number;
  /** True if the sink may have received the event before, in an earlier run or an earlier attempt of this run. */
  readonly repeated: boolean;
  /** The abort signal that fires when the run must end. */
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/** The destination of events (serve.md §2): a URL of the backend, or a module of the owner. */
export interface Sink {
  /** The name for messages: the URL without credentials and query, or the module's path. */
  readonly name: string;
  /**
   * Makes one attempt. If it resolves, the event is done. If it rejects with an error of code `permanent_error`, the
   * event becomes DEAD. Any other error is a fault, and the error's `retryAfterMs` delays the next attempt.
   */
  readonly send: (attempt: SinkAttempt) => Promise<void>;
  /** Checks that the sink can be reached, without changing anything. Rejects if it cannot. */
  readonly check: (signal: AbortSignal) => Promise<void>;
  /** Waits for the running attempts, and then closes the sink. */
  readonly close: () => Promise<void>;
}

/** A fault of the sink (serve.md §2.6): there was no answer, or the answer neither accepts nor refuses the event. */
export class SinkFault extends PrintableError {
  override readonly name = 'SinkFault';
  readonly code = 'sink_fault';
  /** The time for which the sink asks to be sent nothing, in ms; undefined if it did not ask. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, retryAfterMs?: number, options?: ErrorOptions) {
    super(message, options);
    this.retryAfterMs = retryAfterMs;
  }
}

/** Characters that change a terminal or a log, or are no characters: control, format, surrogate, line separators. */
const NOT_PRINTABLE = /[\p{C}\p{Zl}\p{Zp}]+/gu;

/**
 * Returns text of another party for a message: printable, in one line, and at most `most` characters (UTF-16 code
 * units).
 */
export function printable(text: string, most: number): string {
  return text.slice(0, most).replaceAll(NOT_PRINTABLE, ' ').trim();
}
