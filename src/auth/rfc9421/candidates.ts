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

/** Everything that is the same for each candidate. */
export interface Trial {
  readonly context: AuthContext;
  readonly request: HeadRequest;
  readonly signed: CheckedSignature;
  /** The signature base, encoded. */
  readonly base: Uint8Array;
  readonly host: HostComparison;
}

/** The signature base for a URL, encoded; undefined where it cannot be built. */
export function baseFor(
  target: Target,
  { delivery }: HeadRequest,
  signed: CheckedSignature,
): Uint8Array | undefined {
  const facts = { method: delivery.method, target, headers: delivery.headers };
  const text = signatureBase(signed.components, facts, signed.signatureParams);
  return text === undefined ? undefined : utf8(text);
}

/** Everything that the candidates are tried on, or undefined where the base cannot be built. */
export function trialOf(
  context: AuthContext,
  request: HeadRequest,
  signed: CheckedSignature,
): Trial | undefined {
  const { delivery, target } = request;
  const base = baseFor(target, request, signed);
  return base && { context, request, signed, base, host: compareHost(delivery, target, context.hostCheck) };
}

/** The key did not verify, could not be asked about, or could not be tried. */
export type Failure =
  | Refusal
  | Unavailability
  /** Something on our side threw while this candidate was tried. */
  | { readonly kind: 'faulted'; readonly error: unknown };

/** Whose key verified. */
export type Verified = {
  readonly kind: 'verified';
  readonly candidate: Candidate;
  /** The trial that verified, if it was for another base. */
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

/** Checks 8 to 10 for one candidate. */
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

/** Checks 9 and 10, where the list is still being asked for. */
async function tryMeanwhile(
  trial: Trial,
  candidate: Candidate,
  usable: VerifyKey,
  revocation: Promise<RevocationState>,
): Promise<TrialResult> {
  if (trial.request.senders.length === 1) {
    return unfit(await revocation) ?? verifyWith(trial, candidate, usable);
  }
  // The seller that signed, if not this one, must not wait for this one's list (verification.md §5.21).
  revocation.catch(() => undefined);
  const result = await verifyWith(trial, candidate, usable);
  return result.kind === 'verified' ? (unfit(await revocation) ?? result) : result;
}

/** Check 9. */
function unfit(revocation: RevocationState): Refusal | Unavailability | undefined {
  if (revocation === 'valid') return undefined;
  return revocation === 'stale'
    ? STALE
    : refused('webhook_signature_key_revoked', "keyid is in the operator's revoked_kids.", 9);
}

/**
 * Check 10. No promise where the main thread verifies.
 * @throws Fault (or rejects with it) where the engine fails: that says nothing of the signature (verification.md §3.10).
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

/** How much a failure says. One that might have been a success comes before any refusal: 503, never 401. */
const WEIGHT: Record<Failure['kind'], (failure: Failure) => number> = {
  faulted: () => 102,
  unavailable: () => 101,
  refused: (failure) => (failure.kind === 'refused' ? Number(failure.check) : 0),
};

/** Of two failures the one that came further, or that leaves the question open. */
export function laterFailure(a: Failure | undefined, b: Failure): Failure {
  return a && WEIGHT[a.kind](a) >= WEIGHT[b.kind](b) ? a : b;
}

/** An error that is thrown here is our side's: `faulted`. */
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
 * Tries one candidate after another until one verifies: a `kid` that two senders publish must not let one of them
 * shadow or block the other (verification.md §5.6), so no failure ends the search. No promise where the first verifies
 * and nothing is waited for, as for most deliveries.
 * @returns the first that verifies, or the failure of the latest check; undefined where there was no candidate.
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
