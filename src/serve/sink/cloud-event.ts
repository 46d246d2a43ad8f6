// Turns an event into a CloudEvents 1.0 event in its JSON form (serve.md §2.3). The HTTP sink sends it.
import type { Event } from '../../events/event.ts';
import type { SinkAttempt } from './sink.ts';

/** The media type of an event in structured mode. */
export const CLOUD_EVENT_TYPE = 'application/cloudevents+json; charset=utf-8';

/**
 * A CloudEvents 1.0 event in its JSON form (serve.md §2.3). Members without a value are left out, because CloudEvents
 * allows no empty value.
 */
export interface CloudEvent {
  readonly specversion: '1.0';
  readonly id: string;
  readonly source: string;
  readonly type: string;
  readonly subject?: string;
  readonly time?: string;
  readonly datacontenttype: 'application/json';
  readonly channel?: 'response' | 'poll' | 'pull';
  readonly repeated: boolean;
  readonly warnings?: string;
  readonly data: Event;
}

export function cloudEvent({ event, id, repeated }: Omit<SinkAttempt, 'signal' | 'log' | 'run'>): CloudEvent {
  const subject = subjectOf(event);
  const time = timeOf(event);
  const { source, warnings } = event;
  return {
    specversion: '1.0',
    id,
    source: uriOf(event.sender),
    type: typeOf(event),
    ...(subject !== undefined && { subject }),
    ...(time !== undefined && { time }),
    datacontenttype: 'application/json',
    ...(source !== 'webhook' && { channel: source }),
    repeated: repeated || wasToldBefore(event),
    ...(warnings.length > 0 && { warnings: warnings.map(({ code }) => code).join(' ') }),
    data: event,
  };
}

/**
 * Matches a `%` that begins no escape, and characters that a URI may not have. The URLs that owners configure may
 * contain both.
 */
const NOT_OF_URIS = /%(?![\dA-Fa-f]{2})|[^\w.~:/?#[\]@!$&'()*+,;=%-]/gu;

const uriOf = (url: string): string => url.toWellFormed().replaceAll(NOT_OF_URIS, encodeURIComponent);

/** Returns the `type` of the event's CloudEvent. */
export function typeOf(event: Event): string {
  const name = nameOf(event);
  const words = ['proto', event.kind, ...(name ? [name] : [])];
  return words.join('.').replaceAll(/[^A-Za-z0-9._-]/gu, '_');
}

function nameOf(event: Event): string | undefined {
  switch (event.kind) {
    case 'task':
      return event.status;
    case 'delivery-report':
      return event.report.notification_type;
    case 'other':
      return event.family;
  }
}

/**
 * Characters that are not allowed in strings of a CloudEvent: control characters and noncharacters. Lone surrogates are
 * replaced before.
 */
const NOT_OF_STRINGS = /[\p{Cc}\p{Noncharacter_Code_Point}]/gu;

/** Returns the id of the event's task; if there is none, the id of the one media buy that the event names. */
function subjectOf(event: Event): string | undefined {
  // An empty `taskId` means that there is no task: a seller's first answer to a call may name none.
  const id = event.taskId ? event.taskId : mediaBuyOf(event);
  return id ? id.toWellFormed().replaceAll(NOT_OF_STRINGS, '\uFFFD') : undefined;
}

function mediaBuyOf(event: Event): string | undefined {
  if (event.kind === 'delivery-report') {
    const ids = new Set(event.report.media_buy_deliveries?.map(({ media_buy_id }) => media_buy_id));
    return ids.size === 1 ? [...ids][0] : undefined;
  }
  if (event.kind === 'other' && event.state?.mediaBuyId !== undefined) return event.state.mediaBuyId;
  return idIn(event.data) ?? idIn(event.envelope);
}

function idIn(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, 'media_buy_id')) return undefined;
  const { media_buy_id: id } = value as { readonly media_buy_id: unknown };
  return typeof id === 'string' && id !== '' ? id : undefined;
}

/**
 * Matches times as in RFC 3339, and in other forms that a receiver accepts: with a space, lower-case letters, or a zone
 * without its colon.
 */
const DATE_TIME =
  /^(\d{4}-\d\d-\d\d)[Tt ]((?:[01]\d|2[0-3]):\d\d:\d\d(?:\.\d{1,64})?)(?:([Zz])|([+-]\d\d):?(\d\d))$/;

/** Returns the event's time in the form that parsers of all languages accept; undefined if it is no valid time. */
function timeOf({ timestamp }: Event): string | undefined {
  const [, date, time, utc, hours, minutes] = DATE_TIME.exec(timestamp ?? '') ?? [];
  if (date === undefined || time === undefined) return undefined;
  const text = `${date}T${time}${utc === undefined ? `${hours}:${minutes}` : 'Z'}`;
  return isDay(date) && !Number.isNaN(Date.parse(text)) ? text : undefined;
}

/** True for a day that exists. `Date` would turn 31 February into a day in March. */
const isDay = (date: string): boolean => {
  if (date.slice(8) <= '28') return true;
  const day = new Date(`${date}T00:00:00Z`);
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(date);
};

/** True if another event has reported the same report window, or the same state, before. */
function wasToldBefore(event: Event): boolean {
  if (event.kind === 'delivery-report') return event.windows?.some(({ repeated }) => repeated) ?? false;
  return event.kind === 'other' && (event.state?.repeated ?? false);
}
