// Makes the call of a registered operation, or takes an answer to a call that its owner made, and settles the
// operation. `registrations.create` returns it; `start` uses it to repeat calls.
import type { RaiseAlarm } from '../shared/alarms.ts';
import type { SafeLogger } from '../shared/logging.ts';
import { oneOf } from '../config/validate.ts';
import { Fault } from '../shared/errors.ts';
import type { Observe } from '../events/observation.ts';
import { isTerminal } from '../events/status.ts';
import { answerIn, refusalIn } from './answer.ts';
import { attemptsOf } from './attempts.ts';
import type { JsonObject } from './answer-json.ts';
import type { AskedSeller, CallSeller } from './call-seller.ts';
import {
  endingIn,
  mediaBuyIn,
  type OperationName,
  reasonIn,
  type SellerAnswer,
  type Settled,
} from './operation.ts';
import type { Operation, Operations } from './registrations-contract.ts';
import { agentConfiguration, agentRequest, type AgentVersion, toolArguments } from './request.ts';
import { checked } from './seller.ts';

/** Options of `registration.call`, which calls the seller: a signal that aborts the call. */
export interface CallOptions {
  /** Aborts the call. It is then unknown if the seller performed it, and the call is repeated. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * A call to a seller that `registrations.create` has stored and returned, so that its webhooks are recognised. Make the
 * call with `call`, or with a client of yours followed by `settle`.
 */
export interface Registration extends OperationName {
  /**
   * Calls the operation with the client of `createRegistrations({ call })`, and settles it. If the seller refuses the
   * registration of webhooks, it calls once more without it.
   * @throws SellerError (rejects)
   */
  readonly call: (options?: CallOptions) => Promise<unknown>;
  /** The arguments for a call with your own client over the tool transport. Pass the answer to `settle`. */
  readonly toolArguments: JsonObject;
  /** Returns the `configuration` for a call with your own client over the agent transport. */
  readonly agentConfiguration: (version?: AgentVersion) => JsonObject;
  /** Returns `message` and `configuration` for a call with your own client over the agent transport. */
  readonly agentRequest: (version?: AgentVersion) => JsonObject;
  /**
   * Records the seller's answer to a call with your own client. Pass the answer unchanged.
   * @throws SellerError (rejects)
   */
  readonly settle: (answer: unknown) => Promise<Settled>;
  /**
   * Returns the same operation without the registration of webhooks and with another request key. Use it if `settle`
   * rejected with `INVALID_REQUEST`: call the returned operation once more and settle it. Undefined if the call
   * registered no webhooks.
   */
  readonly again: () => Registration | undefined;
}

/** A registration without a client of its own: `callBy` is given the client. */
export interface AnyonesRegistration extends Omit<Registration, 'call' | 'again'> {
  readonly callBy: (call: CallSeller, signal: AbortSignal) => Promise<unknown>;
  readonly again: () => AnyonesRegistration | undefined;
}

/** The parts that a registration works with. */
export interface RegistrationContext {
  readonly operations: Operations;
  readonly logger: SafeLogger;
  /**
   * Returns the function that hands a final answer to the receiver of this process. Undefined if no receiver has these
   * registrations.
   */
  readonly observe: () => Observe | undefined;
  readonly raise: RaiseAlarm;
  /** True if no caller receives the call's error. A refusal then raises an alarm. */
  readonly isUnattended?: boolean;
  /** Asks the seller for its capabilities if that is due. No caller waits for it. */
  readonly learn: (seller: AskedSeller) => void;
}

export function registrationOf(operation: Operation, context: RegistrationContext): AnyonesRegistration {
  const { operations, logger } = context;
  const { agentUrl, operationId, ref, call: is } = operation;
  const of = { agentUrl, operationId };
  const attempts = attemptsOf(operation, context);
  let byHand: Operation | undefined;
  const settle = async (given: unknown): Promise<Settled> => {
    // Until the answer is stored, this attempt counts as unanswered. A refusal of a later attempt does not mean that
    // this attempt did nothing.
    attempts.untaken();
    const answer = answerIn(given, is.taskType);
    // The event is durable before the call counts as answered. If the process dies in between, the repeated call gives
    // the same event.
    const observe = context.observe();
    if (isTerminal(answer.status)) {
      if (observe) await observeAnswer(observe, operation, answer);
      else logger.warn({ sender: agentUrl, operationId }, UNOBSERVED);
    }
    const mediaBuyId = mediaBuyIn(answer.data);
    const ending = endingIn(answer.data);
    const reason = reasonIn(answer.status, answer.data);
    const hasNoData = answer.status === 'completed' && answer.data === undefined;
    const done = await operations.settle(of, {
      ...answer,
      ...(hasNoData && { isOpen: true }),
      ...(mediaBuyId !== undefined && { mediaBuyId }),
      ...(ending !== undefined && { ending }),
      ...(reason !== undefined && { reason }),
    });
    const warning = WARNINGS[done];
    if (warning !== undefined) logger.warn({ sender: agentUrl, operationId }, warning);
    if (done === 'settled' && !isTerminal(answer.status) && answer.taskId === undefined) raiseUnnamed(answer);
    return done;
  };
  /** Raises an alarm if work has begun but its task has no id to ask about (calls.md §1.5). */
  const raiseUnnamed = ({ status }: SellerAnswer): void =>
    context.raise({
      code: 'task_unresolved',
      sender: agentUrl,
      operationId,
      taskType: is.taskType,
      ...(ref !== undefined && { ref }),
      message: `The task of ${is.taskType} cannot be polled: the seller answers ${status} without a task_id. A webhook that names the task ends it. Ask the seller which task it is.`,
    });
  return {
    ...of,
    callBy: async (call, signal) => {
      for (;;) {
        const answer = await attempts.make((asked) =>
          call(agentUrl, is.taskType, toolArguments(asked), {
            signal,
            ...(ref !== undefined && { ref }),
          }),
        );
        const refusal = refusalIn(answer, is.taskType);
        if (!refusal) {
          await settle(answer);
          // The seller answers now, so it can be asked for its capabilities.
          context.learn({ agentUrl, ref });
          return answer;
        }
        // The caller no longer waits. The next repeat is refused too, and then reported.
        if (signal.aborted) throw refusal;
        if (!(await attempts.refused(refusal, answer))) throw refusal;
      }
    },
    toolArguments: toolArguments(is),
    agentConfiguration: (version) => agentConfiguration(is, requireVersion(version)),
    agentRequest: (version) => agentRequest(is, requireVersion(version)),
    settle: async (answer) => {
      const refusal = refusalIn(answer, is.taskType);
      if (!refusal) return settle(answer);
      byHand =
        (await attemptsOf({ ...operation, isRepeat: attempts.isRepeat() }, context).refused(
          refusal,
          answer,
        )) ?? byHand;
      throw refusal;
    },
    again: () => byHand && registrationOf(byHand, context),
  };
}

const WARNINGS: Partial<Readonly<Record<Settled, string>>> = {
  'task-taken':
    'The seller answers with the task_id of another operation: events of the task without an operation_id go to that one.',
  'other-task':
    'The seller answers with another task_id than before: both tasks are polled, and events of the former have the warning operation_id_mismatch.',
};

const UNOBSERVED =
  'The answer of a call ends it and reaches no handler: no receiver of this process has these registrations. Give them to createReceiver, or handle the answer yourself.';

/** Checks a version of A2A. @throws RegistrationError */
function requireVersion(version: AgentVersion | undefined): AgentVersion {
  return checked(() => oneOf('version', version, ['0.3', '1.0'])) ?? '0.3';
}

/**
 * Passes the answer that ends an operation to the receiver, as an event. @throws Fault if the event cannot be stored
 * now.
 */
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
