// Accepts a signed proof of control from a sender that is registered with a legacy scheme (verification.md §7.9). By
// this request a seller checks that the URL is yours.
// Called by `authenticate` after a scheme mismatch.

import type { JsonObject } from '../codec/members.ts';
import { parseStrictObject } from '../codec/strict-json.ts';
import { isChallenge, MAX_CHALLENGE_BYTES } from '../events/challenge.ts';
import type { Refusal } from '../shared/outcome.ts';
import type { AuthContext, AuthRequest, HeadRequest, Proof } from './auth-contract.ts';
import { authenticateSignature } from './rfc9421/verify.ts';

/**
 * Returns the proof of control in a body; undefined if there is none. The sender is not authenticated yet. A sender
 * with a legacy scheme may sign nothing but a proof of control (verification.md §7.9). A body that is too large is not
 * parsed.
 */
export function challengeIn(rawBody: Uint8Array): JsonObject | undefined {
  if (rawBody.byteLength > MAX_CHALLENGE_BYTES) return undefined;
  const json = parseStrictObject(rawBody);
  return json.ok && isChallenge(json.value, rawBody.byteLength) ? json.value : undefined;
}

/**
 * True if a legacy sender's delivery may be a signed proof of control. Headers of the sender's own scheme may be
 * present too. An HMAC signature from a bearer sender belongs to another scheme, so the result is false then.
 */
function mayBeSigned(
  { delivery: { headers }, senders }: HeadRequest,
  { protocols }: Pick<AuthContext, 'protocols'>,
): boolean {
  const isSigned = headers.has('signature-input') || headers.has('signature');
  const isHmac = senders.some(({ auth }) => auth.scheme === 'hmac');
  const isOwn = isHmac || !protocols.some(({ hmacSignatureHeader }) => headers.has(hmacSignatureHeader));
  return isSigned && isOwn;
}

/** True if the delivery is a signed proof of control. */
export function isSignedChallenge(request: AuthRequest, context: Pick<AuthContext, 'protocols'>): boolean {
  return mayBeSigned(request, context) && challengeIn(request.delivery.rawBody) !== undefined;
}

/**
 * Returns a proof whose `complete` performs checks 1 to 11 when the body has arrived. If the headers or the body show
 * no signed proof of control, the result is `mismatch`, and no key is looked up.
 */
export function proveChallenge(
  context: AuthContext,
  request: HeadRequest,
  mismatch: Refusal,
): Proof | Refusal {
  if (!mayBeSigned(request, context)) return mismatch;
  return {
    kind: 'proof',
    sender: undefined,
    complete: ({ rawBody }) => {
      if (!challengeIn(rawBody)) return mismatch;
      return authenticateSignature(context, { ...request, delivery: { ...request.delivery, rawBody } });
    },
  };
}
