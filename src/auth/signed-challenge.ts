import type { JsonObject } from '../codec/members.ts';
import { parseStrictObject } from '../codec/strict-json.ts';
import { isChallenge, MAX_CHALLENGE_BYTES } from '../events/challenge.ts';
import type { Refusal } from '../shared/outcome.ts';
import type { AuthContext, AuthRequest, HeadRequest, Proof } from './auth-contract.ts';
import { authenticateSignature } from './rfc9421/verify.ts';

/**
 * The proof of control that a body is, before anything of its delivery is proved: at a sender that is registered with a
 * legacy scheme nothing else may be signed (verification.md §7.9). A larger body is not looked at.
 */
export function challengeIn(rawBody: Uint8Array): JsonObject | undefined {
  if (rawBody.byteLength > MAX_CHALLENGE_BYTES) return undefined;
  const json = parseStrictObject(rawBody);
  return json.ok && isChallenge(json.value, rawBody.byteLength) ? json.value : undefined;
}

/**
 * Whether a delivery of a legacy sender may be a proof of control that is signed. The scheme's own fields may stand
 * beside the signature; an HMAC signature at a bearer sender is another scheme's.
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

/** Whether it is one. */
export function isSignedChallenge(request: AuthRequest, context: Pick<AuthContext, 'protocols'>): boolean {
  return mayBeSigned(request, context) && challengeIn(request.delivery.rawBody) !== undefined;
}

/** Checks 1 to 11 of it, once its body is there. Where that is none it is `mismatch`, and no key is looked for. */
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
