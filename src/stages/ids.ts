import { MAX_TEXT, printableText } from '../codec/printable.ts';
import type { Event } from '../events/event.ts';
import type { Handled } from '../handled-contract.ts';

/** What log lines and alarms call an event by, beside its sender, its key and its delivery id; a sender chose them. */
export function idsOf(event: Event | undefined): Pick<Handled, 'taskId' | 'operationId'> {
  if (!event) return {};
  const { operationId } = event;
  return {
    ...(event.kind === 'task' && { taskId: printableText(event.taskId, MAX_TEXT) }),
    ...(operationId !== undefined && { operationId: printableText(operationId, MAX_TEXT) }),
  };
}
