import type { RaiseAlarm } from '../alarms.ts';
import type { Event, ResultSchemas, WarningCode } from '../events/event.ts';
import { type Eventual, whenThere } from '../eventual.ts';
import type { Handler, Handlers } from '../options.ts';
import { announceEvent } from './announce.ts';
import type { ReadContext } from './read.ts';
import type { Won } from './won.ts';

export interface HandleContext extends ReadContext {
  readonly handlers: Handlers;
  readonly resultSchemas: ResultSchemas | undefined;
  readonly raiseAlarm: RaiseAlarm;
}

/** Few events have any, so the sentences are loaded for them. */
async function warned(event: Event, codes: readonly WarningCode[]): Promise<Event> {
  const { eventWarning } = await import('../events/warnings.ts');
  return { ...event, warnings: [...event.warnings, ...codes.map((code) => eventWarning(code))] };
}

async function parsed(event: Event, schemas: ResultSchemas): Promise<Event> {
  const { parseResult } = await import('../events/result-schemas.ts');
  return parseResult(event, schemas);
}

/** The event as its handler gets it: the first copy, with what the store knows. */
export function eventToHandle(won: Won, { resultSchemas, raiseAlarm }: HandleContext): Eventual<Event> {
  const { reemission, afterTerminal, afterFinal } = won.place;
  const { event: first, terminal } = won.firstCopy();
  const codes: WarningCode[] = [];
  if (afterTerminal && !terminal) codes.push('after_terminal');
  if (afterFinal) codes.push('report_after_final');
  const own: Event = { ...first, reemission };
  return whenThere(codes.length === 0 ? own : warned(own, codes), (event) => {
    announceEvent(event, afterTerminal && terminal, raiseAlarm);
    return resultSchemas ? parsed(event, resultSchemas) : event;
  });
}

/** A handler of its own, or `other`. The table's types say that handler and event fit. */
export function handlerFor(handlers: Handlers, event: Event): Handler<never> {
  if (event.kind === 'task') return handlers[event.status] ?? handlers.other;
  return event.kind === 'delivery-report' ? (handlers.deliveryReport ?? handlers.other) : handlers.other;
}
