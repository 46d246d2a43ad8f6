// Authenticates a delivery by its signature: checks 1 to 10 on the headers, check 11 on the body (verification.md §2).
// Called by `authenticate`. Further tries before a refusal are in `refusal-cause.ts`, which is loaded on demand.

import type { Candidate, KeySearch } from '../../keys/key-resolver.ts';
import { type Unavailability, refused } from '../../shared/outcome.ts';
import {
  type Authenticate,
  type AuthResult,
  type Proof,
  type Prove,
  type WholeBody,
  whole,
} from '../auth-contract.ts';
import { type Trial, trialOf, type TrialResult, tryCandidates, type Verified } from './candidates.ts';
import {
  type CheckedSignature,
  checkSignatureFields,
  readSignatureFields,
  SKEW_S,
  windowEnded,
} from './checks.ts';
import { matchingHash } from './content-digest.ts';
import type { SenderEntry } from '../../config/sender-entry.ts';
import { isThenable } from '../../shared/realms.ts';
import { once } from '../../shared/single-flight.ts';

/** Resolves to the module with the further tries before a refusal, which is imported once. */
const loadRefusalCause = once(() => import('./refusal-cause.ts'));

/**
 * Returns the text as a new string. A slice of a header would keep the whole header in memory for as long as a store
 * keeps the nonce.
 */
function copy(text: string): string {
  return ` ${text}`.slice(1);
}

function nonceOf({ key }: Candidate, { parameters }: CheckedSignature): NonNullable<Proof['nonce']> {
  const { nonce, expires } = parameters;
  return {
    keyid: key.kid,
    nonce: copy(nonce),
    expiresAtMs: (expires + SKEW_S) * 1000,
  };
}

interface Signer {
  readonly sender: SenderEntry;
  readonly nonce: NonNullable<Proof['nonce']>;
}

/**
 * Performs check 5 (the time window) again, because the body may have taken long, and the nonce is remembered only
 * until the window's end. Then performs check 11 (the digest).
 */
function identified(
  { context, request, signed }: Trial,
  { sender, nonce }: Signer,
  { rawBody, hash, wholeAt }: WholeBody,
): AuthResult {
  if (windowEnded(signed.parameters, wholeAt)) {
    return refused('webhook_signature_window_invalid', 'The window ended before the body was whole.', 5);
  }
  const bodyHash = matchingHash(signed.digest, hash ?? context.hashes.sha256Hex(rawBody));
  if (bodyHash === undefined) {
    return refused('webhook_signature_digest_mismatch', 'Content-Digest does not match the body.', 11);
  }
  const { target } = request;
  return { kind: 'authentic', sender, scheme: 'signature', target, bodyHash, nonce };
}

function proofOf(trial: Trial, candidate: Candidate): Proof {
  const { sender } = candidate;
  const nonce = nonceOf(candidate, trial.signed);
  return {
    kind: 'proof',
    sender,
    nonce,
    complete: (body) => identified(trial, { sender, nonce }, body),
  };
}

/**
 * Called when the headers have proved the sender. Returns the proof that the body must complete, or an unavailability
 * if a proxy changed `Host`.
 */
function proved(trial: Trial, { candidate }: Verified): Proof | Promise<Unavailability> {
  const { context, request, host } = trial;
  context.keys.verified?.(candidate, request);
  context.setUp?.verified(candidate.sender, request);
  return host.kind === 'differs' ? rewritten(trial, candidate, host.received) : proofOf(trial, candidate);
}

async function rewritten(
  { context, request }: Trial,
  { sender }: Candidate,
  received: string,
): Promise<Unavailability> {
  const { rewrittenHost } = await loadRefusalCause();
  return rewrittenHost(context.raiseAlarm, sender, received, request.target);
}

/**
 * Performs checks 1 to 10 (verification.md §2.1 to §2.10) in the order of their numbers, for senders that are
 * registered with signatures. Headers of another scheme were refused before. Returns no promise if nothing has to be
 * waited for.
 * @returns the proof: the signer, the nonce to be recorded, and check 11. Otherwise a refusal, or an unavailability if
 * a check failed because of the receiver's own environment.
 * @throws Fault (or rejects with it) `keys_unavailable` if no key decides and some could not be fetched.
 */
export const proveSignature: Prove = (context, request) => {
  const { headers } = request.delivery;
  const fields = readSignatureFields(headers);
  if (fields.kind === 'refused') return fields;
  const signed = checkSignatureFields(fields, headers, context.protocols, request.arrivedAt);
  if (signed.kind === 'refused') {
    if (signed.check !== 5) return signed;
    return loadRefusalCause().then((it) => it.outsideWindow(context, request, fields, signed));
  }
  const trial = trialOf(context, request, signed);
  // Never happens after check 6, which found a value for every component. TypeScript needs this line.
  if (!trial) return refused('webhook_signature_components_incomplete', 'The signature base has no text.', 6);
  const found = context.keys.find(signed.parameters.keyid, request);
  return isThenable(found) ? found.then((search) => signedBy(trial, search)) : signedBy(trial, found);
};

/** Performs checks 7 to 10: finds the candidate (a sender's key) that verifies the signature. */
function signedBy(trial: Trial, search: KeySearch): ReturnType<Prove> {
  const first = tryCandidates(trial, search.candidates);
  return !isThenable(first) && isDecided(first) ? proved(trial, first) : undecided(trial, search, first);
}

const isDecided = (tried: TrialResult | undefined): tried is Verified =>
  tried?.kind === 'verified' && !tried.candidate.firstUse;

async function undecided(
  trial: Trial,
  search: KeySearch,
  tried: ReturnType<typeof tryCandidates>,
): Promise<Awaited<ReturnType<Prove>>> {
  const first = await tried;
  if (isDecided(first)) return proved(trial, first);
  const { afterNoneVerified } = await loadRefusalCause();
  const signer = await afterNoneVerified(trial, search, first);
  return signer.kind === 'verified' ? proved(signer.trial ?? trial, signer) : signer;
}

/** Authenticates a delivery whose body is available, by checks 1 to 11. */
export const authenticateSignature: Authenticate = whole(proveSignature);
