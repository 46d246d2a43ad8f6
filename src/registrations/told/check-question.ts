// Sends a seller one request in one of its call slots, and describes a failed request (owed.md §4.4).
// `state({ check: true })` asks in this way to which URLs the seller sends; a move asks for a revision.
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
  /** Resolves early if the signal aborts. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
}

/** The most concurrent requests to one seller. Pollers and reconcilers use the same limit. */
const PER_SELLER = 4;
/** The pause for a busy seller that names none. A poller uses the same pause. Ms. */
const BUSY_MS = 30_000;

/**
 * Sends a seller one request in a call slot of its own.
 * @throws the seller's error or that of the call; SellerBusyError if no slot is free; RegistrationError
 *   `answer_invalid`.
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

/** Returns the pause that a seller asks for; undefined if it asks for none. Ms. */
function pauseIn(error: unknown): number | undefined {
  if (isBusy(error)) return waitMs(askedIn(error)) ?? BUSY_MS;
  return isOfKind(error, SellerError) ? waitMs(error.retryAfterMs) : undefined;
}

function isBusy(error: unknown): boolean {
  if (isOfKind(error, SellerBusyError)) return true;
  if (isOfKind(error, SellerError)) return error.code === 'RATE_LIMITED';
  // The error may come from a client of the owner, which has other classes.
  const { status, code } = membersOf(error);
  return status === TOO_MANY_REQUESTS || code === TOO_MANY_REQUESTS;
}

const askedIn = (error: unknown): unknown => membersOf(error)['retryAfterMs'];

const membersOf = (error: unknown): Readonly<Record<string, unknown>> =>
  typeof error === 'object' && error !== null ? { ...error } : {};

/** The code for a seller that asks for a pause, or has no free call slot. */
export const SELLER_BUSY = 'seller_busy';

/** The report of a failed request. `isLast`: no further requests are sent to the seller now. */
export interface FailedQuestion {
  readonly code: string;
  readonly message: string;
  readonly isLast: boolean;
}

/**
 * Returns the report of a failed request. @throws a Fault unchanged: while the store is unavailable there is no result.
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
