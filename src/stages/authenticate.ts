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

/**
 * The registered scheme and no other: there is never a second attempt (verification.md §2.22), but for what a legacy
 * sender may sign.
 */
export function authenticate(
  selected: Selected,
  context: AuthContext,
  arrivedAt: number,
): Eventual<Authentic | Refusal | Unavailability> {
  const { delivery, target, senders } = selected;
  const { scheme } = senders[0].auth;
  const request: AuthRequest = { delivery, target, senders, arrivedAt };
  const mismatch = modeMismatch(scheme, delivery.headers, context.protocol);
  if (mismatch) return scheme === 'signature' ? mismatch : orChallenge(mismatch, request, selected, context);
  const result = whenThere(SCHEMES[scheme](), (verify) => verify(context, request));
  return whenThere(result, (found) => authenticateOr(found, selected));
}

/** A proof of control is signed (verification.md §7.9) where its sender is registered with a legacy scheme, too. */
async function orChallenge(
  mismatch: Refusal,
  request: AuthRequest,
  selected: Selected,
  context: AuthContext,
): Promise<Authentic | Refusal | Unavailability> {
  const { authenticateChallenge } = await import('../auth/signed-challenge.ts');
  const result = await authenticateChallenge(context, request);
  return result ? authenticateOr(result, selected) : mismatch;
}

function authenticateOr(
  result: AuthResult,
  { delivery, refused }: Selected,
): Authentic | Refusal | Unavailability {
  if (result.kind === 'authentic') return { kind: 'authentic', delivery, identity: result };
  return refused && result.kind === 'refused' ? refused(result) : result;
}
