import type { RaiseAlarm } from '../alarms.ts';
import { Fault } from '../errors.ts';
import type { Event, EventWarning, ResultSchemas } from '../events/event.ts';
import { parseResult } from '../events/index.ts';
import { eventWarning } from '../events/warnings.ts';
import type { Handler, Handlers } from '../options.ts';
import type { Won } from './admit.ts';
import { announceEvent } from './announce.ts';
import { readFrom, type ReadContext } from './read.ts';

export interface HandleContext extends ReadContext {
  readonly handlers: Handlers;
  readonly resultSchemas: ResultSchemas | undefined;
  readonly raiseAlarm: RaiseAlarm;
}

/** The event as its handler gets it: the stored first copy where the payload changed, with what the store knows. */
export async function eventToHandle(won: Won, context: HandleContext): Promise<Event> {
  const { win } = won;
  const first = win.body ? firstCopy(won, win.body, context) : won.event;
  const terminal = won.claim.task?.terminal === true;
  const warnings: EventWarning[] = [...first.warnings];
  if (win.afterTerminal && !terminal) warnings.push(eventWarning('after_terminal'));
  if (win.afterFinal) warnings.push(eventWarning('report_after_final'));
  const event: Event = { ...first, reemission: win.reemission, warnings };
  announceEvent(event, win.afterTerminal && terminal, context.raiseAlarm);
  return context.resultSchemas ? parseResult(event, context.resultSchemas) : event;
}

function firstCopy(won: Won, body: Uint8Array, context: HandleContext): Event {
  const reading = readFrom(won.read.identity, body, context);
  if (reading.ok) return reading.event;
  throw new Fault('misconfigured', `the stored first copy cannot be read any more: ${reading.detail}`);
}

/** A handler of its own, or `other`. The table's types say that handler and event fit. */
export function handlerFor(handlers: Handlers, event: Event): Handler<never> {
  if (event.kind === 'task') return handlers[event.status] ?? handlers.other;
  return event.kind === 'delivery-report' ? (handlers.deliveryReport ?? handlers.other) : handlers.other;
}
