import type { AuthContext, HeadRequest, Identity, Proof, Prove, WholeBody } from '../auth/contract.ts';
import { modeMismatch, schemeOf } from '../auth/mode.ts';
import { proveSignature } from '../auth/rfc9421/verify.ts';
import type { Refusal, Unavailability } from '../outcome.ts';
import type { AuthPolicy } from '../senders.ts';
import type { Selected } from './selected.ts';

/** A body whose sender is proved. */
export interface Authentic {
  readonly kind: 'authentic';
  readonly rawBody: Uint8Array;
  readonly identity: Identity;
}

type Refused = Refusal | Unavailability;

/** The deprecated schemes are loaded where a sender is registered with one. */
const SCHEMES: Readonly<Record<AuthPolicy['scheme'], () => Prove | Promise<Prove>>> = {
  signature: () => proveSignature,
  hmac: async () => (await import('../auth/hmac.ts')).proveHmac,
  bearer: async () => (await import('../auth/bearer.ts')).proveBearer,
};

/**
 * The registered scheme and no other, the one of the fields where HMAC counts for reports: there is never a second attempt (verification.md §2.22), but for what a legacy
 * sender may sign. By headers alone; `complete` is for the body.
 */
export async function authenticate(
  { delivery, target, senders, refused }: Selected,
  context: AuthContext,
  arrivedAt: number,
): Promise<Proof | Refused> {
  const { auth } = senders[0];
  const scheme = schemeOf(auth, delivery.headers, context.protocols);
  const request: HeadRequest = { delivery, target, senders, arrivedAt };
  const mismatch = modeMismatch(scheme, delivery.headers, context.protocols);
  if (mismatch) return scheme === 'signature' ? mismatch : orChallenge(mismatch, request, context);
  const prove = await SCHEMES[scheme]();
  const found = await prove(context, request);
  return refused && found.kind === 'refused' ? refused(found) : found;
}

/** A proof of control is signed (verification.md §7.9) where its sender is registered with a legacy scheme, too. */
async function orChallenge(
  mismatch: Refusal,
  request: HeadRequest,
  context: AuthContext,
): Promise<Proof | Refused> {
  const { proveChallenge } = await import('../auth/signed-challenge.ts');
  return proveChallenge(context, request, mismatch);
}

/** What is left of it once the body is there: check 11, or the HMAC. */
export async function authenticateBody(
  proof: Proof,
  body: WholeBody,
  { refused }: Pick<Selected, 'refused'>,
): Promise<Authentic | Refused> {
  const found = await proof.complete(body);
  if (found.kind === 'authentic') return { kind: 'authentic', rawBody: body.rawBody, identity: found };
  return refused && found.kind === 'refused' ? refused(found) : found;
}
