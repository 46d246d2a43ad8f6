// Waits with limits: time-outs, signals, pauses, retries, and pauses that let the event loop run.
// Called by all code that waits; timers that nobody waits for do not keep the process alive.

import { Fault, isOfKind } from './errors.ts';
import { isError } from './realms.ts';

/** Returns the result of `promise`. Undefined if it takes longer than `ms` or the signal aborts. */
export async function settledWithin<T>(
  promise: Promise<T>,
  ms: number,
  signal?: AbortSignal,
): Promise<T | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let takeBack: (() => void) | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, ms, undefined);
    takeBack = signal && onAbort(signal, () => resolve(undefined));
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
    takeBack?.();
  }
}

/** Returns the result of `promise`. Rejects with the error that `late` makes if the result takes longer than `ms`. */
export async function orLate<T>(promise: Promise<T>, ms: number, late: () => Error): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const over = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(late()), ms);
  });
  try {
    return await Promise.race([promise, over]);
  } finally {
    clearTimeout(timer);
  }
}

/** Resolves after `ms`, or when the signal aborts. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) {
      resolve();
      return;
    }
    const timer = setTimeout(done, ms);
    // The signal may live as long as the process, so the listener is removed afterwards.
    const takeBack = signal && onAbort(signal, done);
    function done(): void {
      clearTimeout(timer);
      takeBack?.();
      resolve();
    }
  });
}

/** Returns the reason of the signal, always as an `Error`. */
export function abortReason(signal: AbortSignal): Error {
  return isError(signal.reason) ? signal.reason : new Error('aborted');
}

/**
 * Calls `call` once: when the signal aborts, or immediately if it has already aborted. Returns a function that removes
 * the listener.
 */
export function onAbort(signal: AbortSignal, call: (reason: Error) => void): () => void {
  const listener = (): void => {
    call(abortReason(signal));
  };
  if (signal.aborted) listener();
  else signal.addEventListener('abort', listener, { once: true });
  return () => {
    signal.removeEventListener('abort', listener);
  };
}

/** Returns a new signal that aborts when the given signal does, until `takeBack` is called. */
export function followed(signal: AbortSignal): {
  readonly signal: AbortSignal;
  readonly takeBack: () => void;
} {
  const own = new AbortController();
  const takeBack = onAbort(signal, (reason) => {
    own.abort(reason);
  });
  return { signal: own.signal, takeBack };
}

/**
 * Returns the result of `promise`, but rejects when the signal aborts, even if the work behind `promise` goes on. For
 * example, a name look-up cannot be stopped, and an owner's transport may ignore the signal.
 */
export async function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  let takeBack = (): void => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    takeBack = onAbort(signal, reject);
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    takeBack();
  }
}

/**
 * Runs `work`, usually a `fetch`, with a signal that follows the given one, but no longer once `work` has rejected. If
 * the signal of Node's own `fetch` aborted after that, the process could end. An answer with too many content encodings
 * leaves a stream, whose error nobody handles.
 */
export async function untilRejected<T>(
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const own = followed(signal);
  try {
    return await work(own.signal);
  } catch (error) {
    own.takeBack();
    throw error;
  }
}

/**
 * Starts work, and returns its result or rejects when the signal aborts, as `orAborted`. If the signal has already
 * aborted, the work is not started.
 */
export async function unlessAborted<T>(signal: AbortSignal, start: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  return await orAborted(start(), signal);
}

/** Runs `work` with a signal that also aborts after `ms`, then with an error whose message is `limit.reason`. */
export async function limited<T>(
  limit: { readonly ms: number; readonly reason: string },
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const late = new AbortController();
  const timer = setTimeout(() => {
    late.abort(new Error(limit.reason));
  }, limit.ms);
  try {
    return await work(AbortSignal.any([signal, late.signal]));
  } finally {
    clearTimeout(timer);
  }
}

/** Runs `task` once after `ms`; the returned function cancels it. */
export type Schedule = (task: () => void, ms: number) => () => void;

/** A timer that does not keep the process alive, if the runtime has such timers. */
export const backgroundTimer: Schedule = (task, ms) => {
  const timer: unknown = setTimeout(task, ms);
  (timer as { readonly unref?: () => unknown }).unref?.();
  return () => {
    clearTimeout(timer as ReturnType<typeof setTimeout>);
  };
};

/**
 * Size in bytes or characters above which the processing of an answer pauses for the event loop after each pass over
 * the whole answer.
 */
const LARGE = 65_536;

/**
 * Lets the event loop run once, after a pass over a large answer (calls.md §4.13). For a small answer, resolves
 * immediately.
 * @param size the answer's size in bytes or characters.
 */
export async function turnAfter(size: number): Promise<void> {
  if (size > LARGE) await sleep(0);
}

/** The first pause between two attempts, ms. Each further pause is twice as long, up to `MOST_PAUSE_MS`. */
const PAUSE_MS = 100;
const MOST_PAUSE_MS = 1_000;

/**
 * Repeats `attempt` until it succeeds, while it fails with a `Fault`, e.g. of an unreachable store. A deploy may start
 * programs and their database together.
 * @param isOver returns true when nobody waits any more; the attempts then end.
 * @throws the last error: immediately if it is the owner's mistake, after `ms` if it is a `Fault`.
 */
export async function tryFor<T>(
  ms: number,
  attempt: () => Promise<T>,
  isOver = (): boolean => false,
): Promise<T> {
  const until = performance.now() + ms;
  for (let pauseMs = PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, MOST_PAUSE_MS)) {
    try {
      return await attempt();
    } catch (error) {
      const isLast = performance.now() + pauseMs > until || isOver();
      if (isLast || !isOfKind(error, Fault)) throw error;
    }
    await sleep(pauseMs);
  }
}
