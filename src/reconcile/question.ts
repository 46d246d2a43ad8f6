// Sends a seller one request, and returns a failure instead of throwing it. The reconciler, `compare` and `discover`
// send their requests with it.
import { refusedBy } from '../calls/refused-answer.ts';
import { isJsonObject, present, textMember } from '../codec/members.ts';
import { MAX_TEXT } from '../codec/printable.ts';
import { failureOf, type PollFailure } from '../poll/failure.ts';
import { answerIn, refusalIn, SellerError } from '../registrations/answer.ts';
import type { JsonObject } from '../registrations/answer-json.ts';
import type { BuyStream } from '../registrations/streams.ts';
import { isOfKind } from '../shared/errors.ts';
import { limited, orAborted } from '../shared/time-limits.ts';
import type { Held, ReconcilerContext } from './context.ts';

/** The outcome of a call to a seller: the data in its answer, or the failure. */
export type Answered = { readonly data: unknown } | Failed;

export interface Failed {
  readonly failure: PollFailure;
  /** The code in the seller's error answer, even if the error is temporary. */
  readonly code?: string;
  /** The original error, as the client threw it or the seller answered it. */
  readonly cause?: unknown;
}

const failed = (error: unknown): Failed => ({
  cause: error,
  failure: failureOf(error),
  ...(isOfKind(error, SellerError) && { code: error.code }),
});

/** Sends a request to a seller, with the time limit `callMs`. Returns a failure instead of throwing it. */
export async function askSeller(
  { call, callMs, sessions }: ReconcilerContext,
  { sender }: Pick<Held, 'sender'>,
  { ref }: Pick<BuyStream, 'ref'>,
  [operation, args]: readonly [string, JsonObject],
  stopping: AbortSignal,
): Promise<Answered> {
  const reason = `the seller did not answer within ${callMs} ms`;
  try {
    const answer = await limited({ ms: callMs, reason }, stopping, (signal) =>
      orAborted(
        call(sender, operation, args, { signal, sessions, ...(ref !== undefined && { ref }) }),
        signal,
      ),
    );
    const refusal = refusalIn(answer, operation);
    return refusal ? failed(refusal) : { data: answerIn(answer, operation).data };
  } catch (error) {
    return failed(refusedBy(error, true) ?? error);
  }
}

/** The pause before the next request, if a busy seller does not state one. Task polling uses the same pause. Ms. */
const BUSY_MS = 30_000;

/** Returns the time for which no requests are sent to the seller after a failure; undefined: no pause. Ms. */
export function pauseOf(failure: PollFailure): number | undefined {
  const pauseMs = 'pauseMs' in failure ? failure.pauseMs : undefined;
  return pauseMs ?? (failure.kind === 'busy' ? BUSY_MS : undefined);
}

/**
 * Returns the cursor of the next page in a seller's answer. Undefined: this is the last page. Null: there is a next
 * page, but the answer has no usable cursor.
 */
export function cursorIn(data: unknown): string | undefined | null {
  const pagination = isJsonObject(data) ? present(data, 'pagination') : undefined;
  if (!isJsonObject(pagination) || pagination['has_more'] !== true) return undefined;
  const cursor = textMember(pagination, 'cursor');
  return cursor === undefined || cursor === '' || cursor.length > MAX_TEXT ? null : cursor;
}
