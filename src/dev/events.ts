// Sends the API's server-sent events, and keeps the latest, so that readers that reconnect miss none (dev.md §4.3).
// dev.ts emits events; the API opens streams.
import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { DevEvents } from './wire.ts';

/** The most events that are kept for readers that reconnect. `MOST_CHARACTERS` limits their total length. */
const MOST_EVENTS = 1_000;
const MOST_CHARACTERS = 2 * 1024 * 1024;
const MOST_STREAMS = 16;
const COMMENT_MS = 10_000;
/**
 * The most bytes that may wait for a slow reader: more than all kept events together. Above this limit the reader is
 * disconnected, and has to reconnect.
 */
const MOST_UNREAD = 8 * 1024 * 1024;

interface Kept {
  readonly number: number;
  readonly text: string;
}

/** Sends events to all open streams of server-sent events (dev.md §4.3). */
export interface EventStreams {
  readonly emit: <K extends keyof DevEvents>(name: K, data: DevEvents[K]) => void;
  /** Returns the id of the latest event. */
  readonly last: () => string;
  /**
   * Writes events to the response until it is closed.
   * @param lastEventId the header `Last-Event-ID` of the request. Absent: only events from now on are sent.
   * @returns false if too many streams are open; nothing is written then.
   */
  readonly open: (response: ServerResponse, lastEventId: string | undefined) => boolean;
  readonly close: () => void;
}

/** Makes an `EventStreams` that has no events yet. */
export function createEvents(): EventStreams {
  // Event ids begin with a random part, so that ids of an earlier start of dev are not mistaken for ids of this start.
  const start = randomBytes(4).toString('hex');
  const kept: Kept[] = [];
  const streams = new Set<ServerResponse>();
  let last = 0;
  let characters = 0;

  const idOf = (number: number): string => `${start}-${number}`;

  const write = (response: ServerResponse, text: string): void => {
    response.write(text);
    if (response.writableLength > MOST_UNREAD) response.destroy();
  };

  /**
   * Returns the events after the event `id`. Returns undefined if the id is unknown, or some of these events are no
   * longer kept.
   */
  const behind = (id: string): readonly Kept[] | undefined => {
    const [, process, digits] = /^([0-9a-f]{8})-(\d{1,15})$/.exec(id) ?? [];
    const number = Number(digits);
    if (process !== start || number > last) return undefined;
    const oldest = kept[0]?.number ?? last + 1;
    return number + 1 < oldest ? undefined : kept.filter((event) => event.number > number);
  };

  return {
    emit(name, data) {
      last += 1;
      const text = `id: ${idOf(last)}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
      kept.push({ number: last, text });
      characters += text.length;
      while (kept.length > MOST_EVENTS || characters > MOST_CHARACTERS) {
        characters -= kept.shift()?.text.length ?? characters;
      }
      for (const response of streams) write(response, text);
    },
    last: () => idOf(last),
    open(response, lastEventId) {
      if (streams.size >= MOST_STREAMS) return false;
      response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
      const missed = lastEventId === undefined ? [] : behind(lastEventId);
      const gap = `id: ${idOf(last)}\nevent: gap\ndata: {}\n\n`;
      write(response, `: dev\n\n${missed?.map(({ text }) => text).join('') ?? gap}`);
      streams.add(response);
      const timer = setInterval(() => write(response, ': still here\n\n'), COMMENT_MS).unref();
      response.once('close', () => {
        clearInterval(timer);
        streams.delete(response);
      });
      return true;
    },
    close() {
      for (const response of streams) response.destroy();
    },
  };
}
