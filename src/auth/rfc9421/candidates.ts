// Tries the candidate keys of a signature one by one: checks 8 to 10 of purpose, revocation and signature
// (verification.md §2.8 to §2.10).
// Called by `verify.ts`, and by `refusal-cause.ts` for further tries before a refusal.

import { utf8 } from '../../codec/encoding.ts';
import type { VerifyKey } from '../../crypto/engine.ts';
import type { Candidate, RevocationState } from '../../keys/key-resolver.ts';
import { Fault, textOf } from '../../shared/errors.ts';
import { type Refusal, type Unavailability, refused } from '../../shared/outcome.ts';
import type { AuthContext, HeadRequest, Target } from '../auth-contract.ts';
import type { CheckedSignature } from './checks.ts';
import { purposesOf } from '../../shared/editions.ts';
import { compareHost, type HostComparison } from './host.ts';
import { usableKey } from './key-policy.ts';
import { isRevokedKey } from './revoked-at.ts';
import { signatureBase } from './signature-base.ts';
import { isThenable } from '../../shared/realms.ts';

/** A trial of a delivery's signature: the facts that are the same for all candidate keys. */
export interface Trial {
  readonly context: AuthContext;
  readonly request: HeadRequest;
  readonly signed: CheckedSignature;
  /** The signature base (the text that was signed) for the delivery's URL, encoded. */
  readonly base: Uint8Array;
  readonly host: HostComparison;
}

/** Builds the signature base (the text that was signed) for a URL, encoded; undefined if that is not possible. */
export function baseFor(
  target: Target,
  { delivery }: HeadRequest,
  signed: CheckedSignature,
): Uint8Array | undefined {
  const facts = { method: delivery.method, target, headers: delivery.headers };
  const text = signatureBase(signed.components, facts, signed.signatureParams);
  return text === undefined ? undefined : utf8(text);
}

/** Makes the trial of a delivery; undefined if the signature base cannot be built. */
export function trialOf(
  context: AuthContext,
  request: HeadRequest,
  signed: CheckedSignature,
): Trial | undefined {
  const { delivery, target } = request;
  const base = baseFor(target, request, signed);
  return base && { context, request, signed, base, host: compareHost(delivery, target, context.hostCheck) };
}

/** The result if a key did not verify the signature, or if the receiver could not decide that. */
export type Failure =
  | Refusal
  | Unavailability
  /** An error was thrown while this candidate was tried. Its cause is on the receiver's side, not the sender's. */
  | { readonly kind: 'faulted'; readonly error: unknown };

/** The candidate whose key verified the signature. */
export type Verified = {
  readonly kind: 'verified';
  readonly candidate: Candidate;
  /** The trial in which the key verified the signature. Absent: the trial for the URL that was tried first. */
  readonly trial?: Trial;
};

export type TrialResult = Verified | Failure;

const STALE: Unavailability = {
  kind: 'unavailable',
  code: 'webhook_signature_revocation_stale',
  check: 9,
  detail: "The sender's revocation list is older than its grace.",
};

function signatureRefusal(host: HostComparison): Refusal {
  return host.kind === 'differs'
    ? refused(
        'webhook_target_uri_malformed',
        'Host differs from publicUrl, and the signature does not verify.',
        10,
      )
    : refused('webhook_signature_invalid', 'The signature does not verify.', 10);
}

/** Performs checks 8 to 10 (the key's purpose, revocation, the signature) for one candidate. */
function tryCandidate(
  trial: Trial,
  candidate: Candidate,
  candidates: readonly Candidate[],
): TrialResult | Promise<TrialResult> {
  const { context, request, signed } = trial;
  const { sender, key } = candidate;
  const { alg, keyid, created } = signed.parameters;
  const policy = { protocol: signed.protocol, purposes: purposesOf(sender.edition, signed.protocol), alg };
  const usable = usableKey(key.jwk, key.verifyKey, policy);
  if (typeof usable === 'string')
    return refused('webhook_signature_key_purpose_invalid', `The JWK: ${usable}.`, 8);
  if (isRevokedKey(candidate, candidates, created))
    return refused('webhook_signature_key_revoked', 'The JWK: revoked_at is not after created.', 9);
  const revocation = context.keys.revocation(sender, keyid, request);
  return isThenable(revocation)
    ? tryMeanwhile(trial, candidate, usable, revocation)
    : (unfit(revocation) ?? verifyWith(trial, candidate, usable));
}

/**
 * Performs checks 9 (revocation) and 10 (the signature) if the revocation list is still being fetched. For a URL with
 * one sender, the list is awaited first.
 */
