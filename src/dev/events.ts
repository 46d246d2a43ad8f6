// Sends the server-sent events of the API, and keeps the latest for readers that come back (dev.md §4.3). dev.ts
// emits them; the API opens streams.
import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { DevEvents } from './wire.ts';

/** The most events that are kept for readers that come back, and their characters together. */
const MOST_EVENTS = 1_000;
const MOST_CHARACTERS = 2 * 1024 * 1024;
const MOST_STREAMS = 16;
const COMMENT_MS = 10_000;
/**
 * The bytes that a reader may leave unread: more than all that is kept. A slower reader is dropped, and comes back.
 */
const MOST_UNREAD = 8 * 1024 * 1024;

interface Kept {
  readonly number: number;
  readonly text: string;
}

/** Server-sent events (dev.md §4.3). */
export interface EventStreams {
  readonly emit: <K extends keyof DevEvents>(name: K, data: DevEvents[K]) => void;
  /** The id of the last event. */
  readonly last: () => string;
  /**
   * Writes events to the answer until it is closed.
   * @param lastEventId of the request; absent: events from now on.
   * @returns false: there are too many streams, and nothing was written.
   */
  readonly open: (response: ServerResponse, lastEventId: string | undefined) => boolean;
  /** Ends every stream. */
  readonly close: () => void;
}

/** Makes the ring of events, and their streams. */
export function createEvents(): EventStreams {
  // The random part of ids, so that numbers of two starts are not mixed.
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

  /** The events that follow one; undefined if they are not kept. */
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
