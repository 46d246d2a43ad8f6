import type { JsonObject } from '../codec/members.ts';
import { parseStrictObject } from '../codec/strict-json.ts';
import { isChallenge, MAX_CHALLENGE_BYTES } from '../events/challenge.ts';
import type { AuthContext, AuthRequest, AuthResult } from './contract.ts';
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
 * Whether a delivery of a legacy sender is a proof of control that is signed. The scheme's own fields may stand beside
 * the signature; an HMAC signature at a bearer sender is another scheme's.
 */
export function isSignedChallenge(
  { delivery: { headers, rawBody }, senders }: AuthRequest,
  { protocol }: Pick<AuthContext, 'protocol'>,
): boolean {
  const isSigned = headers.has('signature-input') || headers.has('signature');
  const isHmac = senders.some(({ auth }) => auth.scheme === 'hmac');
  const isOwn = isHmac || !headers.has(protocol.hmacSignatureHeader);
  return isSigned && isOwn && challengeIn(rawBody) !== undefined;
}

/** Checks 1 to 11 of it; undefined where it is none, and then no key is looked for. */
export async function authenticateChallenge(
  context: AuthContext,
  request: AuthRequest,
): Promise<AuthResult | undefined> {
  return isSignedChallenge(request, context) ? authenticateSignature(context, request) : undefined;
}
