import type { Event } from '../../events/event.ts';
import type { Logger } from '../../shared/alarms.ts';

/** One attempt to hand an event to the sink. */
export interface SinkAttempt {
  readonly event: Event;
  /** The delivery id. */
  readonly id: string;
  /** `ctx.run` of the handler: the same for every attempt of one run. */
  readonly run: number;
  /** The sink may have had the event before: by an earlier run, or an earlier attempt of this one. */
  readonly repeated: boolean;
  /** Fires when the run has to end. */
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/** What events are handed to (serve.md §2): a URL of the backend, or a module of the owner's. */
export interface Sink {
  /** For messages: the URL without credentials and query, or the module's path. */
  readonly name: string;
  /**
   * One attempt. Resolves: done. Rejects with an error of code `permanent_error`: DEAD. Any other error is a fault;
   * `retryAfterMs` on it puts the next attempt off.
   */
  readonly send: (attempt: SinkAttempt) => Promise<void>;
  /** Rejects if the sink is not there; changes nothing. */
  readonly check: (signal: AbortSignal) => Promise<void>;
  /** Waits for the attempts that are under way. */
  readonly close: () => Promise<void>;
}

/** A fault of the sink (serve.md §2.6): no answer, or one that neither takes the event nor refuses it. */
export class SinkFault extends Error {
  override readonly name = 'SinkFault';
  readonly code = 'sink_fault';
  /** How long the sink asks to be left alone. Ms. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, retryAfterMs?: number, options?: ErrorOptions) {
    super(message, options);
    this.retryAfterMs = retryAfterMs;
  }
}

/** What a terminal or a log would act on, and what is no character: control, format, surrogate, separators of lines. */
const NOT_PRINTABLE = /[\p{C}\p{Zl}\p{Zp}]+/gu;

/** Another's words in a message of ours: printable, in one line, and at most `most` characters (UTF-16 code units). */
export function printable(text: string, most: number): string {
  return text.slice(0, most).replaceAll(NOT_PRINTABLE, ' ').trim();
}
