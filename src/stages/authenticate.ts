import type { AuthContext, Authenticate, AuthRequest, AuthResult, Identity } from '../auth/contract.ts';
import { modeMismatch } from '../auth/mode.ts';
import { authenticateSignature } from '../auth/rfc9421/verify.ts';
import type { Delivery } from '../delivery.ts';
import { type Eventual, whenThere } from '../eventual.ts';
import type { Refusal, Unavailability } from '../outcome.ts';
import type { AuthPolicy } from '../senders.ts';
import type { Selected } from './select.ts';

/** A delivery whose sender is proved. */
export interface Authentic {
  readonly kind: 'authentic';
  readonly delivery: Delivery;
  readonly identity: Identity;
}

/** The deprecated schemes are loaded where a sender is registered with one. */
const SCHEMES: Readonly<Record<AuthPolicy['scheme'], () => Eventual<Authenticate>>> = {
  signature: () => authenticateSignature,
  hmac: async () => (await import('../auth/hmac.ts')).authenticateHmac,
  bearer: async () => (await import('../auth/bearer.ts')).authenticateBearer,
};

/** The registered scheme and no other: there is never a second attempt (verification.md §2.22). */
export function authenticate(
  { delivery, target, senders }: Selected,
  context: AuthContext,
  arrivedAt: number,
): Eventual<Authentic | Refusal | Unavailability> {
  const { scheme } = senders[0].auth;
  const mismatch = modeMismatch(scheme, delivery.headers, context.protocol);
  if (mismatch) return mismatch;
  const request: AuthRequest = { delivery, target, senders, arrivedAt };
  const result = whenThere(SCHEMES[scheme](), (verify) => verify(context, request));
  return whenThere(result, (found) => authenticOr(found, delivery));
}

function authenticOr(result: AuthResult, delivery: Delivery): Authentic | Refusal | Unavailability {
  return result.kind === 'authentic' ? { kind: 'authentic', delivery, identity: result } : result;
}
