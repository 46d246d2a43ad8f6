// Sends a single request to a seller within the limit of concurrent requests (owed.md §4.4), and describes a failure.
// Used by `state({ check: true })`, and to read the revision of a media buy that is moved to another URL.
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
  /** The time limit of a request. Ms. */
  readonly callMs: number;
  /** Resolves after `ms`, or early if the signal aborts. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
}

/** The most concurrent requests to one seller, counting those of pollers and reconcilers. */
const PER_SELLER = 4;
/** The pause before the next request to a seller that reports to be busy without naming a pause. Ms. */
const BUSY_MS = 30_000;

/**
 * Sends one request to a seller, as soon as fewer than `PER_SELLER` requests to the seller run.
 * @returns the data of the answer.
 * @throws the seller's error or that of the call; SellerBusyError if too many requests run for too long;
 *   RegistrationError `answer_invalid`.
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

/** Returns the pause before the next request that a seller's error asks for; undefined if it asks for none. Ms. */
function pauseIn(error: unknown): number | undefined {
  if (isBusy(error)) return waitMs(askedIn(error)) ?? BUSY_MS;
  return isOfKind(error, SellerError) ? waitMs(error.retryAfterMs) : undefined;
}

function isBusy(error: unknown): boolean {
  if (isOfKind(error, SellerBusyError)) return true;
  if (isOfKind(error, SellerError)) return error.code === 'RATE_LIMITED';
  // The application's own client may throw errors of other classes, so the members `status` and `code` are read.
  const { status, code } = membersOf(error);
  return status === TOO_MANY_REQUESTS || code === TOO_MANY_REQUESTS;
}

const askedIn = (error: unknown): unknown => membersOf(error)['retryAfterMs'];

const membersOf = (error: unknown): Readonly<Record<string, unknown>> =>
  typeof error === 'object' && error !== null ? { ...error } : {};

/** The code that is reported for a seller that asks for a pause, or to which too many requests run. */
export const SELLER_BUSY = 'seller_busy';

/** The description of a failed request. `isLast`: true if no further requests should be sent to the seller now. */
export interface FailedQuestion {
  readonly code: string;
  readonly message: string;
  readonly isLast: boolean;
}

/**
 * Describes a failed request. @throws `error` itself if it is a Fault, because without the store there is no result.
 */
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
