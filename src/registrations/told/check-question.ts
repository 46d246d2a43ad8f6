// Asks a seller one question in one of its places, and says how a failed one is reported (owed.md §4.4). `state({
// check: true })` asks so where sellers send; a move asks for a revision.
import { boundedCall } from '../../calls/bounded-call.ts';
import { AnswerRefusedError, refusedBy } from '../../calls/refused-answer.ts';
import type { JsonObject } from '../../codec/members.ts';
import { Fault, isOfKind, messageOf } from '../../shared/errors.ts';
import type { StoreRegistrations } from '../../stores/store.ts';
import { refusalIn } from '../answer.ts';
import type { JsonObject as Arguments } from '../answer-json.ts';
import { beforeDeadline } from '../call-deadline.ts';
import type { CallSeller } from '../call-seller.ts';
import { freePlace, placeFor } from '../places.ts';
import { RegistrationError } from '../registrations-errors.ts';
import { SellerBusyError, SellerError, sellerText, TOO_MANY_REQUESTS, waitMs } from '../seller-error.ts';
import { invalid } from '../subscriptions/account-reading.ts';
import { answeredObject } from '../subscriptions/sync-answers.ts';

export interface QuestionContext {
  readonly registrations: StoreRegistrations;
  readonly call: CallSeller;
  /** The time limit of a question. Ms. */
  readonly callMs: number;
  /** Resolves early if the signal aborts. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
}

/** The number of questions that a seller is asked at once. Pollers and reconcilers share it. */
const PER_SELLER = 4;
/** The pause for a busy seller that names none. A poller waits as long. Ms. */
const BUSY_MS = 30_000;

/**
 * Asks a seller in a place of its own.
 * @throws the seller's error or that of the call; SellerBusyError without a place; RegistrationError `answer_invalid`.
 */
export async function askInPlace(
  { registrations: rows, call, callMs, sleep }: QuestionContext,
  { agentUrl: sender, ref }: { readonly agentUrl: string; readonly ref: string | undefined },
  [operation, args]: readonly [string, Arguments],
  signal: AbortSignal,
): Promise<JsonObject> {
  const places = { rows, callMs, leaseMs: 2 * callMs, perSeller: PER_SELLER, sleep };
  const place = await placeFor(places, { sender, who: 'check' }, signal);
  let pauseMs: number | undefined;
  let isAnswered = false;
  try {
    const bounded = boundedCall(call, () => (isAnswered = true));
    const how = { ...(ref !== undefined && { ref }) };
    const deadline = { ms: callMs, reason: `the seller did not answer within ${callMs} ms`, sleep };
    const answer = await beforeDeadline(deadline, signal, (within) =>
      bounded(sender, operation, args, { signal: within, ...how }),
    );
    const data = answeredObject(answer, operation);
    if (data) return data;
    throw invalid(`${operation} was answered with a task`);
  } catch (error) {
    const said = refusalIn(error) ?? refusedBy(error, isAnswered) ?? error;
    pauseMs = signal.aborted ? undefined : pauseIn(said);
    throw said;
  } finally {
    await rows.run(sender, (step, now) => freePlace(step, now, place, pauseMs));
  }
}

/** The pause that a seller asks for. Ms. */
function pauseIn(error: unknown): number | undefined {
  if (isBusy(error)) return waitMs(askedIn(error)) ?? BUSY_MS;
  return isOfKind(error, SellerError) ? waitMs(error.retryAfterMs) : undefined;
}

function isBusy(error: unknown): boolean {
  if (isOfKind(error, SellerBusyError)) return true;
  if (isOfKind(error, SellerError)) return error.code === 'RATE_LIMITED';
  // The error is another client's.
  const { status, code } = membersOf(error);
  return status === TOO_MANY_REQUESTS || code === TOO_MANY_REQUESTS;
}

const askedIn = (error: unknown): unknown => membersOf(error)['retryAfterMs'];

const membersOf = (error: unknown): Readonly<Record<string, unknown>> =>
  typeof error === 'object' && error !== null ? { ...error } : {};

/** The code of a seller that asks for a pause, or has no free place. */
export const SELLER_BUSY = 'seller_busy';

/** The report of a failed question. `isLast`: the seller is not asked any more now. */
export interface FailedQuestion {
  readonly code: string;
  readonly message: string;
  readonly isLast: boolean;
}

/** The report of a failed question. @throws a Fault as it is: nothing can be said while the store is unavailable. */
export function failedQuestion(error: unknown): FailedQuestion {
  if (isOfKind(error, Fault)) throw error;
  const isOfAnswer =
    isOfKind(error, RegistrationError) ||
    isOfKind(error, AnswerRefusedError) ||
    (isOfKind(error, SellerError) && error.recovery !== 'transient');
  return { code: sellerText(codeOf(error)), message: sellerText(messageOf(error)), isLast: !isOfAnswer };
}

function codeOf(error: unknown): string {
  if (isBusy(error)) return SELLER_BUSY;
  if (isOfKind(error, RegistrationError) || isOfKind(error, AnswerRefusedError)) return error.code;
  return isOfKind(error, SellerError) && error.code !== '' ? error.code : 'unanswered';
}
