// Makes the last tries before a signed delivery is refused: other base URLs, a replaced key, a mistake in the
// receiver's URL or clock.
// Loaded on demand by `verify.ts`, because deliveries that verify need none of it (verification.md §2.27, §2.34 to
// §2.36, §4.16).

import type { RaiseAlarm } from '../../shared/alarms.ts';
import { quoted } from '../../codec/printable.ts';
import { Fault } from '../../shared/errors.ts';
import type { Candidate, KeySearch } from '../../keys/key-resolver.ts';
import { type Refusal, type Unavailability, refused } from '../../shared/outcome.ts';
import { editionAccepting, purposesOf } from '../../shared/editions.ts';
import type { SenderEntry } from '../../config/sender-entry.ts';
import type { VerifiesFor, Target, AuthContext, HeadRequest, LateDelivery } from '../auth-contract.ts';
import {
  baseFor,
  type Failure,
  laterFailure,
  type Trial,
  type TrialResult,
  tryCandidates,
  type Verified,
  trialOf,
} from './candidates.ts';
import { checkSignatureFields, type SignatureFields, MAX_VALIDITY_S, SKEW_S } from './checks.ts';
import { SAME } from './host.ts';
import { usableKey } from './key-policy.ts';
import { type Attempt, countFailure, notTried, otherAttempts } from './other-bases.ts';
import type { SignatureParameters } from './signature-input.ts';

/**
 * Tries the candidates, and accepts a key only if it is known to belong to its sender (verification.md §2.36). If that
 * is not known, the result is a fault on the receiver's side, but further candidates are still tried.
 * @param tried the result of trying the candidates, if they were tried before.
 */
export async function tryOwners(
  trial: Trial,
  candidates: readonly Candidate[],
  tried?: TrialResult,
): Promise<TrialResult | undefined> {
  let failure: Failure | undefined;
  let left = candidates;
  let result = tried ?? (await tryCandidates(trial, left));
  while (result?.kind === 'verified') {
    const { candidate } = result;
    const detail = await candidate.firstUse?.();
    if (detail === undefined) return result;
    failure = laterFailure(failure, { kind: 'unavailable', code: 'keys_unavailable', check: 7, detail });
    left = left.slice(left.indexOf(candidate) + 1);
    result = await tryCandidates(trial, left);
  }
  return failure && result ? laterFailure(failure, result) : (failure ?? result);
}

function undecided(senders: readonly string[]): Fault {
  return new Fault(
    'keys_unavailable',
    `No key decides, and some could not be fetched: ${[...new Set(senders)].join('; ')}`,
  );
}

/**
 * Calls `tryOwners` for one attempt after another. Returns the first result that verifies, with its trial, or else the
 * failure with the highest weight.
 * @param failed the failure of earlier attempts.
 */
async function tryAttempts(attempts: readonly Attempt[], failed?: Failure): Promise<TrialResult | undefined> {
  let failure = failed;
  for (const { trial, search } of attempts) {
    const result = await tryOwners(trial, search.candidates);
    if (result?.kind === 'verified') return { ...result, trial };
    if (result) failure = laterFailure(failure, result);
  }
  return failure;
}

/**
 * The result of `findReplaced`. `result`: the outcome of trying the keys that were found anew. `attempts`: one for each
 * URL that was tried with such keys; none if a key verified.
 */
interface Replaced {
  readonly result: TrialResult;
  readonly attempts: readonly Attempt[];
}

/**
 * Searches keys once more after no candidate verified. A seller may have replaced a key without changing its kid. Or
 * another sender signed, whose keys were not fetched because an earlier sender had a key of that kid (verification.md
 * §2.27 and §5.6).
 */
async function findReplaced(attempts: readonly Attempt[], failure: Failure): Promise<Replaced> {
  const found = new Map<KeySearch, KeySearch>();
  const anew: Attempt[] = [];
  for (const { trial, search } of attempts) {
    const { request } = trial;
    // A failed check 8 (the key's purpose and algorithm) is a reason to search too. A key that was replaced under its
    // kid may have another algorithm.
    const ofTheKey = failure.kind === 'refused' && (failure.check === 8 || failure.check === 10);
    const helps = trial.host.kind !== 'contradiction' && (ofTheKey || request.senders.length > 1);
    if (!helps) continue;
    const { keyid } = trial.signed.parameters;
    const again =
      found.get(search) ?? (await trial.context.keys.findReplaced(keyid, request, search.candidates));
    found.set(search, again);
    anew.push({ trial, search: again });
  }
  const result = (await tryAttempts(anew, failure)) ?? failure;
  return { result, attempts: result.kind === 'verified' ? [] : anew };
}

