import { Fault } from '../../errors.ts';
import { type Eventual, whenThere } from '../../eventual.ts';
import type { Candidate, KeySearch } from '../../keys/contract.ts';
import type { Refusal, Unavailability } from '../../outcome.ts';
import type { Authenticate, AuthResult, Identity } from '../contract.ts';
import { raisePurposeAlarm, raiseSharedKeyAlarm, rewrittenHost } from './alarms.ts';
import type { Failure, Trial } from './candidates.ts';
import { furthest, tryCandidates } from './candidates.ts';
import type { CheckedSignature } from './checks.ts';
import { checkSignatureFields, readSignatureFields } from './checks.ts';
import { matchingHash } from './content-digest.ts';
import { quoted, refuse } from './refuse.ts';
import { signedElsewhere, trialOf } from './trial.ts';
import { SKEW_S } from './window.ts';

function undecided(senders: readonly string[]): Fault {
  return new Fault('keys_unavailable', `No key decides, and some could not be had: ${senders.join('; ')}`);
}

type Found = { readonly kind: 'found'; readonly candidate: Candidate; readonly among: readonly Candidate[] };

/**
 * After no candidate verified, once: a seller may have replaced a key under its old kid, or another sender, whose
 * set was not asked because this one's has the kid, may be who signed (verification.md §2.27 and §5.6).
 */
async function findReplaced(
  trial: Trial,
  tried: readonly Candidate[],
  failure: Failure,
): Promise<KeySearch & { readonly result: Found | Failure }> {
  const { request } = trial;
  // Check 8 too: a key replaced under its kid may be of another algorithm than the one that is held.
  const ofTheKey = failure.kind === 'refused' && (failure.check === 8 || failure.check === 10);
  const helps = trial.host.kind !== 'contradiction' && (ofTheKey || request.senders.length > 1);
  if (!helps) return { result: failure, candidates: [], undecided: [] };
  const { keyid } = trial.signed.parameters;
  const search = await trial.context.keys.findReplaced(keyid, request, tried);
  const { candidates } = search;
  const result = await tryCandidates(trial, candidates);
  if (result?.kind === 'verified') {
    const found = { kind: 'found', candidate: result.candidate, among: candidates } as const;
    return { result: found, candidates, undecided: [] };
  }
  return { ...search, result: result ? furthest(failure, result) : failure };
}

/** Checks 7 to 10: whose key verifies. @throws Fault where something on our side keeps it from being decided. */
function findSigner(trial: Trial): Eventual<Found | Refusal | Unavailability> {
  const { keyid } = trial.signed.parameters;
  return whenThere(trial.context.keys.find(keyid, trial.request), (search) =>
    whenThere(tryCandidates(trial, search.candidates), (first) =>
      first?.kind === 'verified'
        ? { kind: 'found', candidate: first.candidate, among: search.candidates }
        : afterNoneVerified(trial, search, first),
    ),
  );
}

async function afterNoneVerified(
  trial: Trial,
  search: KeySearch,
  first: Failure | undefined,
): Promise<Found | Refusal | Unavailability> {
  if (!first) {
    if (search.undecided.length > 0) throw undecided(search.undecided);
    const { keyid } = trial.signed.parameters;
    return refuse(7, 'webhook_signature_key_unknown', `No sender has the keyid ${quoted(keyid)}.`);
  }
  // Before anything is fetched again for it.
  const ours = await signedElsewhere(trial, search.candidates, first);
  if (ours) return ours;
  const second = await findReplaced(trial, search.candidates, first);
  const { result } = second;
  if (result.kind === 'faulted') throw result.error;
  if (result.kind !== 'refused' || trial.host.kind === 'contradiction') return result;
  const open = [...search.undecided, ...second.undecided];
  if (open.length > 0) throw undecided(open);
  const oursToo = await signedElsewhere(trial, second.candidates, result);
  if (oursToo) return oursToo;
  if (result.check === 8) {
    const { protocol, raiseAlarm } = trial.context;
    const policy = { protocol, alg: trial.signed.parameters.alg };
    raisePurposeAlarm(raiseAlarm, policy, [...search.candidates, ...second.candidates]);
  }
  return result;
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

/** Check 11, and the alarms that a proved sender is a reason for. */
function identified({ context, request, signed, host }: Trial, { candidate, among }: Found): AuthResult {
  const { delivery, target, arrivedAt } = request;
  context.setUp?.verified(candidate.sender, arrivedAt);
  raiseSharedKeyAlarm(context.raiseAlarm, candidate, among);
  if (host.kind === 'differs') {
    return rewrittenHost(context.raiseAlarm, candidate.sender, host.received, target);
  }
  const bodyHash = matchingHash(signed.digest, delivery.rawBody, context.hashes);
  if (bodyHash === undefined) {
    return refuse(11, 'webhook_signature_digest_mismatch', 'Content-Digest does not match the body.');
  }
  return identityOf(candidate, signed, bodyHash);
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
    signer.kind === 'found' ? identified(trial, signer) : signer,
  );
};
