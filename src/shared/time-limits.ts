// Waits with limits: time-outs, signals, pauses, retries, and turns of the event loop.
// Called by everything that waits; timers that nobody waits for do not keep the process alive.

import { Fault, isOfKind } from './errors.ts';
import { isError } from './realms.ts';

/** The result of `promise`, or undefined if it takes longer than `ms` or the signal fires. */
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

/** The result of `promise`; rejects with the error of `late` if it takes longer than `ms`. */
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

/** Resolves after `ms`, or earlier if the signal fires. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) {
      resolve();
      return;
    }
    const timer = setTimeout(done, ms);
    // The signal may live as long as the process, so no listener stays on it.
    const takeBack = signal && onAbort(signal, done);
    function done(): void {
      clearTimeout(timer);
      takeBack?.();
      resolve();
    }
  });
}

/** The reason of the signal, always as an `Error`. */
export function abortReason(signal: AbortSignal): Error {
  return isError(signal.reason) ? signal.reason : new Error('aborted');
}

/**
 * Calls back once when the signal fires, or at once if it has fired. Returns a function that cancels the
 * call.
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

/** A signal that fires with the given one until that is cancelled. */
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
 * The result of `promise`, or a rejection when the signal fires. Works even if `promise` ignores the signal:
 * a name lookup cannot be stopped, and a transport of the owner's may not care.
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
 * Runs `work`, a `fetch` that may be the platform's, under a signal that fires with the given one until
 * `work` has rejected. If its signal fires after that, Node's own `fetch` ends the process. An answer with
 * too many content encodings leaves a stream, and nobody hears its error.
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

/** As `orAborted`, but begins nothing if the signal has already fired. */
export async function unlessAborted<T>(signal: AbortSignal, start: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  return await orAborted(start(), signal);
}

/** Runs `work` under a signal that also fires after `ms`, with `reason` as its message. */
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

/** Bytes or characters above which a step over a whole answer is followed by a turn of the event loop. */
const LARGE = 65_536;

/**
 * Gives the event loop a turn after a step over a whole answer of that size (calls.md §4.13); resolves at
 * once for a small one.
 */
export async function turnAfter(size: number): Promise<void> {
  if (size > LARGE) await sleep(0);
}

/** First and longest pause between two tries. Ms. */
const PAUSE_MS = 100;
const MOST_PAUSE_MS = 1_000;

/**
 * Repeats `attempt` until it succeeds, as long as it fails by a server that may come back. A deploy starts
 * programs and their database together.
 * @param isOver true when nobody waits any more.
 * @throws the error of the last try: the owner's mistake at once, a `Fault` after `ms`.
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
