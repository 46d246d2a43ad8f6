import { authenticateBearer } from '../auth/bearer.ts';
import type { AuthContext, Authenticate, AuthResult, Identity } from '../auth/contract.ts';
import { authenticateHmac } from '../auth/hmac.ts';
import { modeMismatch } from '../auth/mode.ts';
import { authenticateSignature } from '../auth/rfc9421/verify.ts';
import type { Delivery } from '../delivery.ts';
import type { Refusal, Unavailability } from '../outcome.ts';
import type { AuthPolicy } from '../senders.ts';
import type { Selected } from './select.ts';

/** A delivery whose sender is proved. */
export interface Authentic {
  readonly kind: 'authentic';
  readonly delivery: Delivery;
  readonly identity: Identity;
}

const SCHEMES: Readonly<Record<AuthPolicy['scheme'], Authenticate>> = {
  signature: authenticateSignature,
  hmac: authenticateHmac,
  bearer: authenticateBearer,
};

/** The registered scheme and no other: there is never a second attempt (verification.md, section 2). */
export async function authenticate(
  { delivery, target, senders }: Selected,
  context: AuthContext,
  arrivedAt: number,
): Promise<Authentic | Refusal | Unavailability> {
  const { scheme } = senders[0].auth;
  const mismatch = modeMismatch(scheme, delivery.headers, context.protocol);
  if (mismatch) return mismatch;
  const result: AuthResult = await SCHEMES[scheme](context, { delivery, target, senders, arrivedAt });
  return result.kind === 'authentic' ? { kind: 'authentic', delivery, identity: result } : result;
}