/** Returns a function that verifies the same delivery for other URLs. */
function verifierOf(trial: Trial): VerifiesFor {
  return async (target, candidates) => {
    const base = baseFor(target, trial.request, trial.signed);
    if (!base) return undefined;
    const result = await tryCandidates({ ...trial, base, host: SAME }, candidates);
    return result?.kind === 'verified' ? result.candidate : undefined;
  };
}

/**
 * Returns the answer (503) if check 10 (the signature) failed because of a mistake in the receiver's own `publicUrl`.
 * Otherwise undefined.
 */
async function signedElsewhere(
  attempts: readonly Attempt[],
  failure: Failure,
): Promise<Unavailability | undefined> {
  if (failure.kind !== 'refused' || failure.check !== 10) return undefined;
  for (const { trial, search } of attempts) {
    const { context, request, host } = trial;
    if (host.kind === 'contradiction') return undefined;
    const ours = await context.setUp?.signedElsewhere(request, search.candidates, verifierOf(trial));
    if (ours) return ours;
  }
  return undefined;
}

/**
 * Raises an alarm if another edition accepts the key's purpose. The sender may use that edition, and is answered 401
 * until the owner configures it. The signature is not verified yet, so nothing is remembered about the sender.
 */
function raisePurposeAlarm({ context, signed }: Trial, tried: readonly Attempt[]): void {
  const { raiseAlarm } = context;
  const policy = { protocol: signed.protocol, alg: signed.parameters.alg };
  const { purposeMember } = policy.protocol;
  for (const { sender, key } of tried.flatMap(({ search }) => search.candidates)) {
    const { edition } = sender;
    const purpose = String(key.jwk[purposeMember]);
    const isAccepted = purposesOf(edition, policy.protocol).includes(purpose);
    const other = isAccepted ? undefined : editionAccepting(purpose);
    const where = edition.keyPurposes
      ? `in edition ${edition.name}`
      : `under the name ${policy.protocol.name}`;
    // There is no alarm if the key has another fault too, because another edition would then not help.
    if (!other || typeof usableKey(key.jwk, key.verifyKey, { ...policy, purposes: [purpose] }) === 'string')
      continue;
    raiseAlarm({
      code: 'key_purpose_refused',
      option: 'edition',
      sender: sender.agentUrl,
      message: `The key with keyid ${quoted(key.kid)} is for ${purpose}, which ${where} signs no webhooks: 401. If ${sender.agentUrl} speaks edition ${other} or a later one, set edition: '${other}' for it.`,
    });
  }
}

/**
 * Makes the remaining tries before a refusal. Called if no key verified, or only a key that is not yet known to belong
 * to its sender.
 * @throws Fault if an error on the receiver's side prevents a decision.
 */
export async function afterNoneVerified(
  trial: Trial,
  search: KeySearch,
  tried: TrialResult | undefined,
): Promise<Verified | Refusal | Unavailability> {
  const own = { trial, search };
  const first = await tryOwners(trial, search.candidates, tried);
  if (first?.kind === 'verified') return first;
  const over = notTried(own);
  if (over) return over;
  let isFailure = first !== undefined;
  try {
    const found = await decided(own, first);
    const isUnknown = found.kind === 'refused' && found.code === 'webhook_signature_key_unknown';
    const isAccepted = found.kind === 'verified' && (found.trial ?? trial).host.kind === 'same';
    isFailure = !isUnknown && !isAccepted;
    return found;
  } finally {
    if (isFailure) countFailure(own);
  }
}

/** Decides after the first base URL was tried: tries the other base URLs, and fetches keys again if needed. */
async function decided(
  own: Attempt,
  failed: Failure | undefined,
): Promise<Verified | Refusal | Unavailability> {
  const others = await otherAttempts(own);
  const first = await tryAttempts(others, failed);
  if (first?.kind === 'verified') return first;
  const attempts = [own, ...others];
  if (!first) return unknownKey(attempts);
  // A wrong `publicUrl` is checked first, because that fetches nothing.
  const ours = await signedElsewhere(attempts, first);
  if (ours) return ours;
  const second = await findReplaced(attempts, first);
  const { result } = second;
  if (result.kind === 'faulted') throw result.error;
  if (result.kind !== 'refused' || own.trial.host.kind === 'contradiction') return result;
  const all = [...attempts, ...second.attempts];
  requireDecided(all);
  const oursToo = await signedElsewhere(second.attempts, result);
  if (oursToo) return oursToo;
  if (result.check === 8) raisePurposeAlarm(own.trial, all);
  return result;
}

/**
 * Checks that all keys could be searched.
 * @throws Fault if some keys could not be fetched.
 */
