// Watches if a receiver listens at the address of `--forward`, twice a second (dev.md §3.3). dev.ts starts it. It
// only connects, and sends nothing that a receiver would have to answer.
import { connect } from 'node:net';
import type { ReceiverState } from './wire.ts';

const EVERY_MS = 500;
/** The time limit of an attempt, ms. */
const ATTEMPT_MS = 400;

/** The address that is watched, and who is told. */
export interface WatchParts {
  readonly forward: string;
  /** Unix ms. */
  readonly now: () => number;
  /** Called for each change. */
  readonly changed: (state: ReceiverState) => void;
}

/** Tries the receiver's address again and again (dev.md §3.3). */
export interface Watcher {
  readonly state: () => ReceiverState;
  readonly stop: () => void;
}

/** Tries to connect once. Resolves with the reason why it cannot, or undefined. */
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

/** Starts watching. */
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
