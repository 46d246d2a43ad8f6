import { orAborted } from '../shared/time-limits.ts';

/** The time that a call may take, by a clock that tests replace. */
export interface CallDeadline {
  readonly ms: number;
  /** The message of the error with which the call is aborted. */
  readonly reason: string;
  /** Resolves early where the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

/**
 * Runs a call until its deadline, or until `stopping` aborts: before another process makes the call too. A call that ignores its
 * signal is no longer waited for.
 */
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
