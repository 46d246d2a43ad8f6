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
 * What `tryCandidates` gives, where the key that verifies is that sender's own too (verification.md §2.36). One
 * that is not, or not yet known to be, is a fault on our side and blocks no other.
 * @param tried what trying the candidates gave already.
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
 * `tryOwners` for each of them in turn: the first that verifies, with its trial.
 * @param failed what others came to before.
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

/** The result of a further search. */
interface Replaced {
  readonly result: TrialResult;
  readonly attempts: readonly Attempt[];
}

/**
 * After no candidate verified, once: a seller may have replaced a key under its old kid, or another sender, whose
 * set was not asked because this one's has the kid, may be who signed (verification.md §2.27 and §5.6).
 */
async function findReplaced(attempts: readonly Attempt[], failure: Failure): Promise<Replaced> {
  const found = new Map<KeySearch, KeySearch>();
  const anew: Attempt[] = [];
  for (const { trial, search } of attempts) {
    const { request } = trial;
    // Check 8 too: a key replaced under its kid may be of another algorithm than the one that is held.
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

/** The same delivery tried for other URLs. */
function verifierOf(trial: Trial): VerifiesFor {
  return async (target, candidates) => {
    const base = baseFor(target, trial.request, trial.signed);
    if (!base) return undefined;
    const result = await tryCandidates({ ...trial, base, host: SAME }, candidates);
    return result?.kind === 'verified' ? result.candidate : undefined;
  };
}

/** Where check 10 failed, and perhaps by our own `publicUrl`: the answer, if that is proved. */
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
 * A key that this sender's edition does not accept and another one does: the sender may speak that edition, and gets
 * a 401 for everything until its owner says so. Raised before the signature is verified, hence stateless.
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
    // Only where nothing else is wrong with it: else the advice would not help.
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
 * What is left to do before it is refused, where no key verified that is known to be its sender's own.
 * @throws Fault where something on our side keeps it from being decided.
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

/** The same, where it is tried for each base. */
async function decided(
  own: Attempt,
  failed: Failure | undefined,
): Promise<Verified | Refusal | Unavailability> {
  const others = await otherAttempts(own);
  const first = await tryAttempts(others, failed);
  if (first?.kind === 'verified') return first;
  const attempts = [own, ...others];
  if (!first) return unknownKey(attempts);
  // Before anything is fetched again for it.
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

/** @throws Fault where some keys could not be had. */
function requireDecided(attempts: readonly Attempt[]): void {
  const open = attempts.flatMap(({ search }) => search.undecided);
  if (open.length > 0) throw undecided(open);
}

/** @throws Fault where some keys could not be had. */
function unknownKey(attempts: readonly Attempt[]): Refusal {
  requireDecided(attempts);
  const keyid = attempts[0]?.trial.signed.parameters.keyid ?? '';
  return refused('webhook_signature_key_unknown', `No sender has the keyid ${quoted(keyid)}.`, 7);
}

/**
 * The signature covers our URL and `Host` names another: only the seller can have signed it, so a proxy of ours
 * rewrote `Host` (verification.md §4.12). A fault on our side, hence 503.
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

/** Unix seconds reach this in the year 5138, Unix milliseconds reached it in 1973. */
const LOOKS_LIKE_MS = 1e11;

/**
 * Says that two clocks disagree, where a window failed by more than any honest delay. Raised before the signature
 * is verified, hence stateless: nothing that anybody can send grows here.
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

/** The delivery as it would be checked at a moment inside its window; undefined where no clock could put it right. */
function lateDelivery(
  context: AuthContext,
  request: HeadRequest,
  fields: SignatureFields,
): LateDelivery | undefined {
  // Check 2 passed: all of them are there.
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

/** After check 5 failed: whether it is this receiver's clock that is wrong (verification.md §2.35). */
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
