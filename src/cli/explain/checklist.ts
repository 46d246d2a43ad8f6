// Judges a delivery with the receiver's own checks, and where possible also with the checks after the first failure.
// `explain.ts` calls `checklist` for the captured delivery and for each changed variant.
import type { AuthContext, AuthRequest, AuthResult } from '../../auth/auth-contract.ts';
import { authenticateHmac } from '../../auth/hmac.ts';
import { authenticateBearer } from '../../auth/bearer.ts';
import { modeMismatch, schemeOf } from '../../auth/mode.ts';
import { readSignatureFields } from '../../auth/rfc9421/checks.ts';
import { digestMatches, readContentDigest } from '../../auth/rfc9421/content-digest.ts';
import { authenticateSignature, proveSignature } from '../../auth/rfc9421/verify.ts';
import { challengeIn, isSignedChallenge } from '../../auth/signed-challenge.ts';
import type { JsonObject } from '../../codec/members.ts';
import { readChallenge } from '../../events/challenge.ts';
import { readEvent } from '../../events/index.ts';
import type { KeyResolver } from '../../keys/key-resolver.ts';
import type { CheckId } from '../../shared/outcome.ts';
import { guard, guardAgentPush, type GuardContext } from '../../stages/guard.ts';
import { isReport } from '../../stages/read.ts';
import type { AuthPolicy } from '../../config/sender-entry.ts';
import { MS_FROM } from '../shell.ts';
import type { ExplainInput, Known, KnownRevocations, Step } from './explain-case.ts';

/**
 * Returns a key resolver that reports the faults of the seller's documents in checks 7 and 9, as a receiver would. A
 * revoked key stays revoked, even if the revocation list is stale.
 */
export function withKnown(keys: KeyResolver, { revocations, keysFault }: Known): KeyResolver {
  return {
    ...keys,
    ...(keysFault !== undefined && { find: async () => ({ candidates: [], undecided: [keysFault] }) }),
    revocation: async (...asked) => {
      const state = await keys.revocation(...asked);
      return state === 'valid' && revocations?.state === 'unusable' ? 'stale' : state;
    },
  };
}

/** The checks that `authenticateSignature` makes, in the same order, with their titles for the output. */
const CHECKS: readonly (readonly [CheckId, string])[] = [
  [1, 'Signature-Input, Signature, Content-Digest can be read'],
  [2, 'all parameters are there'],
  [3, 'tag'],
  [4, 'alg'],
  [5, 'created and expires'],
  [6, 'covered components'],
  [7, 'the key is known'],
  [8, 'the key is for webhooks'],
  [9, 'the key is not revoked'],
  [10, 'the signature verifies'],
  [11, 'Content-Digest matches the body'],
];

/** The functions that authenticate legacy senders. Their checks have no number. */
const LEGACY = { hmac: authenticateHmac, bearer: authenticateBearer } as const;

type Failure = Exclude<AuthResult, { kind: 'authentic' }>;

/** The facts by which checks are judged, besides the delivery itself. */
interface Judging extends Known, Pick<ExplainInput, 'receivedAtAssumed'> {
  /** True if the capture has no body. Checks that need the body are then not judged (`open`). */
  readonly bodyless?: boolean | undefined;
}

const NO_BODY = { verdict: 'open', detail: 'the capture has no body' } as const;
const NO_TIME = {
  verdict: 'open',
  detail: 'the signature has expired by now, and the time of receipt is unknown: give it by --received-at',
} as const;

/** Authenticates a delivery. @returns the first failure; undefined if the delivery is authentic. */
async function failure(
  context: AuthContext,
  request: AuthRequest,
  { bodyless }: Judging,
): Promise<Failure | undefined> {
  try {
    const authenticating = bodyless ? proveSignature : authenticateSignature;
    const result = await authenticating(context, request);
    return result.kind === 'authentic' || result.kind === 'proof' ? undefined : result;
  } catch (error) {
    return {
      kind: 'unavailable',
      code: 'keys_unavailable',
      check: 7,
      detail: (error as Error).message,
    };
  }
}

/** Returns checks 1 to 11 with their verdicts: `pass` before the failed check, and `open` (not reached) after it. */
function rows(failed: Failure | undefined): Step[] {
  // A rewritten `Host` has no check number. It is found only after the signature was verified, so it counts as check
  // 10.
  const at = failed === undefined ? Number.POSITIVE_INFINITY : Number(failed.check ?? 10);
  return CHECKS.map(([check, title]): Step => {
    const row = { id: String(check), title };
    if (Number(check) < at) return { ...row, verdict: 'pass' };
    if (Number(check) > at) return { ...row, verdict: 'open', detail: 'not reached' };
    const fault = failed?.kind === 'unavailable';
    return { ...row, verdict: 'fail', fault, ...(failed && { code: failed.code, detail: failed.detail }) };
  });
}