async function tryMeanwhile(
  trial: Trial,
  candidate: Candidate,
  usable: VerifyKey,
  revocation: Promise<RevocationState>,
): Promise<TrialResult> {
  if (trial.request.senders.length === 1) {
    return unfit(await revocation) ?? verifyWith(trial, candidate, usable);
  }
  // The list is not awaited before verifying. If another seller signed, the delivery must not wait for this seller's
  // list (verification.md §5.21).
  revocation.catch(() => undefined);
  const result = await verifyWith(trial, candidate, usable);
  return result.kind === 'verified' ? (unfit(await revocation) ?? result) : result;
}

/** Returns the refusal or fault if check 9 (revocation) fails; otherwise undefined. */
function unfit(revocation: RevocationState): Refusal | Unavailability | undefined {
  if (revocation === 'valid') return undefined;
  return revocation === 'stale'
    ? STALE
    : refused('webhook_signature_key_revoked', "keyid is in the operator's revoked_kids.", 9);
}

/**
 * Performs check 10 (the signature). Returns no promise if the signature is verified on the main thread.
 * @throws Fault (or rejects with it) if the engine fails, which says nothing about the signature (verification.md
 * §3.10).
 */
function verifyWith(
  { context, base, signed, host }: Trial,
  candidate: Candidate,
  key: VerifyKey,
): TrialResult | Promise<TrialResult> {
  if (host.kind === 'contradiction') return refused('webhook_target_uri_malformed', host.detail, 10);
  const resultOf = (verified: boolean): TrialResult =>
    verified ? { kind: 'verified', candidate } : signatureRefusal(host);
  try {
    const verdict = context.engine.verify(key, base, signed.signature);
    return isThenable(verdict)
      ? verdict.then(resultOf, (error: unknown) => engineFailed(error, context))
      : resultOf(verdict);
  } catch (error) {
    return engineFailed(error, context);
  }
}

function engineFailed(error: unknown, { raiseAlarm }: AuthContext): never {
  const message = `A signature could not be verified on this machine: ${textOf(error)}. Such deliveries are answered 503.`;
  raiseAlarm({ code: 'misconfigured', message });
  throw new Fault('misconfigured', message, { cause: error });
}

/**
 * For each failure, a weight; the failure with the highest weight decides the answer. A refusal has the number of its
 * check. A failure without a decision weighs more, so that the answer is 503 and not 401.
 */
const WEIGHT: Record<Failure['kind'], (failure: Failure) => number> = {
  faulted: () => 102,
  unavailable: () => 101,
  refused: (failure) => (failure.kind === 'refused' ? Number(failure.check) : 0),
};

/**
 * Returns the failure with the higher weight: the one that passed more checks, or that left the result undecided.
 */
export function laterFailure(a: Failure | undefined, b: Failure): Failure {
  return a && WEIGHT[a.kind](a) >= WEIGHT[b.kind](b) ? a : b;
}

/** Tries one candidate. A thrown error becomes the result `faulted`, because it is on the receiver's side. */
function tryOne(
  trial: Trial,
  candidate: Candidate,
  candidates: readonly Candidate[],
): TrialResult | Promise<TrialResult> {
  const faulted = (error: unknown): TrialResult => ({ kind: 'faulted', error });
  try {
    const tried = tryCandidate(trial, candidate, candidates);
    return isThenable(tried) ? tried.then(undefined, faulted) : tried;
  } catch (error) {
    return faulted(error);
  }
}

type Tried = TrialResult | undefined;

/**
 * Tries one candidate after another until the key of one verifies. A failure does not end the search: if two senders
 * publish the same `kid`, neither may block the other (verification.md §5.6). Returns no promise if the first verifies
 * without waiting, as for most deliveries.
 * @returns the first that verifies, or else the failure of the highest weight; undefined if there is no candidate.
 */
export function tryCandidates(trial: Trial, candidates: readonly Candidate[]): Tried | Promise<Tried> {
  const [candidate] = candidates;
  if (!candidate) return undefined;
  const first = tryOne(trial, candidate, candidates);
  return !isThenable(first) && first.kind === 'verified' ? first : tryOthers(trial, candidates, first);
}

async function tryOthers(
  trial: Trial,
  candidates: readonly Candidate[],
  first: TrialResult | Promise<TrialResult>,
): Promise<TrialResult> {
  let result = await first;
  let failure: Failure | undefined;
  for (const candidate of candidates.slice(1)) {
    if (result.kind === 'verified') return result;
    failure = laterFailure(failure, result);
    result = await tryOne(trial, candidate, candidates);
  }
  return result.kind === 'verified' ? result : laterFailure(failure, result);
}
