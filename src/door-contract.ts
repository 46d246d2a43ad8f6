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

/** Answers that an adapter needs besides those of `open`. None of its outcomes has an event. */
export interface Door {
  readonly maxBodyBytes: number;
  /** The body was read before the adapter, and its bytes are gone: 503, with an alarm. `detail` says what to change. */
  readonly consumed: (detail: string) => Outcome;
  /** The answer to an exception: 503, and the log says what it was. */
  readonly fault: (error: unknown) => Outcome;
}
