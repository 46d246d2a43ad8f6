// Checks twice a second if a receiver listens at the address of `--forward` (dev.md §3.3). dev.ts starts it. It only
// connects, and sends no request.
import { connect } from 'node:net';
import type { ReceiverState } from './wire.ts';

const EVERY_MS = 500;
/** The time limit of one attempt to connect, ms. */
const ATTEMPT_MS = 400;

/** The address to check, and the function that is called when the receiver becomes reachable or unreachable. */
export interface WatchParts {
  readonly forward: string;
  /** Returns the current time, Unix ms. */
  readonly now: () => number;
  /** Called when the receiver becomes reachable or unreachable. */
  readonly changed: (state: ReceiverState) => void;
}

/** Checks again and again if the receiver is reachable (dev.md §3.3). */
export interface Watcher {
  readonly state: () => ReceiverState;
  readonly stop: () => void;
}

/** Tries to connect once. Resolves with undefined, or with an error code if the connection fails. */
function attempt(host: string, port: number, signal: AbortSignal): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, signal });
    const end = (error?: string): void => {
      socket.destroy();
      resolve(error);
    };
    socket.setTimeout(ATTEMPT_MS, () => end('ETIMEDOUT'));
    socket.once('connect', () => end());
    socket.once('error', ({ code, message }: NodeJS.ErrnoException) => end(code ?? message));
  });
}

export function watchReceiver({ forward, now, changed }: WatchParts): Watcher {
  const { hostname, port, protocol } = new URL(forward);
  const host = hostname.replace(/^\[|\]$/g, '');
  const at = port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port);
  const ended = new AbortController();
  let current: ReceiverState = { state: 'unknown', since: now() };
  let timer: NodeJS.Timeout | undefined;

  const look = async (): Promise<void> => {
    const error = await attempt(host, at, ended.signal);
    if (ended.signal.aborted) return;
    const state = error === undefined ? 'up' : 'down';
    if (state !== current.state) {
      current = { state, since: now(), ...(error !== undefined && { error }) };
      changed(current);
    }
    timer = setTimeout(() => void look(), EVERY_MS).unref();
  };
  void look();
  return {
    state: () => current,
    stop() {
      ended.abort();
      clearTimeout(timer);
    },
  };
}
