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
import type { Selected } from './select.ts';
import { isThenable } from '../shared/realms.ts';
import { proveBearer } from '../auth/bearer.ts';
import { proveHmac } from '../auth/hmac.ts';
import { proveChallenge } from '../auth/signed-challenge.ts';

/** A body whose sender is proved. */
export interface Authentic {
  readonly kind: 'authentic';
  readonly rawBody: Uint8Array;
  readonly identity: Identity;
  /** The URL that it was judged by. */
  readonly url: string;
}

type Refused = Refusal | Unavailability;

const SCHEMES: Readonly<Record<AuthPolicy['scheme'], Prove>> = {
  signature: proveSignature,
  hmac: proveHmac,
  bearer: proveBearer,
};

/**
 * The registered scheme and no other, the one of the fields where HMAC counts for reports: there is never a second attempt (verification.md §2.22), but for what a legacy
 * sender may sign. By headers alone; `complete` is for the body.
 */
export function authenticate(
  { delivery, target, senders }: Selected,
  context: AuthContext,
  arrivedAt: number,
): ReturnType<Prove> {
  const { auth } = senders[0];
  const scheme = schemeOf(auth, delivery.headers, context.protocols);
  const request: HeadRequest = { delivery, target, senders, arrivedAt };
  const mismatch = modeMismatch(scheme, delivery.headers, context.protocols);
  // A proof of control is signed (verification.md §7.9) if its sender is registered with a legacy scheme, too.
  if (mismatch) return scheme === 'signature' ? mismatch : proveChallenge(context, request, mismatch);
  return SCHEMES[scheme](context, request);
}

/** What is left of it once the body is there: check 11, or the HMAC. No promise where nothing is waited for. */
export function authenticateBody(
  proof: Proof,
  body: WholeBody,
  { target }: Pick<Selected, 'target'>,
): Authentic | Refused | Promise<Authentic | Refused> {
  const authenticOf = (found: AuthResult): Authentic | Refused =>
    found.kind === 'authentic'
      ? { kind: 'authentic', rawBody: body.rawBody, identity: found, url: target.targetUri }
      : found;
  const found = proof.complete(body);
  return isThenable(found) ? found.then(authenticOf) : authenticOf(found);
}
