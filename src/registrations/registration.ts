// Makes a registered call, or takes the answer to a call that the owner made by hand, and records the outcome in the
// operation. `registrations.create` returns such a registration; `start` uses it to repeat calls.
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
  /** Aborts the call. It is then unknown if the seller performed it, and `start` repeats the call. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * A call to a seller that `registrations.create` has stored and returned, so that its webhooks are recognised. Make the
 * call with `call`, or with a client of yours followed by `settle`.
 */
export interface Registration extends OperationName {
  /**
   * Makes the call with the function `call` of `createRegistrations`, and records the answer. If the seller refuses to
   * register webhooks, the call is made once more without webhooks.
   * @throws SellerError (rejects) if the seller refuses the call.
   */
  readonly call: (options?: CallOptions) => Promise<unknown>;
  /** The arguments for a call with your own client over the tool transport. Pass the answer to `settle`. */
  readonly toolArguments: JsonObject;
  /** Returns the `configuration` for a call with your own client over the agent transport. Default version: `0.3`. */
  readonly agentConfiguration: (version?: AgentVersion) => JsonObject;
  /**
   * Returns `message` and `configuration` for a call with your own client over the agent transport. Default version:
   * `0.3`.
   */
  readonly agentRequest: (version?: AgentVersion) => JsonObject;
  /**
   * Records the seller's answer to a call with your own client. Pass the answer unchanged.
   * @throws SellerError (rejects) if the answer is a refusal.
   */
  readonly settle: (answer: unknown) => Promise<Settled>;
  /**
   * Returns the same operation without webhooks and with another `idempotency_key`. Use it if `settle` rejected with
   * `INVALID_REQUEST`: make the call of the returned operation, and settle it. Undefined if the call had no webhooks,
   * was refused for another reason, or may have been done by an earlier attempt.
   */
  readonly again: () => Registration | undefined;
}

/** A registration that has no client of its own: `callBy` takes the client as an argument. */
export interface AnyonesRegistration extends Omit<Registration, 'call' | 'again'> {
  readonly callBy: (call: CallSeller, signal: AbortSignal) => Promise<unknown>;
  readonly again: () => AnyonesRegistration | undefined;
}

export interface RegistrationContext {
  readonly operations: Operations;
  readonly logger: SafeLogger;
  /**
   * Returns the function that turns a final answer into an event of this process's receiver. Undefined if no receiver
   * has these registrations.
   */
  readonly observe: () => Observe | undefined;
  readonly raise: RaiseAlarm;
  /** True if no caller receives the error of the call, as when `start` repeats it. A refusal then raises an alarm. */
  readonly isUnattended?: boolean;
  /** Requests the seller's capabilities if that is due. No caller waits for them. */
  readonly learn: (seller: AskedSeller) => void;
}

export function registrationOf(operation: Operation, context: RegistrationContext): AnyonesRegistration {
  const { operations, logger } = context;
  const { agentUrl, operationId, ref, call: is } = operation;
  const of = { agentUrl, operationId };
  const attempts = attemptsOf(operation, context);
  let byHand: Operation | undefined;
  const settle = async (given: unknown): Promise<Settled> => {
    // This attempt counts as unanswered until its answer is stored, because the answer may prove unusable. So a refusal
    // of a later attempt does not mean that this attempt did nothing.
    attempts.untaken();
    const answer = answerIn(given, is.taskType);
    // The event is stored before the answer is. If the process dies in between, the call is repeated, and its answer
    // gives the same event.
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
  /**
   * Raises an alarm if the seller's work has begun, but the answer has no task id by which it could be polled (calls.md
   * §1.5).
   */
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
          // The seller answers at the moment, so its capabilities are requested too.
          context.learn({ agentUrl, ref });
          return answer;
        }
        // The caller has aborted the call, so this refusal is not recorded. The next repeat of the call is refused too,
        // and then recorded.
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
