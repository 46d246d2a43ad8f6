import { canonicalJson } from '../codec/canonical-json.ts';
import type { Event, WarningCode } from '../events/event.ts';
import type { EventRegistrations, KnownRegistration } from '../events/registration.ts';
import { mediaBuyIn, type OperationFound, type OperationSeen } from './operation.ts';
import type { Operations } from './operations.ts';

/**
 * Finds the operation of an event. The ids in an event are claims of the seller: one that does not fit is a warning, settles
 * nothing, and refuses nothing.
 */
export function ofEvent({ find }: Pick<Operations, 'find'>): EventRegistrations['ofEvent'] {
  return async (event) => {
    const { sender, operationId } = event;
    // Empty where an answer ended the operation.
    const taskId = event.taskId === '' ? undefined : event.taskId;
    const mediaBuyId = mediaBuyOf(event);
    // No id to look for: the store is not read.
    if (operationId === undefined && taskId === undefined && mediaBuyId === undefined) return undefined;
    const told = {
      agentUrl: sender,
      ...(operationId !== undefined && { operationId }),
      ...(taskId !== undefined && { taskId }),
      ...(mediaBuyId !== undefined && { mediaBuyId }),
      ...(event.kind === 'task' && { status: event.status }),
      isWebhook: event.source === 'webhook',
    };
    return knownOf(event, await find(told));
  };
}

/** The media buy that an event is about; of a report that is about several, none. */
function mediaBuyOf(event: Event): string | undefined {
  if (event.kind !== 'delivery-report') return mediaBuyIn(event.data);
  const ids = new Set((event.report.media_buy_deliveries ?? []).map(({ media_buy_id: id }) => id));
  const [only] = ids;
  return ids.size === 1 ? only : undefined;
}

function knownOf(event: Event, found: OperationFound | undefined): KnownRegistration {
  if (!found) return { warnings: event.operationId === undefined ? [] : ['operation_id_unknown'] };
  const { operation, isMismatch } = found;
  const { operationId, ref, taskType, createdAt } = operation;
  const warnings: WarningCode[] = [];
  if (isMismatch) warnings.push('operation_id_mismatch');
  if (!hasContext(event, operation)) warnings.push('context_mismatch');
  return {
    registration: { operationId, taskType, createdAt, ...(ref !== undefined && { ref }) },
    warnings,
  };
}

/**
 * Whether the event repeats the context of the call (a context among the arguments is not known here). Deliveries of a task have
 * to; other events may leave it out.
 */
function hasContext({ kind, context }: Event, operation: OperationSeen): boolean {
  const isAbsent = context === undefined || context === null;
  if (operation.context === undefined || (isAbsent && kind !== 'task')) return true;
  return canonicalJson(context) === canonicalJson(operation.context);
}
