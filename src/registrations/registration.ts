import type { Logger } from '../alarms.ts';
import { oneOf } from '../config/validate.ts';
import { Fault } from '../errors.ts';
import type { Transport } from '../events/event.ts';
import type { Observe } from '../events/observation.ts';
import { isTerminal } from '../events/status.ts';
import { answerIn, callRefusalIn, isFinal, refusalIn, type SellerErrorCode } from './answer.ts';
import { requireCall } from './checks.ts';
import type { JsonObject } from './json.ts';
import { mediaBuyIn, type OperationName, type SellerAnswer, type Settled } from './operation.ts';
import type { Operation, Operations } from './operations.ts';
import { agentConfiguration, agentRequest, type AgentVersion, toolArguments } from './request.ts';
import { checked } from './seller.ts';

/** Calls an operation of a seller: the caller's own client. */
export interface CallSeller {
  (
    agentUrl: string,
    operation: string,
    args: JsonObject,
    options: { readonly signal: AbortSignal },
  ): Promise<unknown>;
  /** By which transport; the tool transport unless it says. A poller asks accordingly. */
  readonly transport?: Transport;
}

/** An operation that is registered, and how to call it. */
export interface Registration extends OperationName {
  /** Calls it, once more without the registration where the seller refuses that, and settles it. @throws SellerError */
  readonly call: (call: CallSeller, signal?: AbortSignal) => Promise<unknown>;
  /** For a call by hand over the tool transport; then `settle`. */
  readonly toolArguments: JsonObject;
  /** `configuration` of a call by hand over the agent transport. */
  readonly agentConfiguration: (version?: AgentVersion) => JsonObject;
  /** `message` and `configuration`. */
  readonly agentRequest: (version?: AgentVersion) => JsonObject;
  /** What the seller has answered, as it came. @throws SellerError */
  readonly settle: (answer: unknown) => Promise<Settled>;
}

/** What a registration works with. */
export interface RegistrationContext {
  readonly operations: Operations;
  readonly logger: Logger;
  /** Of a receiver in this process that has these registrations. */
  readonly observe: Observe | undefined;
  /** It was called before, and that call was not answered. */
  readonly isRepeat?: boolean;
}

/** Refusals for who calls: a repeated call that gets one says nothing of the call before it. */
const OF_CREDENTIALS: ReadonlySet<string> = new Set<SellerErrorCode>([
  'AUTH_REQUIRED',
  'AUTH_INVALID',
  'INSUFFICIENT_PERMISSIONS',
]);

export function registrationOf(
  operation: Operation,
  { operations, logger, observe, isRepeat = false }: RegistrationContext,
): Registration {
  const { agentUrl, operationId, call: is } = operation;
  const of = { agentUrl, operationId };
  /** Whether it may be called once more, as what; else the refusal is the caller's. */
  const refused = async (asked: Operation, answer: unknown): Promise<Operation | undefined> => {
    const refusal = callRefusalIn(answer);
    if (!refusal) return undefined;
    const again = refusal.code === 'INVALID_REQUEST' ? await operations.refuse(asked) : undefined;
    if (again) return again;
    const isOpen = isRepeat && OF_CREDENTIALS.has(refusal.code);
    if (isFinal(refusal) && !isOpen) await operations.reject(asked);
    throw refusal;
  };
  const settle = async (given: unknown): Promise<Settled> => {
    const answer = answerIn(given, is.taskType);
    // Safe before the call counts as answered: where the process dies between, it is repeated, and gives the same event.
    if (observe && isTerminal(answer.status)) await observeAnswer(observe, operation, answer);
    const mediaBuyId = mediaBuyIn(answer.data);
    const done = await operations.settle(of, {
      ...answer,
      ...(mediaBuyId !== undefined && { mediaBuyId }),
    });
    const warning = WARNINGS[done];
    if (warning !== undefined) logger.warn({ sender: agentUrl, operationId }, warning);
    return done;
  };
  return {
    ...of,
    call: async (call, signal = new AbortController().signal) => {
      requireCall(call, signal);
      const ask = async (asked: Operation): Promise<unknown> => {
        try {
          return await call(agentUrl, is.taskType, toolArguments(asked.call), { signal });
        } catch (error) {
          return refusalThrown(error);
        }
      };
      let answer: unknown;
      for (let asked: Operation | undefined = operation; asked; asked = await refused(asked, answer)) {
        answer = await ask(asked);
      }
      await settle(answer);
      return answer;
    },
    toolArguments: toolArguments(is),
    agentConfiguration: (version) => agentConfiguration(is, requireVersion(version)),
    agentRequest: (version) => agentRequest(is, requireVersion(version)),
    settle: async (answer) => {
      const refusal = callRefusalIn(answer);
      if (!refusal) return settle(answer);
      if (isFinal(refusal)) await operations.reject(operation);
      throw refusal;
    },
  };
}

const WARNINGS: Partial<Readonly<Record<Settled, string>>> = {
  'task-taken':
    "The seller answers with a task_id that is another operation's already: events of the task that name no operation_id are that one's.",
  'other-task':
    'The seller answers with another task_id than it has told before: both tasks are polled, and events of the former have the warning operation_id_mismatch.',
};

/** @throws RegistrationError */
function requireVersion(version: AgentVersion | undefined): AgentVersion {
  return checked(() => oneOf('version', version, ['0.3', '1.0'])) ?? '0.3';
}

/** A refusal that a client threw is an answer. @throws any other error: the call may have been made, and is repeated. */
function refusalThrown(error: unknown): unknown {
  const refusal = refusalIn(error);
  if (refusal) return refusal;
  throw error;
}

/** The answer that ends an operation, as an event. @throws Fault where it cannot be kept now. */
async function observeAnswer(
  observe: Observe,
  { agentUrl: sender, operationId, call }: Operation,
  { status, taskId, data }: SellerAnswer,
): Promise<void> {
  const { taskType, context } = call;
  const observed = await observe({
    sender,
    operationId,
    taskType,
    status,
    ...(taskId !== undefined && { taskId }),
    ...(data !== undefined && { data }),
    ...(context !== undefined && { context }),
    askedAt: Date.now(),
    source: 'response',
    observation: 'answer',
  });
  if (observed.kind === 'refused') {
    throw new Fault('overloaded', `The answer of ${taskType} is not kept: ${observed.detail}`);
  }
}
