// Ends a call that takes too long, before another process may make the same call. All background calls to sellers use
// it: repeated calls, subscriptions, moves and checks of URLs.
import { orAborted } from '../shared/time-limits.ts';

/** The time limit of a call, and the `sleep` that measures it. */
export interface CallDeadline {
  readonly ms: number;
  /** The message of the error with which the call is aborted. */
  readonly reason: string;
  /** Waits for `ms`, or less if the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** Runs a call until its deadline, or until `stopping` aborts. Then it rejects, even if the call ignores its signal. */
export async function beforeDeadline<T>(
  { ms, reason, sleep }: CallDeadline,
  stopping: AbortSignal,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const ended = new AbortController();
  const aborter = new AbortController();
  const end = (): void => aborter.abort(stopping.reason);
  stopping.addEventListener('abort', end);
  const expire = async (): Promise<void> => {
    await sleep(ms, ended.signal);
    if (!ended.signal.aborted) aborter.abort(new DOMException(reason, 'TimeoutError'));
  };
  void expire();
  try {
    return await orAborted(call(aborter.signal), aborter.signal);
  } finally {
    stopping.removeEventListener('abort', end);
    ended.abort();
  }
}
