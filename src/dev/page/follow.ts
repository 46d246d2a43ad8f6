// Follows dev's stream of server-sent events, and reconnects if the stream is lost or silent (dev.md §4.3).
// use-model.ts starts it.
import { type Api, codeOf } from './api.ts';
import { eventReader, type StreamedEvent } from './event-stream.ts';

/** The callbacks of `followEvents`. */
export interface Follower {
  readonly onEvent: (event: StreamedEvent) => void;
  /** Called with true once the stream is open, and with false as soon as it is lost. */
  readonly onConnected: (isConnected: boolean) => void;
  /** Called when dev refuses the page for good, e.g. its token. No further attempt is made. */
  readonly onRefused: (error: unknown) => void;
}

/** A stream without data for this time counts as lost, because dev sends a comment every 10 s (dev.md §4.3). */
const SILENCE_MS = 25_000;
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 4_000;

const wait = async (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Error codes after which a new attempt with the same token cannot succeed. */
const FINAL = new Set(['unauthorized', 'forbidden_host', 'forbidden_origin']);

/**
 * Passes on the events after the event `lastId`, until `ended` aborts. After a lost connection the stream continues
 * behind the last event received.
 */
export async function followEvents(
  api: Api,
  lastId: string,
  { onEvent, onConnected, onRefused }: Follower,
  ended: AbortSignal,
): Promise<void> {
  let last = lastId;
  let waitMs = FIRST_WAIT_MS;
  const readOnce = async (): Promise<void> => {
    const lost = new AbortController();
    const signal = AbortSignal.any([ended, lost.signal]);
    const silent = (): void => lost.abort();
    let timer = setTimeout(silent, SILENCE_MS);
    try {
      const response = await api.events(last, signal);
      onConnected(true);
      waitMs = FIRST_WAIT_MS;
      const read = eventReader();
      const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
      for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) {
        clearTimeout(timer);
        timer = setTimeout(silent, SILENCE_MS);
        for (const event of read(piece.value)) {
          last = event.id;
          onEvent(event);
        }
      }
    } finally {
      clearTimeout(timer);
    }
  };
  while (!ended.aborted) {
    try {
      await readOnce();
    } catch (error) {
      if (ended.aborted) return;
      if (FINAL.has(codeOf(error))) {
        onRefused(error);
        return;
      }
    }
    if (ended.aborted) return;
    onConnected(false);
    await wait(waitMs);
    waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS);
  }
}
