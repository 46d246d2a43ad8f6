import type { AuthContext, AuthRequest, AuthResult } from '../../auth/contract.ts';
import { authenticateHmac } from '../../auth/hmac.ts';
import { authenticateBearer } from '../../auth/bearer.ts';
import { modeMismatch } from '../../auth/mode.ts';
import { readSignatureFields } from '../../auth/rfc9421/checks.ts';
import { digestMatches, readContentDigest } from '../../auth/rfc9421/content-digest.ts';
import { authenticateSignature, proveSignature } from '../../auth/rfc9421/verify.ts';
import { challengeIn, isSignedChallenge } from '../../auth/signed-challenge.ts';
import { readEvent } from '../../events/read.ts';
import type { CheckId } from '../../outcome.ts';
import { guard, type GuardContext } from '../../stages/guard.ts';
import { MS_FROM } from '../numbers.ts';
import { challengeSteps } from './challenge-steps.ts';
import { type Known, revocationRow, storeRow } from './known.ts';

/** One step of the way through a receiver, as this delivery took it. */
export interface Step {
  /** `request`, `mode`, `1` to `11`, `12` (`9a` where that is known to fail), `14`, `envelope`; for legacy senders `hmac`, `bearer`. */
  readonly id: string;
  readonly title: string;
  /** `open`: not judged, `detail` says why. */
  readonly verdict: 'pass' | 'fail' | 'open';
  readonly code?: string;
  readonly detail?: string;
  /** It failed by the receiver's own doing, which answers 503. */
  readonly fault?: boolean;
}

/** The checks that `authenticateSignature` makes, in its order. */
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

/** A legacy sender's check has no number. */
const LEGACY = { hmac: authenticateHmac, bearer: authenticateBearer } as const;

type Failure = Exclude<AuthResult, { kind: 'authentic' }>;

interface Bodyless {
  /** The capture has no body: what needs it is left open. */
  readonly bodyless?: boolean | undefined;
}

const NO_BODY = { verdict: 'open', detail: 'the capture has no body' } as const;

/** @returns undefined where it is authentic. */
async function failure(
  context: AuthContext,
  request: AuthRequest,
  { bodyless }: Bodyless,
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

/** The rows of checks 1 to 11 from the first that failed. */
function rows(failed: Failure | undefined): Step[] {
  // A proxy that rewrote Host is found once the signature has verified, and has the number of that check.
  const at = failed === undefined ? Number.POSITIVE_INFINITY : Number(failed.check ?? 10);
  return CHECKS.map(([check, title]): Step => {
    const row = { id: String(check), title };
    if (Number(check) < at) return { ...row, verdict: 'pass' };
    if (Number(check) > at) return { ...row, verdict: 'open', detail: 'not reached' };
    const fault = failed?.kind === 'unavailable';
    return { ...row, verdict: 'fail', fault, ...(failed && { code: failed.code, detail: failed.detail }) };
  });
}

/** Check 11 by itself: it needs no key, so that it can be judged whatever failed before. */
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

/** The moment at which check 5 would pass, so that the checks behind it can be judged; undefined where there is none. */
function momentOf({ delivery }: AuthRequest): number | undefined {
  const fields = readSignatureFields(delivery.headers);
  const created = fields.kind === 'parsed' ? fields.input.parameters.created : undefined;
  return created !== undefined && created > 0 && created < MS_FROM ? created * 1000 : undefined;
}

async function signatureSteps(
  context: AuthContext,
  request: AuthRequest,
  known: Known & Bodyless,
): Promise<Step[]> {
  const failed = await failure(context, request, known);
  const steps = rows(failed);
  const moment = failed?.check === 5 ? momentOf(request) : undefined;
  const later =
    moment === undefined ? undefined : await failure(context, { ...request, arrivedAt: moment }, known);
  const beyond = moment === undefined || later?.check === 5 ? steps : rows(later);
  const digest = known.bodyless ? undefined : digestRow(request, context);
  const judged = steps.map((step, index): Step => {
    const open = step.verdict === 'open' ? (beyond[index] ?? step) : step;
    if (open.id === '11' && known.bodyless && open.verdict === 'pass') return { ...open, ...NO_BODY };
    if (open.id === '9') return revocationRow(open, known);
    return open.id === '11' && open.verdict === 'open' && digest
      ? { id: step.id, title: step.title, ...digest }
      : open;
  });
  return [...judged, storeRow(request, judged, known)];
}

async function legacyStep(
  scheme: keyof typeof LEGACY,
  context: AuthContext,
  request: AuthRequest,
  { bodyless }: Bodyless,
): Promise<Step> {
  const row = { id: scheme, title: `the ${scheme === 'hmac' ? 'HMAC' : 'bearer token'} is right` };
  if (bodyless && scheme === 'hmac') return { ...row, ...NO_BODY };
  const result = await LEGACY[scheme](context, request);
  if (result.kind === 'authentic') return { ...row, verdict: 'pass' };
  return { ...row, verdict: 'fail', code: result.code, detail: result.detail };
}

function bodySteps(
  { delivery, senders }: AuthRequest,
  { protocol }: AuthContext,
  { bodyless }: Bodyless,
): Step[] {
  if (bodyless) {
    return [
      { id: '14', title: 'the body is strict JSON', ...NO_BODY },
      { id: 'envelope', title: 'the body is an envelope', ...NO_BODY },
    ];
  }
  const [sender] = senders;
  const challenge = challengeIn(delivery.rawBody);
  if (challenge) return challengeSteps(challenge);
  const reading = readEvent(delivery.rawBody, { protocol, ...(sender?.format && { format: sender.format }) });
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
 * Every step of the receiver with its verdict, by the receiver's own checks. Behind the first that fails those that can
 * be judged by themselves still are.
 */
export async function checklist(
  context: AuthContext,
  request: AuthRequest,
  { maxBodyBytes, contentTypes, ...known }: Known & Bodyless & GuardContext['config'],
): Promise<Step[]> {
  const { delivery, senders } = request;
  const registered = senders[0]?.auth.scheme ?? 'signature';
  const guarded = guard(delivery, { ...context, config: { maxBodyBytes, contentTypes } });
  const refused = guarded.kind === 'refused' ? guarded : undefined;
  const signed = registered !== 'signature' && isSignedChallenge(request, context);
  const scheme = signed ? 'signature' : registered;
  const mismatch = signed ? undefined : modeMismatch(scheme, delivery.headers, context.protocol);
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
  else steps.push(await legacyStep(scheme, context, request, known));
  return [...steps, ...bodySteps(request, context, known)];
}
