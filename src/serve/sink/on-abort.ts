// Calls back when a signal fires, and lets the caller take that back. The sinks, their pause and the instance use it.

/** Calls back once when the signal fires, or at once if it has. It returns the function that takes this back. */
export function onAbort(signal: AbortSignal, call: () => void): () => void {
  if (signal.aborted) call();
  else signal.addEventListener('abort', call, { once: true });
  return () => signal.removeEventListener('abort', call);
}
