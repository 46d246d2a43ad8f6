import type { RaiseAlarm } from '../alarms.ts';
import type { Event, EventWarning, ResultSchemas } from '../events/event.ts';
import { parseResult } from '../events/result-schemas.ts';
import { eventWarning } from '../events/warnings.ts';
import type { Handler, Handlers } from '../options.ts';
import { announceEvent } from './announce.ts';
import type { ReadContext } from './read.ts';
import type { Won } from './won.ts';

export interface HandleContext extends ReadContext {
  readonly handlers: Handlers;
  readonly resultSchemas: ResultSchemas | undefined;
  readonly raiseAlarm: RaiseAlarm;
}

/** The event as its handler gets it: the first copy, with what the store knows. */
export function eventToHandle(won: Won, context: HandleContext): Event | Promise<Event> {
  const { reemission, afterTerminal, afterFinal } = won.place;
  const { event: first, terminal } = won.firstCopy();
  const warnings: EventWarning[] = [...first.warnings];
  if (afterTerminal && !terminal) warnings.push(eventWarning('after_terminal'));
  if (afterFinal) warnings.push(eventWarning('report_after_final'));
  const event: Event = { ...first, reemission, warnings };
  announceEvent(event, afterTerminal && terminal, context.raiseAlarm);
  return context.resultSchemas ? parseResult(event, context.resultSchemas) : event;
}

/** A handler of its own, or `other`. The table's types say that handler and event fit. */
export function handlerFor(handlers: Handlers, event: Event): Handler<never> {
  if (event.kind === 'task') return handlers[event.status] ?? handlers.other;
  return event.kind === 'delivery-report' ? (handlers.deliveryReport ?? handlers.other) : handlers.other;
}
