import type { RaiseAlarm } from '../alarms.ts';
import type { Event, OtherEvent, ResultSchemas, WarningCode } from '../events/event.ts';
import type { EventRegistrations } from '../events/registration.ts';
import { type Eventual, whenThere } from '../eventual.ts';
import { notificationFamily } from '../events/notification-family.ts';
import type { Handler, Handlers, NotificationHandlers } from '../options.ts';
import { announceEvent } from './announce.ts';
import type { ReadContext } from './read.ts';
import type { Won } from './won.ts';

export interface HandleContext extends ReadContext {
  readonly handlers: Handlers;
  readonly resultSchemas: ResultSchemas | undefined;
  readonly registrations: EventRegistrations | undefined;
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

/**
 * The event as its handler gets it: the first copy, with what the store knows, and what was registered. Rejects where that
 * cannot be looked up now: no handler has run.
 */
export function eventToHandle(
  won: Won,
  { registrations, resultSchemas, raiseAlarm }: HandleContext,
): Eventual<Event> {
  const { reemission, afterTerminal, afterFinal } = won.place;
  const { event: first, terminal } = won.firstCopy();
  const codes: WarningCode[] = [];
  if (afterTerminal && !terminal) codes.push('after_terminal');
  if (afterFinal) codes.push('report_after_final');
  const made = whenThere(registrations?.ofEvent(first), (known) => {
    const { registration, warnings = [] } = known ?? {};
    codes.push(...warnings);
    const own: Event = { ...first, reemission, ...(registration && { registration }) };
    return codes.length === 0 ? own : warned(own, codes);
  });
  return whenThere(made, (own) => {
    announceEvent(own, afterTerminal && terminal, raiseAlarm);
    return resultSchemas ? parsed(own, resultSchemas) : own;
  });
}

/**
 * Kind `other` (verification.md §7.38): by its exact name, else as one of the wholesale feed; none where its payload
 * does not fit.
 */
function notificationHandler(
  notifications: NotificationHandlers,
  { family, warnings }: OtherEvent,
): Handler<never> | undefined {
  if (family === undefined || warnings.some(({ code }) => code === 'invalid_notification')) return undefined;
  // `hasOwn`: a family called `constructor` has no handler.
  const name = [family, notificationFamily(family)].find((one) => Object.hasOwn(notifications, one));
  return name === undefined ? undefined : notifications[name];
}

/** By the kind of event: its own handler, if any. The tables' types say that handler and event fit. */
const HANDLER: {
  readonly [K in Event['kind']]: (
    handlers: Handlers,
    event: Extract<Event, { kind: K }>,
  ) => Handler<never> | undefined;
} = {
  task: (handlers, { status }) => handlers[status],
  'delivery-report': ({ deliveryReport }) => deliveryReport,
  other: ({ notifications }, event) => notifications && notificationHandler(notifications, event),
};

/** A handler of its own, or `other`. */
export function handlerFor(handlers: Handlers, event: Event): Handler<never> {
  return HANDLER[event.kind](handlers, event as never) ?? handlers.other;
}
