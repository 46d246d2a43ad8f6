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

/* One question of `state({ check: true })` to a seller, in a place of that (owed.md §4.4), and what is said of one that fails. */

export interface QuestionContext {
  readonly registrations: StoreRegistrations;
  readonly call: CallSeller;
  /** The time that a question may take. Ms. */
  readonly callMs: number;
  /** Resolves early where the signal aborts. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
}

/** Questions that a seller is asked at once, those of pollers and reconcilers among them. */
const PER_SELLER = 4;
/** A seller that is busy, and does not say for how long, is left alone as by a poller. Ms. */
const BUSY_MS = 30_000;

/** @throws what the seller answers or the call throws; SellerBusyError without a place; RegistrationError `answer_invalid`. */
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
  // Of another client.
  const { status, code } = membersOf(error);
  return status === TOO_MANY_REQUESTS || code === TOO_MANY_REQUESTS;
}

const askedIn = (error: unknown): unknown => membersOf(error)['retryAfterMs'];

const membersOf = (error: unknown): Readonly<Record<string, unknown>> =>
  typeof error === 'object' && error !== null ? { ...error } : {};

/** The code of a seller that asks for a pause, or has no free place. */
export const SELLER_BUSY = 'seller_busy';

/** A question that failed, as its seller is named for it. `isLast`: the seller is asked for no more of that now. */
export interface FailedQuestion {
  readonly code: string;
  readonly message: string;
  readonly isLast: boolean;
}

/** @throws a Fault as it is: nothing can be said while the store is away. */
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
