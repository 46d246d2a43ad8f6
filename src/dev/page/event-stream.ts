// Parses server-sent events from text that comes in pieces (dev.md §4.3). follow.ts feeds it.

/** One event of a stream. */
export interface StreamedEvent {
  /** The type; `message` if the stream names none. */
  readonly type: string;
  readonly data: string;
  /** The id of this event. If the event has none, the id of the last event that had one. */
  readonly id: string;
}

/** Takes the text of a stream as it comes, in pieces of any length, and returns the events that are complete with it. */
export type EventReader = (text: string) => readonly StreamedEvent[];

const LINE_END = /\r\n|\n|\r/g;

/** Reads server-sent events (HTML, "Interpreting an event stream"). `EventSource` cannot send the header `Authorization`. */
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
    // The former piece ended with CR. If this piece begins with LF, the two are one line end (CRLF).
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
