// Makes the attempts of one call, and decides how an error changes its operation (calls.md §2.5 to §2.9). Registrations
// call it. The seller may have acted on an attempt without an answer. So a later refusal does not prove that nothing
// was done.
import type { RaiseAlarm } from '../shared/alarms.ts';
import { MAX_TEXT, printableText } from '../codec/printable.ts';
import { printableValue } from '../codec/printable-value.ts';
import { isOfKind } from '../shared/errors.ts';
import { isContradicted, refusalIn, SellerBusyError, TOO_MANY_REQUESTS, waitMs } from './answer.ts';
import type { Operation, Operations, Rejected, Why } from './registrations-contract.ts';
import type { OperationSeen } from './operation.ts';
import type { RegisteredCall } from './request.ts';
import type { SellerError } from './seller-error.ts';

/** The parts that attempts work with. */
export interface AttemptsContext {
  readonly operations: Pick<Operations, 'refuse' | 'reject' | 'postpone' | 'attempted' | 'get'>;
  readonly raise: RaiseAlarm;
  /** True if no caller receives the call's error. A refusal then raises an alarm. */
  readonly isUnattended?: boolean;
}

/** The attempts of a call in this process. */
export interface Attempts {
  /**
   * Makes one attempt. If a client throws a seller's error, the promise resolves with that error. It rejects if there
   * is no answer.
   */
  readonly make: (call: (asked: RegisteredCall) => unknown) => Promise<unknown>;
  /**
   * Applies an error to the operation, and stores the change.
   * @returns the call that may be made at once; undefined: the error goes to the caller.
   */
  readonly refused: (refusal: SellerError, answer: unknown) => Promise<Operation | undefined>;
  /** Notes that an answer came which is no refusal, but may prove to be unusable (calls.md §2.6). */
  readonly untaken: () => void;
  /** True if an earlier attempt had no answer, so that the seller may have acted on it. */
  readonly isRepeat: () => boolean;
}

/** Errors about the caller's credentials. They do not tell if the call was done. */
const CREDENTIALS: ReadonlySet<string> = new Set([
  'AUTH_REQUIRED',
  'AUTH_MISSING',
  'AUTH_INVALID',
  'INSUFFICIENT_PERMISSIONS',
]);

/**
 * Words which show that an error is about the registration of webhooks (calls.md §2.9). `reporting_webhook` is a
 * separate argument, so its name is removed before the search.
 */
const REGISTRATION =
  /\bpush\b|push_?notification|webhook|callback|operation_?id|\bsync(?:hronous(?:ly)?)?[ -]only\b/i;

/** True if an error is about the registration of webhooks rather than the call itself. */
function isAboutRegistration({ code, field = '', message }: SellerError): boolean {
  if (code !== 'INVALID_REQUEST') return false;
  return REGISTRATION.test(`${field}\n${message}`.replaceAll(/reporting_?webhook/gi, ''));
}

