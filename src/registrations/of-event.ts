// Finds the operation (registered call) of an event, and adds warnings if parts of the event do not fit that operation
// (verification.md §6.9). The receiver calls it for each event, through `createReceiver({ registrations })`.
import { comparedWith } from '../auth/credentials.ts';
import { canonicalJson } from '../codec/canonical-json.ts';
import { isJsonObject, present } from '../codec/members.ts';
import type { Hashes } from '../crypto/engine.ts';
import type { WarningCode } from '../shared/codes.ts';
import type { Event } from '../events/event.ts';
import { agentPayload, agentTaskId } from '../events/format.ts';
import type { EventRegistrations, KnownRegistration } from '../events/event-registration.ts';
import {
  endingIn,
  mediaBuyIn,
  type OperationFound,
  type OperationSeen,
  type OperationTold,
} from './operation.ts';
import type { Operations } from './operations.ts';
import { operationToken, type Secrets } from './secrets.ts';
import { reportedText } from './seller-error.ts';

/**
 * Returns a function that finds the operation of an event. The seller chooses the ids in an event. So an id that does
 * not fit the operation causes only a warning: nothing is settled, and nothing is refused.
 */
export function ofEvent(
  { find }: Pick<Operations, 'find'>,
  tokens: TokenMaker,
): EventRegistrations['ofEvent'] {
  return async (event) => {
    const { sender, operationId } = event;
    // `taskId` is empty if the operation ended by the answer to its call, and the answer named no task.
    const taskId = event.taskId === '' ? undefined : event.taskId;
    const mediaBuyId = mediaBuyOf(event);
    // Without an id there is nothing to look up, so the store is not read.
    if (operationId === undefined && taskId === undefined && mediaBuyId === undefined) return undefined;
    const told = {
      agentUrl: sender,
      ...(operationId !== undefined && { operationId }),
      ...(taskId !== undefined && { taskId }),
      ...callOf(event),
      ...(mediaBuyId !== undefined && { mediaBuyId }),
      ...(event.kind === 'task' && { status: event.status, ...endingOf(event) }),
      ...reasonOf(event),
      isWebhook: event.source === 'webhook',
    };
    return knownOf(event, await find(told), tokens);
  };
}

/** Returns the text of the seller's error if a task's event has one; otherwise an empty object. */
function reasonOf(event: Event): Pick<OperationTold, 'reason'> {
  const reason = event.kind === 'task' && event.error ? reportedText(event.error) : '';
  return reason === '' ? {} : { reason };
}

/**
 * Returns the id of the A2A Task that carried the event, if it is another id than that of the event's task (calls.md
 * §1.5).
 */
function callOf({ transport, envelope, taskId }: Event): { readonly callTaskId?: string } {
  const found = transport === 'agent' && isJsonObject(envelope) ? agentPayload(envelope) : undefined;
  const callTaskId = found && found !== 'malformed' ? agentTaskId(found.body) : undefined;
  return callTaskId === undefined || callTaskId === taskId ? {} : { callTaskId };
}

function endingOf({ data }: Event): Pick<OperationTold, 'ending'> {
  const ending = endingIn(data);
  return ending === undefined ? {} : { ending };
}

/**
 * Returns the id of the media buy that an event is about; undefined for a report about several media buys. If this
 * library requested a state from the seller, the library built the event's envelope, which names the media buy.
 */
function mediaBuyOf(event: Event): string | undefined {
  if (event.kind === 'other' && event.source === 'pull') return mediaBuyIn(event.envelope);
  if (event.kind !== 'delivery-report') return mediaBuyIn(event.data);
  const ids = new Set((event.report.media_buy_deliveries ?? []).map(({ media_buy_id: id }) => id));
  const [only] = ids;
  return ids.size === 1 ? only : undefined;
}

function knownOf(event: Event, found: OperationFound | undefined, tokens: TokenMaker): KnownRegistration {
  if (!found) return { warnings: event.operationId === undefined ? [] : ['operation_id_unknown'] };
  const { operation, isMismatch } = found;
  const { operationId, ref, taskType, createdAt, isStep } = operation;
  // A handler may book an order by `ref`. So an event of a task that only moves a URL (`isStep`) gets no `ref` (told.md
  // §3.2). A report belongs to the media buy, and gets the media buy's `ref`.
  const whose = isStep && event.kind === 'task' ? { isStep } : { ...(ref !== undefined && { ref }) };
  const warnings: WarningCode[] = [];
  if (isMismatch) warnings.push('operation_id_mismatch');
  if (!hasContext(event, operation)) warnings.push('context_mismatch');
  const wrongToken = tokenWarning(event, found, tokens);
  if (wrongToken) warnings.push(wrongToken);
  return {
    registration: { operationId, taskType, createdAt, ...whose },
    warnings,
  };
}

/** The secrets and hashes from which the tokens of operations are derived. */
export interface TokenMaker {
  readonly secrets: Secrets;
  readonly hashes: Hashes;
}

/**
 * Returns the token that the call asked the seller to repeat in webhooks. Undefined if the call asked for none, or if
 * the secret from which the token was derived was removed.
 */
export function tokenOf(
  { operation, token }: OperationFound,
  { secrets, hashes }: TokenMaker,
): string | undefined {
  const secret = token === undefined ? undefined : secrets.named(token);
  return secret && operationToken(secret, hashes, operation.operationId);
}

/** Returns a function that finds the token which an event of a task must repeat. */
export function tokenOfEvent(
  { find }: Pick<Operations, 'find'>,
  tokens: TokenMaker,
): NonNullable<EventRegistrations['tokenOf']> {
  return async ({ sender: agentUrl, operationId, taskId }) => {
    const found = await find({
      agentUrl,
      ...(operationId !== undefined && { operationId }),
      ...(taskId !== undefined && { taskId }),
    });
    return found && tokenOf(found, tokens);
  };
}

/**
 * Returns a warning if a webhook does not repeat the token of its operation. Only the tool transport is compared, where
 * the token is a member of the task's envelope (verification.md §6.9).
 */
function tokenWarning(event: Event, found: OperationFound, tokens: TokenMaker): WarningCode | undefined {
  if (event.kind !== 'task' || event.source !== 'webhook' || event.transport !== 'tool') return undefined;
  const wanted = tokenOf(found, tokens);
  if (wanted === undefined || found.isMismatch) return undefined;
  const given = present(event.envelope, 'token');
  if (given === undefined) return 'token_missing';
  const fits = typeof given === 'string' && comparedWith(given, tokens.hashes)([wanted]);
  return fits ? undefined : 'token_mismatch';
}

/**
 * True unless the event's context differs from the context of the call. A context inside the call's own arguments is
 * not stored, so it is not compared. Events of a task must have the context; other events may leave it out.
 */
function hasContext({ kind, context }: Event, operation: OperationSeen): boolean {
  const isAbsent = context === undefined || context === null;
  if (operation.context === undefined || (isAbsent && kind !== 'task')) return true;
  return canonicalJson(context) === canonicalJson(operation.context);
}
