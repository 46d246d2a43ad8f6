// Makes the attempts (requests) of one call, and decides how an error changes the stored operation (calls.md §2.5 to
// §2.9). The seller may have acted on an attempt that had no answer. So a refusal of a later attempt does not prove
// that nothing was done.
import type { RaiseAlarm } from '../shared/alarms.ts';
import { MAX_TEXT, printableText } from '../codec/printable.ts';
import { printableValue } from '../codec/printable-value.ts';
import { isOfKind } from '../shared/errors.ts';
import { isContradicted, refusalIn, SellerBusyError, TOO_MANY_REQUESTS, waitMs } from './answer.ts';
import type { Operation, Operations, Rejected, Why } from './registrations-contract.ts';
import type { OperationSeen } from './operation.ts';
import type { RegisteredCall } from './request.ts';
import type { SellerError } from './seller-error.ts';

export interface AttemptsContext {
  readonly operations: Pick<Operations, 'refuse' | 'reject' | 'postpone' | 'attempted' | 'get'>;
  readonly raise: RaiseAlarm;
  /** True if no caller receives the error of the call, as when `start` repeats it. A refusal then raises an alarm. */
  readonly isUnattended?: boolean;
}

/** The attempts of one call by this process. Each attempt is one request to the seller. */
export interface Attempts {
  /**
   * Makes one attempt. Resolves with the answer, or with the seller's error if a client threw that error. Rejects if
   * there is no answer.
   */
  readonly make: (call: (asked: RegisteredCall) => unknown) => Promise<unknown>;
  /**
   * Changes the stored operation after a seller's error.
   * @returns the call to make again immediately, without webhooks. Undefined: the error goes to the caller.
   */
  readonly refused: (refusal: SellerError, answer: unknown) => Promise<Operation | undefined>;
  /** Counts the latest attempt as unanswered, because its answer may prove to be unusable (calls.md §2.6). */
  readonly untaken: () => void;
  /** True if an earlier attempt had no answer, so that the seller may have acted on it. */
  readonly isRepeat: () => boolean;
}

/** Codes of errors about the caller's credentials. They do not tell if an earlier, unanswered attempt was done. */
const CREDENTIALS: ReadonlySet<string> = new Set([
  'AUTH_REQUIRED',
  'AUTH_MISSING',
  'AUTH_INVALID',
  'INSUFFICIENT_PERMISSIONS',
]);

/**
 * Words which show that an error is about the registration of webhooks (calls.md §2.9). `reporting_webhook` is a
 * separate argument of the call, so its name is removed from the text before the search.
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
  /** The number of attempts that had no answer, including attempts that still run. */
  let unanswered = operation.isRepeat ? 1 : 0;
  let isMarked = false;

  const pause = async (ms: number | undefined): Promise<void> => {
    const isAnswered = unanswered === 0;
    // The seller asked for no pause, so the row stays due at its stored time and nothing has to be written.
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
  /**
   * Stores a refusal, and raises an alarm about it. No alarm is raised if a caller receives the error, its code is
   * known, and the call was certainly not done.
   */
  const rejected = async (refusal: SellerError, state: Rejected | 'calling'): Promise<void> => {
    const kept = state === 'calling' ? state : await operations.reject(asked, state, whyOf(refusal));
    // This call gives the seller another URL, and its revision is outdated. The move makes a new operation, so there is
    // no alarm.
    if (isOldRevision(refusal)) return;
    const is = await operations.get(asked);
    // If the call was answered meanwhile, or made again under another `idempotency_key`, this refusal no longer
    // applies.
    if (!is || kept !== is.state) return;
    if (kept !== 'refused' || refusal.isUnknown || isUnattended) raise(alarmOf(is, refusal, kept));
  };

  /**
   * True if the seller refused a step of a move (an update that gives it another URL) because the revision is outdated.
   * The seller will never accept that request, so it is not repeated (told.md §3.2). False if the arguments have no
   * revision and an earlier attempt had no answer: then the step is repeated like any call.
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
          // The message of a client's error may contain a whole page of the seller, so it is shortened and made
          // printable.
          throw printableValue(error);
        }
        answer = refusal;
      }
      unanswered -= 1;
      return answer;
    },
    refused: async (refusal, answer) => {
      // The seller is still working on another attempt with this `idempotency_key`, so that attempt counts as
      // unanswered.
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

/** Returns the seller's error as it is stored with the operation: shortened, and printable. */
const whyOf = ({ code, message }: SellerError): Why => ({
  refusal: code,
  reason: printableText(message, MAX_TEXT),
});

/**
 * Returns the operation's state after an error that follows an attempt without an answer. The seller may have acted on
 * that attempt. After an error about credentials the call is repeated.
 */
const afterNoAnswer = ({ code }: SellerError): 'orphaned' | 'calling' =>
  CREDENTIALS.has(code) ? 'calling' : 'orphaned';

/** Returns the alarm that asks a person to look at the refused operation. */
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