export function attemptsOf(operation: Operation, context: AttemptsContext): Attempts {
  const { operations, raise, isUnattended = false } = context;
  let asked = operation;
  /** The number of attempts without an answer. Running attempts are included. */
  let unanswered = operation.isRepeat ? 1 : 0;
  let isMarked = false;

  const pause = async (ms: number | undefined): Promise<void> => {
    const isAnswered = unanswered === 0;
    // Nothing has to be stored: the call is due at that time anyway.
    if (ms === undefined && !isAnswered) return;
    const held = await operations.postpone(asked, { ms, isAnswered });
    isMarked = isAnswered;
    asked = held ?? asked;
  };
  const failed = async (error: unknown): Promise<void> => {
    if (!isOfKind(error, SellerBusyError)) return;
    // The seller refused because of its rate limit, before it read the call. So this attempt has done nothing.
    if (error.status === TOO_MANY_REQUESTS) unanswered -= 1;
    await pause(waitMs(error.retryAfterMs));
  };
  /** Stores a refusal. Raises an alarm if the refusal is new and no caller receives it. */
  const rejected = async (refusal: SellerError, state: Rejected | 'calling'): Promise<void> => {
    const kept = state === 'calling' ? state : await operations.reject(asked, state, whyOf(refusal));
    // The move that made this step makes another operation instead.
    if (isOldRevision(refusal)) return;
    const is = await operations.get(asked);
    // If the call was answered meanwhile, or made under another request key, this refusal no longer applies.
    if (!is || kept !== is.state) return;
    if (kept !== 'refused' || refusal.isUnknown || isUnattended) raise(alarmOf(is, refusal, kept));
  };

  /**
   * True for a step of a move whose revision is out of date: the seller has not accepted its bytes, and never will
   * (told.md §3.2). If the arguments have no revision and an attempt was left unanswered, the step is repeated like any
   * other operation.
   */
  const isOldRevision = ({ code }: SellerError): boolean =>
    operation.isStep === true &&
    code === 'CONFLICT' &&
    (unanswered === 0 || asked.call.arguments['revision'] !== undefined);

  return {
    untaken: () => {
      unanswered += 1;
    },
    isRepeat: () => unanswered > 0,
    make: async (call) => {
      if (isMarked) await operations.attempted(asked);
      isMarked = false;
      unanswered += 1;
      let answer: unknown;
      try {
        answer = await call(asked.call);
      } catch (error) {
        const refusal = refusalIn(error);
        if (!refusal) {
          await failed(error);
          // A client's error message may contain a whole page of the seller's.
          throw printableValue(error);
        }
        answer = refusal;
      }
      unanswered -= 1;
      return answer;
    },
    refused: async (refusal, answer) => {
      // Another attempt with this request key is still running at the seller.
      if (refusal.code === 'IDEMPOTENCY_IN_FLIGHT') unanswered += 1;
      if (refusal.recovery === 'transient' && !isOldRevision(refusal)) {
        await pause(refusal.retryAfterMs);
        return undefined;
      }
      const isFirst = unanswered === 0 && !isContradicted(answer, asked.call.taskType);
      const again = isFirst && isAboutRegistration(refusal) ? await operations.refuse(asked) : undefined;
      if (again) asked = again;
      else await rejected(refusal, isFirst ? 'refused' : afterNoAnswer(refusal));
      return again;
    },
  };
}

/** The seller's error as it is stored: shortened, and printable. */
const whyOf = ({ code, message }: SellerError): Why => ({
  refusal: code,
  reason: printableText(message, MAX_TEXT),
});

/** The state after an error that follows an unanswered attempt, i.e. one that the seller may have acted on. */
const afterNoAnswer = ({ code }: SellerError): 'orphaned' | 'calling' =>
  CREDENTIALS.has(code) ? 'calling' : 'orphaned';

/** The alarm that asks a person to look at the operation. */
function alarmOf(
  { agentUrl: sender, operationId, taskType, ref }: OperationSeen,
  { code, message }: SellerError,
  state: Rejected | 'calling',
): Parameters<RaiseAlarm>[0] {
  if (state === 'orphaned' && code === 'IDEMPOTENCY_CONFLICT') {
    return {
      code: 'operation_orphaned',
      message: `It is unknown whether ${taskType} was done: the call was not answered, and its repeat is refused: ${message} Ask the seller.`,
      sender,
      operationId,
      taskType,
      ...(ref !== undefined && { ref }),
    };
  }
  return {
    code: 'operation_refused',
    message: `${message}${AFTER[state]}`,
    sender,
    operationId,
    refusal: code,
  };
}

const AFTER: Readonly<Record<Rejected | 'calling', string>> = {
  refused: '',
  calling:
    ' It is unknown whether the call before it was done: it is repeated as long as the seller knows its request key.',
  orphaned:
    ' It is unknown whether a call before it was done, and it is not repeated: ask the seller before you create another registration.',
};
