// Reads server-sent events from the chunks of an answer, one event at a time (calls.md §4.7). Used by the tool
// transport (MCP).
import { AnswerRefusedError } from './refused-answer.ts';

/** One event of a stream. Without `data`, the stream has only sent the other fields. */
export interface StreamEvent {
  /** The data; undefined: the stream has only sent an id or `retry`. */
  readonly data?: string;
  /** The latest id that the stream has sent. */
  readonly lastId?: string;
  /** The wait before the stream is requested again, as the server states it, ms. */
  readonly retryMs?: number;
}

/** The lines and fields of the event that is being read. */
interface Reading {
  lines: string[];
  type: string;
  lastId: string | undefined;
  retryMs: number | undefined;
}

const LINE_END = /\r\n|\n|\r/g;

/**
 * The number of lines that may still be read from one or several streams. Lines are limited, because each costs more
 * memory than its few bytes.
 */
export interface LinesLeft {
  lines: number;
}

/**
 * Reads server-sent events (HTML, "Interpreting an event stream"). An event of another type than `message` is returned
 * without data. Only one event is kept in memory; the caller counts the bytes of the chunks.
 * @throws AnswerRefusedError if there are more lines than `left` allows.
 */
export async function* eventsOf(
  chunks: AsyncIterable<Uint8Array>,
  left: LinesLeft,
): AsyncGenerator<StreamEvent> {
  const decoder = new TextDecoder();
  const reading: Reading = { lines: [], type: '', lastId: undefined, retryMs: undefined };
  let pending = '';
  let endedWithReturn = false;
  for await (const chunk of chunks) {
    let text = decoder.decode(chunk, { stream: true });
    if (text === '') continue;
    // A line feed after a carriage return at the end of the previous chunk belongs to the same line end.
    if (endedWithReturn && text.startsWith('\n')) text = text.slice(1);
    endedWithReturn = text.endsWith('\r');
    let start = 0;
    for (const { 0: end, index } of text.matchAll(LINE_END)) {
      const line = pending + text.slice(start, index);
      pending = '';
      start = index + end.length;
      left.lines -= 1;
      if (left.lines < 0) throw new AnswerRefusedError('its stream has too many lines');
      const event = readLine(reading, line);
      if (event) yield event;
    }
    pending += text.slice(start);
  }
}

/** Processes one line of the stream. @returns the event, if the line completes one. */
function readLine(reading: Reading, line: string): StreamEvent | undefined {
  if (line === '') return dispatched(reading);
  const colon = line.indexOf(':');
  const name = colon < 0 ? line : line.slice(0, colon);
  const value = colon < 0 ? '' : line.slice(line.charAt(colon + 1) === ' ' ? colon + 2 : colon + 1);
  if (name === 'data') reading.lines.push(value);
  else if (name === 'event') reading.type = value;
  else if (name === 'id' && !value.includes('\0')) reading.lastId = value;
  else if (name === 'retry' && /^\d+$/.test(value)) reading.retryMs = Number(value);
  return undefined;
}

function dispatched(reading: Reading): StreamEvent | undefined {
  const { lines, type, lastId, retryMs } = reading;
  reading.lines = [];
  reading.type = '';
  const isMessage = lines.length > 0 && (type === '' || type === 'message');
  if (!isMessage && lastId === undefined && retryMs === undefined) return undefined;
  return {
    ...(isMessage && { data: lines.join('\n') }),
    ...(lastId !== undefined && { lastId }),
    ...(retryMs !== undefined && { retryMs }),
  };
}
