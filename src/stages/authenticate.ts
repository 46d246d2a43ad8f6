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
export function authenticate(selected: Selected, context: AuthContext, arrivedAt: number): ReturnType<Prove> {
  const { delivery, base, target, senders, others } = selected;
  const { auth } = senders[0];
  const scheme = schemeOf(auth, delivery.headers, context.protocols);
  const request: HeadRequest = { delivery, base, target, senders, others, arrivedAt };
  const mismatch = modeMismatch(scheme, delivery.headers, context.protocols);
  if (!mismatch) return SCHEMES[scheme](context, request);
  // A proof of control is signed (verification.md §7.9) if its sender is registered with a legacy scheme, too.
  const here = scheme === 'signature' ? mismatch : proveChallenge(context, request, mismatch);
  return others ? elsewhere(here, others, context, arrivedAt) : here;
}

/** By the senders of other bases that are registered with the scheme of the delivery (verification.md §4.16). */
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
  // By its body it may be a proof of control.
  if (found.kind === 'refused' && here.kind === 'proof') return here;
  if (found.kind !== 'proof') return found;
  const judged = (result: AuthResult): AuthResult =>
    result.kind === 'authentic' ? { target: first.target, ...result } : result;
  return { ...found, complete: async (body) => judged(await found.complete(body)) };
}

/** What is left of it once the body is there: check 11, or the HMAC. No promise where nothing is waited for. */
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
