import { type Eventual, whenThere } from '../../eventual.ts';
import type { Candidate } from '../../keys/contract.ts';
import type { Refusal, Unavailability } from '../../outcome.ts';
import type { Authenticate, AuthResult, Identity } from '../contract.ts';
import type { Trial, Verified } from './candidates.ts';
import { tryCandidates } from './candidates.ts';
import type { CheckedSignature } from './checks.ts';
import { checkSignatureFields, readSignatureFields } from './checks.ts';
import { matchingHash } from './content-digest.ts';
import { refuse } from './refuse.ts';
import { trialOf } from './trial.ts';
import { SKEW_S } from './window.ts';

/** Checks 7 to 10: whose key verifies. @throws Fault where something on our side keeps it from being decided. */
function findSigner(trial: Trial): Eventual<Verified | Refusal | Unavailability> {
  const { keyid } = trial.signed.parameters;
  return whenThere(trial.context.keys.find(keyid, trial.request), (search) =>
    whenThere(tryCandidates(trial, search.candidates), (first) =>
      first?.kind === 'verified' && !first.candidate.firstUse
        ? first
        : import('./none-verified.ts').then((it) => it.afterNoneVerified(trial, search, first)),
    ),
  );
}

/** A string of its own: a slice would keep the whole header alive for as long as a store keeps the nonce. */
function copy(text: string): string {
  return ` ${text}`.slice(1);
}

function identityOf(
  { sender, key }: Candidate,
  { parameters }: CheckedSignature,
  bodyHash: string,
): Identity {
  const { keyid, nonce, expires } = parameters;
  return {
    kind: 'authentic',
    sender,
    scheme: 'signature',
    bodyHash,
    nonce: {
      keyid: key.kid === keyid ? key.kid : copy(keyid),
      nonce: copy(nonce),
      expiresAtMs: (expires + SKEW_S) * 1000,
    },
  };
}

/** Check 11. */
function identified({ context, request, signed }: Trial, { candidate }: Verified): AuthResult {
  const bodyHash = matchingHash(signed.digest, request.delivery.rawBody, context.hashes);
  if (bodyHash === undefined) {
    return refuse(11, 'webhook_signature_digest_mismatch', 'Content-Digest does not match the body.');
  }
  return identityOf(candidate, signed, bodyHash);
}

/** The sender is proved. */
function proved(trial: Trial, found: Verified): Eventual<AuthResult> {
  const { context, request, host } = trial;
  const { sender } = found.candidate;
  context.setUp?.verified(sender, request.arrivedAt);
  if (host.kind !== 'differs') return identified(trial, found);
  return import('./rewritten-host.ts').then((it) =>
    it.rewrittenHost(context.raiseAlarm, sender, host.received, request.target),
  );
}

/**
 * Checks 1 to 11 (verification.md §2.1 to §2.11), in that order, for senders registered with signatures. Whether the
 * request carries another scheme's headers was decided before. No promise where nothing has to be waited for.
 * @returns who signed, with the nonce that is to be claimed; a refusal; or, where the receiver's own surroundings
 * failed a check, an unavailability.
 * @throws Fault (rejects) `keys_unavailable` where no key decides and some could not be had.
 */
export const authenticateSignature: Authenticate = (context, request) => {
  const { headers } = request.delivery;
  const fields = readSignatureFields(headers);
  if (fields.kind === 'refused') return fields;
  const signed = checkSignatureFields(fields, headers, context.protocol, request.arrivedAt);
  if (signed.kind === 'refused') {
    // Whose clock is wrong is asked of few deliveries: loaded for the first.
    return signed.check === 5
      ? import('./outside-window.ts').then((it) => it.outsideWindow(context, request, fields, signed))
      : signed;
  }
  const trial = trialOf(context, request, signed);
  // Check 6 saw a value for every component, so that this is only what the types cannot say.
  if (!trial) return refuse(6, 'webhook_signature_components_incomplete', 'The signature base has no text.');
  return whenThere(findSigner(trial), (signer) =>
    signer.kind === 'verified' ? proved(trial, signer) : signer,
  );
};
