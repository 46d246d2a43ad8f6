// Parses server-sent events from text that arrives in pieces (dev.md §4.3). follow.ts passes the pieces.

/** One server-sent event. */
export interface StreamedEvent {
  /** The type of the event. Default: `message`. */
  readonly type: string;
  readonly data: string;
  /** The id of this event. If the event has none, the id of the latest earlier event that had one. */
  readonly id: string;
}

/** Takes the next piece of a stream's text, of any length, and returns the events that end in this piece. */
export type EventReader = (text: string) => readonly StreamedEvent[];

const LINE_END = /\r\n|\n|\r/g;

/**
 * Makes a parser of server-sent events (HTML, "Interpreting an event stream"). The browser's `EventSource` is of no
 * use, because it cannot send the header `Authorization`.
 */
export function eventReader(): EventReader {
  let pending = '';
  let endedWithReturn = false;
  let lastId = '';
  let type = '';
  let data: string[] = [];
  const read = (line: string): StreamedEvent | undefined => {
    if (line === '') {
      const event = { type: type || 'message', data: data.join('\n'), id: lastId };
      const isEmpty = data.length === 0;
      type = '';
      data = [];
      return isEmpty ? undefined : event;
    }
    const colon = line.indexOf(':');
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(line.charAt(colon + 1) === ' ' ? colon + 2 : colon + 1);
    if (name === 'data') data.push(value);
    else if (name === 'event') type = value;
    else if (name === 'id' && !value.includes('\0')) lastId = value;
    return undefined;
  };
  return (text) => {
    if (text === '') return [];
    // If the previous piece ended with CR, an LF at the start of this piece belongs to the same line end (CRLF).
    const added = endedWithReturn && text.startsWith('\n') ? text.slice(1) : text;
    endedWithReturn = text.endsWith('\r');
    const events: StreamedEvent[] = [];
    let start = 0;
    for (const { 0: end, index } of added.matchAll(LINE_END)) {
      const event = read(pending + added.slice(start, index));
      if (event) events.push(event);
      pending = '';
      start = index + end.length;
    }
    pending += added.slice(start);
    return events;
  };
}
