// Tries the candidate keys of a signature one by one: checks 8 to 10 (verification.md §2.8 to §2.10).
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

/** The facts about a delivery that are the same for all candidate keys. */
export interface Trial {
  readonly context: AuthContext;
  readonly request: HeadRequest;
  readonly signed: CheckedSignature;
  /** The signature base, encoded. */
  readonly base: Uint8Array;
  readonly host: HostComparison;
}

/** The signature base for a URL, encoded; undefined if it cannot be built. */
export function baseFor(
  target: Target,
  { delivery }: HeadRequest,
  signed: CheckedSignature,
): Uint8Array | undefined {
  const facts = { method: delivery.method, target, headers: delivery.headers };
  const text = signatureBase(signed.components, facts, signed.signatureParams);
  return text === undefined ? undefined : utf8(text);
}

/** Makes the trial of a delivery; undefined if the base cannot be built. */
export function trialOf(
  context: AuthContext,
  request: HeadRequest,
  signed: CheckedSignature,
): Trial | undefined {
  const { delivery, target } = request;
  const base = baseFor(target, request, signed);
  return base && { context, request, signed, base, host: compareHost(delivery, target, context.hostCheck) };
}

/** The result for a key that did not verify, or for which that could not be decided. */
export type Failure =
  | Refusal
  | Unavailability
  /** An error on our side was thrown while this candidate was tried. */
  | { readonly kind: 'faulted'; readonly error: unknown };

/** The candidate whose key verified. */
export type Verified = {
  readonly kind: 'verified';
  readonly candidate: Candidate;
  /** The trial in which the key verified, if that was for another base URL. */
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

/** Performs checks 8 to 10 for one candidate. */
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

/** Performs checks 9 and 10 while the revocation list is still being fetched. */
async function tryMeanwhile(
  trial: Trial,
  candidate: Candidate,
  usable: VerifyKey,
  revocation: Promise<RevocationState>,
): Promise<TrialResult> {
  if (trial.request.senders.length === 1) {
    return unfit(await revocation) ?? verifyWith(trial, candidate, usable);
  }
  // Not awaited before verifying: if another seller signed, the delivery must not wait for this seller's list
  // (verification.md §5.21).
  revocation.catch(() => undefined);
  const result = await verifyWith(trial, candidate, usable);
  return result.kind === 'verified' ? (unfit(await revocation) ?? result) : result;
}

/** The refusal or fault if check 9 fails; otherwise undefined. */
function unfit(revocation: RevocationState): Refusal | Unavailability | undefined {
  if (revocation === 'valid') return undefined;
  return revocation === 'stale'
    ? STALE
    : refused('webhook_signature_key_revoked', "keyid is in the operator's revoked_kids.", 9);
}

/**
 * Performs check 10. Returns no promise if the signature is verified on the main thread.
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
 * The order of failures, highest last. A failure without a decision comes after any refusal, so that the answer is
 * 503 and not 401.
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

/** Tries one candidate. An error that is thrown becomes `faulted`, because it is on our side. */
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
 * Tries one candidate after another until one verifies. A failure does not end the search: if two senders publish
 * the same `kid`, neither may block the other (verification.md §5.6). Returns no promise if the first verifies
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