const UNSEEN: KnownRevocations = {
  state: 'unknown',
  detail: 'no revocation list was read: --agent-url reads it',
};

/**
 * Corrects the verdict of check 9 (the key is not revoked). `pass` becomes `open` (not judged) if the state of the
 * revocation list is unknown.
 */
function revocationRow(row: Step, { revocations = UNSEEN }: Known): Step {
  const { state, detail } = revocations;
  const why = detail === undefined ? {} : { detail };
  if (row.code === 'webhook_signature_revocation_stale') return { ...row, ...why };
  if (row.verdict !== 'pass') return row;
  return state === 'unknown' ? { ...row, verdict: 'open', ...why } : { ...row, ...why };
}

const REPLAY: Step = {
  id: '12',
  title: 'not seen before, under the caps (9a, 12, 13)',
  verdict: 'open',
  detail: "only the receiver's store knows",
};

/**
 * Returns the verdict of checks 9a (nonce cap) and 12 (replay). It is `open` (not judged), unless the store's content
 * is known and no earlier check failed.
 */
function storeRow({ delivery }: AuthRequest, before: readonly Step[], { seen }: Known): Step {
  const fields = readSignatureFields(delivery.headers);
  if (!seen || fields.kind !== 'parsed' || before.some(({ verdict }) => verdict === 'fail')) return REPLAY;
  const { keyid, nonce } = fields.input.parameters;
  if (seen.fullKids.some((kid) => kid === keyid)) {
    const detail = `The live nonces of ${JSON.stringify(keyid)} are at maxNoncesPerKey.`;
    return { ...REPLAY, id: '9a', verdict: 'fail', code: 'webhook_signature_rate_abuse', detail };
  }
  if (!seen.usedNonces.some((used) => used.keyid === keyid && used.nonce === nonce)) return REPLAY;
  return {
    ...REPLAY,
    verdict: 'fail',
    code: 'webhook_signature_replayed',
    detail: 'The nonce was seen before.',
  };
}

/**
 * Makes check 11 (digest of the body) separately. It needs no key, so it can be judged even if an earlier check failed.
 * Undefined if the digest cannot be read.
 */
function digestRow(
  { delivery }: AuthRequest,
  { hashes }: AuthContext,
): Pick<Step, 'verdict' | 'code' | 'detail'> | undefined {
  const lines = delivery.headers.get('content-digest');
  const digest = lines && readContentDigest(lines);
  if (digest === undefined || typeof digest === 'string') return undefined;
  if (digestMatches(digest, delivery.rawBody, hashes)) return { verdict: 'pass' };
  return {
    verdict: 'fail',
    code: 'webhook_signature_digest_mismatch',
    detail: 'Content-Digest does not match the body.',
  };
}

/**
 * Returns `created` as a time of receipt with which check 5 can pass, so that later checks can be made. Undefined if
 * `created` is not in Unix seconds.
 */
function momentOf({ delivery }: AuthRequest): number | undefined {
  const fields = readSignatureFields(delivery.headers);
  const created = fields.kind === 'parsed' ? fields.input.parameters.created : undefined;
  return created !== undefined && created > 0 && created < MS_FROM ? created * 1000 : undefined;
}

async function signatureSteps(context: AuthContext, request: AuthRequest, known: Judging): Promise<Step[]> {
  const failed = await failure(context, request, known);
  const steps = rows(failed);
  const moment = failed?.check === 5 ? momentOf(request) : undefined;
  const later =
    moment === undefined ? undefined : await failure(context, { ...request, arrivedAt: moment }, known);
  const beyond = moment === undefined || later?.check === 5 ? steps : rows(later);
  const digest = known.bodyless ? undefined : digestRow(request, context);
  const judged = steps.map((step, index): Step => {
    const row = step.verdict === 'open' ? (beyond[index] ?? step) : step;
    if (row.id === '5' && row.verdict === 'pass' && known.receivedAtAssumed) return { ...row, ...NO_TIME };
    if (row.id === '9') return revocationRow(row, known);
    if (row.id !== '11') return row;
    if (known.bodyless && row.verdict === 'pass') return { ...row, ...NO_BODY };
    return row.verdict === 'open' && digest ? { id: row.id, title: row.title, ...digest } : row;
  });
  return [...judged, storeRow(request, judged, known)];
}

async function legacyStep(
  scheme: keyof typeof LEGACY,
  context: AuthContext,
  request: AuthRequest,
  { bodyless }: Judging,
): Promise<Step> {
  const row = { id: scheme, title: `the ${scheme === 'hmac' ? 'HMAC' : 'bearer token'} is right` };
  if (bodyless && scheme === 'hmac') return { ...row, ...NO_BODY };
  const result = await LEGACY[scheme](context, request);
  if (result.kind === 'authentic') return { ...row, verdict: 'pass' };
  return { ...row, verdict: 'fail', code: result.code, detail: result.detail };
}

