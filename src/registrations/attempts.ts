import type { RaiseAlarm } from '../shared/alarms.ts';
import { MAX_TEXT, printableText } from '../codec/printable.ts';
import { printableValue } from '../codec/printable-value.ts';
import { isOfKind } from '../shared/errors.ts';
import { isContradicted, refusalIn, SellerBusyError, TOO_MANY_REQUESTS, waitMs } from './answer.ts';
import type { Operation, Operations, Rejected, Why } from './registrations-contract.ts';
import type { OperationSeen } from './operation.ts';
import type { RegisteredCall } from './request.ts';
import type { SellerError } from './seller-error.ts';

/*
 * The attempts of one call, and what an error does to its operation (calls.md §2.5 to §2.9). An attempt that was not answered may
 * have been done, so no later error says that nothing was.
 */

/** What attempts work with. */
export interface AttemptsContext {
  readonly operations: Pick<Operations, 'refuse' | 'reject' | 'postpone' | 'attempted' | 'get'>;
  readonly raise: RaiseAlarm;
  /** Nobody is given the error of the call: its refusal is an alarm. */
  readonly isUnattended?: boolean;
}

/** The attempts of a call in this process. */
export interface Attempts {
  /** One attempt. A seller's error that a client threw is its answer. Rejects where there is none. */
  readonly make: (call: (asked: RegisteredCall) => unknown) => Promise<unknown>;
  /** Keeps what an error did to the operation. @returns the call that may be made at once; undefined: the error is the caller's. */
  readonly refused: (refusal: SellerError, answer: unknown) => Promise<Operation | undefined>;
  /** An answer that is no refusal came, and may turn out to be one that cannot be taken (calls.md §2.6). */
  readonly untaken: () => void;
  /** Whether one of them may have been done without an answer. */
  readonly isRepeat: () => boolean;
}

/** Errors that say who calls, and nothing of the call. */
const CREDENTIALS: ReadonlySet<string> = new Set([
  'AUTH_REQUIRED',
  'AUTH_MISSING',
  'AUTH_INVALID',
  'INSUFFICIENT_PERMISSIONS',
]);

/** How a text names the registration of webhooks (calls.md §2.9). `reporting_webhook` is another one's. */
const REGISTRATION =
  /\bpush\b|push_?notification|webhook|callback|operation_?id|\bsync(?:hronous(?:ly)?)?[ -]only\b/i;

/** Whether an error is about where webhooks are to go, and not about the call. */
function isAboutRegistration({ code, field = '', message }: SellerError): boolean {
  if (code !== 'INVALID_REQUEST') return false;
  return REGISTRATION.test(`${field}\n${message}`.replaceAll(/reporting_?webhook/gi, ''));
}

export function attemptsOf(operation: Operation, context: AttemptsContext): Attempts {
  const { operations, raise, isUnattended = false } = context;
  let asked = operation;
  /** Attempts without an answer, those that are under way among them. */
  let unanswered = operation.isRepeat ? 1 : 0;
  let isMarked = false;

  const pause = async (ms: number | undefined): Promise<void> => {
    const isAnswered = unanswered === 0;
    // Nothing to keep: it is due when it would be anyway.
    if (ms === undefined && !isAnswered) return;
    const held = await operations.postpone(asked, { ms, isAnswered });
    isMarked = isAnswered;
    asked = held ?? asked;
  };
  const failed = async (error: unknown): Promise<void> => {
    if (!isOfKind(error, SellerBusyError)) return;
    // Over its share, it was not looked at.
    if (error.status === TOO_MANY_REQUESTS) unanswered -= 1;
    await pause(waitMs(error.retryAfterMs));
  };
  /** Keeps a refusal, and tells of it where it is news that the caller is not given. */
  const rejected = async (refusal: SellerError, state: Rejected | 'calling'): Promise<void> => {
    const kept = state === 'calling' ? state : await operations.reject(asked, state, whyOf(refusal));
    // The step of a move begins another one.
    if (isOldRevision(refusal)) return;
    const is = await operations.get(asked);
    // One that was answered meanwhile, or is called by another request key, was not refused.
    if (!is || kept !== is.state) return;
    if (kept !== 'refused' || refusal.isUnknown || isUnattended) raise(alarmOf(is, refusal, kept));
  };

  /**
   * The bytes of a step can never be taken, or were not (told.md §3.2). Without a revision in them, and after an attempt that was not
   * answered, that may hold the media buy still: as of any other operation they are repeated.
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
          // A client's error may repeat a page of the seller's.
          throw printableValue(error);
        }
        answer = refusal;
      }
      unanswered -= 1;
      return answer;
    },
    refused: async (refusal, answer) => {
      // Another attempt by this key is under way.
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

/** A seller's words: short, and printable. */
const whyOf = ({ code, message }: SellerError): Why => ({
  refusal: code,
  reason: printableText(message, MAX_TEXT),
});

/** What an error leaves of a call that may have been done. */
const afterNoAnswer = ({ code }: SellerError): 'orphaned' | 'calling' =>
  CREDENTIALS.has(code) ? 'calling' : 'orphaned';

/** What somebody has to look at. */
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
