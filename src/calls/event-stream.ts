import { AnswerRefusedError } from './refused-answer.ts';

/** One event of a stream, or what stands between two. */
export interface StreamEvent {
  /** Undefined: the stream has said something of itself alone, its id or `retry`. */
  readonly data?: string;
  /** Of the last event that has named one. */
  readonly lastId?: string;
  /** For how long to wait before the stream is asked for again, ms, as the server says. */
  readonly retryMs?: number;
}

/** What is known of the stream so far. */
interface Reading {
  lines: string[];
  type: string;
  lastId: string | undefined;
  retryMs: number | undefined;
}

const LINE_END = /\r\n|\n|\r/g;

/** Lines that may still be read, of one stream or several: each costs more than its few bytes. */
export interface LinesLeft {
  lines: number;
}

/**
 * Reads server-sent events (HTML, "Interpreting an event stream"). An event of another type than `message` has no data here. It keeps
 * no more than one event: whoever gives the chunks counts them.
 * @throws AnswerRefusedError where there are more lines than are left.
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
    // Its second half, and not the end of another line.
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

/** @returns what is to be told once a line has been read. */
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