/**
 * Returns the check that the body is a report, for senders that sign but may send reports by HMAC (verification.md
 * §2.22). Returns no check for other senders.
 */
function reportSteps(scheme: string, { delivery, senders }: AuthRequest, { bodyless }: Judging): Step[] {
  if (scheme !== 'hmac' || senders[0]?.auth.scheme !== 'signature') return [];
  const row = { id: 'report', title: 'by HMAC it is a delivery report' };
  if (bodyless) return [{ ...row, ...NO_BODY }];
  const reading = readEvent(delivery.rawBody);
  if (!reading.ok || isReport(reading.event)) return [{ ...row, verdict: 'pass' }];
  const detail = `it is ${reading.event.kind === 'task' ? 'a task' : 'another event'}, which this seller has to sign`;
  return [{ ...row, verdict: 'fail', code: 'webhook_mode_mismatch', detail }];
}

/**
 * Returns the checks for a challenge, which asks the receiver to prove that it controls the URL. A challenge is no
 * event: registrations or `onChallenge` decide about it.
 */
function challengeSteps(payload: JsonObject): Step[] {
  const read = readChallenge(payload);
  const wrong = typeof read === 'string' ? { code: 'challenge_refused', detail: read } : undefined;
  return [
    { id: '14', title: 'the body is strict JSON', verdict: 'pass' },
    {
      id: 'envelope',
      title: 'the body is a proof of control',
      verdict: wrong ? 'fail' : 'open',
      ...(wrong ?? {
        detail: 'registrations, or onChallenge, decide if seller_agent_url is the agentUrl of the sender',
      }),
    },
  ];
}

function bodySteps({ delivery, senders }: AuthRequest, { bodyless }: Judging): Step[] {
  if (bodyless) {
    return [
      { id: '14', title: 'the body is strict JSON', ...NO_BODY },
      { id: 'envelope', title: 'the body is an envelope', ...NO_BODY },
    ];
  }
  const [sender] = senders;
  const challenge = challengeIn(delivery.rawBody);
  if (challenge) return challengeSteps(challenge);
  const reading = readEvent(delivery.rawBody, { ...(sender?.format && { format: sender.format }) });
  const malformed = !reading.ok && reading.code === 'webhook_body_malformed';
  const body: Step = { id: '14', title: 'the body is strict JSON', verdict: malformed ? 'fail' : 'pass' };
  const envelope: Step = {
    id: 'envelope',
    title: 'the body is an envelope',
    verdict: reading.ok ? 'pass' : 'fail',
  };
  if (reading.ok)
    return [body, { ...envelope, detail: `${reading.event.kind}, ${reading.event.transport} transport` }];
  const why = { code: reading.code, detail: reading.detail };
  return malformed
    ? [
        { ...body, ...why },
        { ...envelope, verdict: 'open', detail: 'not reached' },
      ]
    : [body, { ...envelope, ...why }];
}

/**
 * Returns every check of the receiver with its verdict. Checks after the first failure are judged too, if they do not
 * depend on the failed one.
 */
export async function checklist(
  context: AuthContext,
  request: AuthRequest,
  { maxBodyBytes, contentTypes, ...known }: Judging & GuardContext['config'],
): Promise<Step[]> {
  const { delivery, senders } = request;
  const auth: AuthPolicy = senders[0]?.auth ?? { scheme: 'signature' };
  const registered = schemeOf(auth, delivery.headers, context.protocols);
  const config = { config: { maxBodyBytes, contentTypes } };
  const guarded = guard(delivery, config, delivery.rawBody);
  const refused = guarded.kind === 'refused' ? guarded : guardAgentPush(delivery.headers, senders, config);
  const signed = registered !== 'signature' && isSignedChallenge(request, context);
  const scheme = signed ? 'signature' : registered;
  const mismatch = signed ? undefined : modeMismatch(scheme, delivery.headers, context.protocols);
  const steps: Step[] = [
    {
      id: 'request',
      title: 'method, Content-Type, size',
      verdict: refused ? 'fail' : 'pass',
      ...(refused && { code: refused.code, detail: refused.detail }),
    },
    {
      id: 'mode',
      title: `no other scheme than ${scheme}`,
      verdict: mismatch ? 'fail' : 'pass',
      ...(mismatch && { code: mismatch.code, detail: mismatch.detail }),
    },
  ];
  if (scheme === 'signature') steps.push(...(await signatureSteps(context, request, known)));
  else steps.push(await legacyStep(scheme, context, request, known), ...reportSteps(scheme, request, known));
  return [...steps, ...bodySteps(request, known)];
}
