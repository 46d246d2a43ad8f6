// Proves the sender of a delivery by its registered scheme: RFC 9421 signature, HMAC or bearer
// (verification.md §2.22).
// Called by the receiver's `enter` with the headers; the returned proof is completed with the body.

import type {
  AuthContext,
  AuthResult,
  HeadRequest,
  Identity,
  Proof,
  Prove,
  WholeBody,
} from '../auth/auth-contract.ts';
import { modeMismatch, schemeOf } from '../auth/mode.ts';
import { proveSignature } from '../auth/rfc9421/verify.ts';
import type { Refusal, Unavailability } from '../shared/outcome.ts';
import type { AuthPolicy } from '../config/sender-entry.ts';
import type { Selected } from './selected.ts';
import { isThenable } from '../shared/realms.ts';
import { proveBearer } from '../auth/bearer.ts';
import { proveHmac } from '../auth/hmac.ts';
import { proveChallenge } from '../auth/signed-challenge.ts';

/** A body whose sender is authenticated. */
export interface Authentic {
  readonly kind: 'authentic';
  readonly rawBody: Uint8Array;
  readonly identity: Identity;
  /** The URL for which the delivery was verified. */
  readonly url: string;
}

type Refused = Refusal | Unavailability;

const SCHEMES: Readonly<Record<AuthPolicy['scheme'], Prove>> = {
  signature: proveSignature,
  hmac: proveHmac,
  bearer: proveBearer,
};

/**
 * Authenticates by the registered scheme only, and never tries another (verification.md §2.22). There are two
 * exceptions. If HMAC is allowed for reports, the headers decide the scheme. A proof of control may be signed by a
 * sender with a legacy scheme. Only headers are judged here; the body is judged by the proof's `complete`.
 */
export function authenticate(selected: Selected, context: AuthContext, arrivedAt: number): ReturnType<Prove> {
  const { delivery, base, target, senders, others } = selected;
  const { auth } = senders[0];
  const scheme = schemeOf(auth, delivery.headers, context.protocols);
  const request: HeadRequest = { delivery, base, target, senders, others, arrivedAt };
  const mismatch = modeMismatch(scheme, delivery.headers, context.protocols);
  if (!mismatch) return SCHEMES[scheme](context, request);
  // A sender with a legacy scheme may still sign a proof of control (verification.md §7.9).
  const here = scheme === 'signature' ? mismatch : proveChallenge(context, request, mismatch);
  return others ? elsewhere(here, others, context, arrivedAt) : here;
}

/**
 * Tries the senders of the receiver's other base URLs whose registered scheme the delivery uses (verification.md
 * §4.16). Called if the delivery does not use the scheme of its own base URL.
 */
async function elsewhere(
  here: Proof | Refusal,
  others: NonNullable<Selected['others']>,
  context: AuthContext,
  arrivedAt: number,
): Promise<Awaited<ReturnType<Prove>>> {
  const { protocols } = context;
  const [first, ...rest] = (await others()).filter(({ delivery: { headers }, senders: [{ auth }] }) => {
    return !modeMismatch(schemeOf(auth, headers, protocols), headers, protocols);
  });
  if (!first) return here;
  const found = await authenticate({ ...first, others: async () => rest }, context, arrivedAt);
  // The body may still show that this is a proof of control, which any sender may sign. So the first result is kept.
  if (found.kind === 'refused' && here.kind === 'proof') return here;
  if (found.kind !== 'proof') return found;
  const judged = (result: AuthResult): AuthResult =>
    result.kind === 'authentic' ? { target: first.target, ...result } : result;
  return { ...found, complete: async (body) => judged(await found.complete(body)) };
}

/**
 * Completes the authentication with the body: check 11 (the digest) of a signature, or the HMAC. Returns a promise only
 * if it has to wait.
 */
export function authenticateBody(
  proof: Proof,
  body: WholeBody,
  { target }: Pick<Selected, 'target'>,
): Authentic | Refused | Promise<Authentic | Refused> {
  const authenticOf = (found: AuthResult): Authentic | Refused =>
    found.kind === 'authentic'
      ? { kind: 'authentic', rawBody: body.rawBody, identity: found, url: (found.target ?? target).targetUri }
      : found;
  const found = proof.complete(body);
  return isThenable(found) ? found.then(authenticOf) : authenticOf(found);
}
