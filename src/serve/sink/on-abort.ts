// Calls a function when an abort signal fires, and lets the caller cancel the call. The sinks, their pause and the
// instance use it.

/**
 * Calls the function once when the signal fires, or immediately if it has fired already. Returns a function that
 * cancels the call.
 */
export function onAbort(signal: AbortSignal, call: () => void): () => void {
  if (signal.aborted) call();
  else signal.addEventListener('abort', call, { once: true });
  return () => signal.removeEventListener('abort', call);
}
