import { utf8 } from '../../codec/utf8.ts';
import { type Eventual, whenThere } from '../../eventual.ts';
import type { Candidate } from '../../keys/contract.ts';
import type { Unavailability } from '../../outcome.ts';
import type { AuthContext, AuthRequest, Target, VerifiesFor } from '../contract.ts';
import type { Failure, Trial } from './candidates.ts';
import { tryCandidates } from './candidates.ts';
import type { CheckedSignature } from './checks.ts';
import { compareHost, SAME } from './host-check.ts';
import { signatureBase } from './signature-base.ts';

/** The signature base for a URL, encoded; undefined where it cannot be built. */
function baseFor(
  target: Target,
  { delivery }: AuthRequest,
  signed: CheckedSignature,
): Uint8Array | undefined {
  const facts = { method: delivery.method, target, headers: delivery.headers };
  const text = signatureBase(signed.components, facts, signed.signatureParams);
  return text === undefined ? undefined : utf8(text);
}

/** Everything that the candidates are tried on, or undefined where the base cannot be built. */
export function trialOf(
  context: AuthContext,
  request: AuthRequest,
  signed: CheckedSignature,
): Trial | undefined {
  const { delivery, target } = request;
  const base = baseFor(target, request, signed);
  return base && { context, request, signed, base, host: compareHost(delivery, target, context.hostCheck) };
}

/** The same delivery tried for other URLs. */
function verifierOf(trial: Trial): VerifiesFor {
  return (target, candidates) => {
    const base = baseFor(target, trial.request, trial.signed);
    if (!base) return undefined;
    const result = tryCandidates({ ...trial, base, host: SAME }, candidates);
    return whenThere(result, (made) => (made?.kind === 'verified' ? made.candidate : undefined));
  };
}

/** Where check 10 failed, and perhaps by our own `publicUrl`: the answer, if that is proved. */
export function signedElsewhere(
  trial: Trial,
  candidates: readonly Candidate[],
  failure: Failure,
): Eventual<Unavailability | undefined> {
  const { context, request, host } = trial;
  const inQuestion = failure.kind === 'refused' && failure.check === 10 && host.kind !== 'contradiction';
  if (!inQuestion) return undefined;
  return context.setUp?.signedElsewhere(request, candidates, verifierOf(trial));
}
