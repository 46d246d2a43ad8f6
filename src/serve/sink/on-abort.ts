// Calls a function when a signal fires, and lets the caller cancel that. The sinks, their pause and the instance use
// it.

/**
 * Calls the function once when the signal fires, or at once if it has fired. Returns a function that cancels the call.
 */
export function onAbort(signal: AbortSignal, call: () => void): () => void {
  if (signal.aborted) call();
  else signal.addEventListener('abort', call, { once: true });
  return () => signal.removeEventListener('abort', call);
}
