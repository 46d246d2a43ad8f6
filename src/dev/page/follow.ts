// Follows the stream of events, and connects again if it is lost or silent (dev.md §4.3). use-model.ts starts it.
import { type Api, codeOf } from './api.ts';
import { eventReader, type StreamedEvent } from './event-stream.ts';

/** The hooks of whoever follows the stream of events. */
export interface Follower {
  readonly onEvent: (event: StreamedEvent) => void;
  /** Called with true once the stream answers, with false as soon as it is lost. */
  readonly onConnected: (isConnected: boolean) => void;
  /** Called when the API no longer takes the token: following has ended. */
  readonly onRefused: (error: unknown) => void;
}

/** A comment comes every 10 s (dev.md §4.3): a stream that is silent for longer is lost, whatever the connection says. */
const SILENCE_MS = 25_000;
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 4_000;

const wait = async (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Codes after which asking again with the same token is of no use. */
const FINAL = new Set(['unauthorized', 'forbidden_host', 'forbidden_origin']);

/**
 * Follows the events from `lastId` on, until `ended` aborts. If the connection is lost, it goes on behind the last
 * event that came.
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
