import type { HeadersInput } from './delivery.ts';
import type { Outcome } from './outcome.ts';

/** Third argument of `verifyAndDispatch`. */
export interface RequestInfo {
  /** Request target or absolute URL as received. Needed where `publicUrl` ends in `/*`. */
  readonly url?: string;
  /** `POST`. */
  readonly method?: string;
  /** Aborts waiting for a duplicate's first copy; a handler that runs is not stopped by it. */
  readonly signal?: AbortSignal;
}

/** What an adapter needs besides `verifyAndDispatch`. None of its outcomes has an event. */
export interface Door {
  readonly maxBodyBytes: number;
  readonly bodyDeadlineMs: number;
  /**
   * Answers what headers alone decide (405, 413 by Content-Length, 415, shutting down, no room for the declared length);
   * undefined: read the body.
   */
  readonly check: (headers: HeadersInput, request?: RequestInfo) => Outcome | undefined;
  /** The answer where no whole body could be had; logged, counted and hooked like any other. */
  readonly refuse: (
    code: 'payload_too_large' | 'body_timeout' | 'body_consumed' | 'overloaded',
    detail: string,
  ) => Outcome;
  /** Counts bytes that an adapter is about to keep. False: over `maxBufferedBytes`, nothing was counted. */
  readonly hold: (bytes: number) => boolean;
  /** Gives back what `hold` counted, once the delivery is answered. */
  readonly release: (bytes: number) => void;
  /** The answer to an exception out of `verifyAndDispatch`: 503, and the log says what it was. */
  readonly fault: (error: unknown) => Outcome;
}