function requireDecided(attempts: readonly Attempt[]): void {
  const open = attempts.flatMap(({ search }) => search.undecided);
  if (open.length > 0) throw undecided(open);
}

/**
 * Returns the refusal if no sender has the key.
 * @throws Fault if some keys could not be fetched.
 */
function unknownKey(attempts: readonly Attempt[]): Refusal {
  requireDecided(attempts);
  const keyid = attempts[0]?.trial.signed.parameters.keyid ?? '';
  return refused('webhook_signature_key_unknown', `No sender has the keyid ${quoted(keyid)}.`, 7);
}

/**
 * Answers 503 if the signature is valid for the configured URL but `Host` names another. Only the seller can have
 * signed that URL, so a proxy of the receiver changed `Host` (verification.md §4.12).
 */
export function rewrittenHost(
  raiseAlarm: RaiseAlarm,
  sender: SenderEntry,
  received: string,
  target: Target,
): Unavailability {
  const detail = `Host is ${quoted(received)} but publicUrl names ${target.authority}, and the signature is right: a proxy in front rewrites Host.`;
  raiseAlarm({
    code: 'host_rewritten',
    sender: sender.agentUrl,
    message: `${detail} Make it pass Host on, correct publicUrl, or set hostCheck: 'off'.`,
  });
  return { kind: 'unavailable', code: 'webhook_target_uri_malformed', check: 10, detail };
}

/** A time from this number on must be in ms: Unix seconds reach it in the year 5138, Unix ms reached it in 1973. */
const LOOKS_LIKE_MS = 1e11;

/**
 * Raises an alarm that two clocks disagree, if the signature is outside its window by more than any real delay. The
 * signature is not verified yet, so nothing is remembered that strangers could make grow.
 */
function raiseSkewAlarm(
  raiseAlarm: RaiseAlarm,
  { created, keyid }: SignatureParameters,
  nowMs: number,
): void {
  if (created === undefined) return;
  const offsetS = Math.round(created - nowMs / 1000);
  const milliseconds = created >= LOOKS_LIKE_MS;
  if (!milliseconds && Math.abs(offsetS) <= MAX_VALIDITY_S + SKEW_S) return;
  const what = milliseconds
    ? 'created looks like milliseconds; RFC 9421 §2.3 wants seconds'
    : `created is ${Math.abs(offsetS)} s ${offsetS > 0 ? 'ahead of' : 'behind'} this receiver's clock; check both clocks`;
  raiseAlarm({
    code: 'clock_skew',
    message: `Unverified signature with keyid ${quoted(keyid ?? '')} refused: ${what}.`,
    offsetMs: offsetS * 1000,
  });
}

function signerOf(result: TrialResult | undefined): Candidate | 'undecided' | undefined {
  if (result === undefined || result.kind === 'refused') return undefined;
  return result.kind === 'verified' ? result.candidate : 'undecided';
}

/**
 * Returns the functions that check a late delivery as if it were inside its time window. Undefined if the delivery
 * would be refused at any time.
 */
function lateDelivery(
  context: AuthContext,
  request: HeadRequest,
  fields: SignatureFields,
): LateDelivery | undefined {
  // Check 2 passed, so all parameters are present and no default is used.
  const { created = 0, expires = 0, keyid = '' } = fields.input.parameters;
  if (created >= LOOKS_LIKE_MS) return undefined;
  const { headers } = request.delivery;
  const signed = checkSignatureFields(fields, headers, context.protocols, created * 1000);
  const trial = signed.kind === 'checked' ? trialOf(context, request, signed) : undefined;
  if (!trial) return undefined;
  return {
    window: { created, expires },
    find: async () => context.keys.find(keyid, request),
    signer: async (candidates) => {
      const found = signerOf(await tryCandidates(trial, candidates));
      if (found !== undefined) return found;
      const others = await otherAttempts({ trial, search: { candidates, undecided: [] } });
      return signerOf(await tryAttempts(others));
    },
  };
}

/**
 * Decides, after check 5 (the time window) failed, if this receiver's clock is wrong (verification.md §2.35). Returns
 * 503 if it is wrong, and otherwise `refusal`.
 */
export async function outsideWindow(
  context: AuthContext,
  request: HeadRequest,
  fields: SignatureFields,
  refusal: Refusal,
): Promise<Refusal | Unavailability> {
  const late = context.setUp && lateDelivery(context, request, fields);
  const ours = late && (await context.setUp?.outsideWindow(request, late));
  if (ours) return ours;
  raiseSkewAlarm(context.raiseAlarm, fields.input.parameters, request.arrivedAt);
  return refusal;
}
