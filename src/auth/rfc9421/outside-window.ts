import type { RaiseAlarm } from '../../alarms.ts';
import type { Candidate } from '../../keys/contract.ts';
import type { Refusal, Unavailability } from '../../outcome.ts';
import type { AuthContext, HeadRequest, LateDelivery } from '../contract.ts';
import { trialOf, tryCandidates, type TrialResult } from './candidates.ts';
import { checkSignatureFields, type SignatureFields } from './checks.ts';
import { quoted } from '../../codec/printable.ts';
import type { SignatureParameters } from './signature-input.ts';
import { MAX_VALIDITY_S, SKEW_S } from './window.ts';

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
    offsetSeconds: offsetS,
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
  const signed = checkSignatureFields(fields, headers, context.protocol, created * 1000);
  const trial = signed.kind === 'checked' ? trialOf(context, request, signed) : undefined;
  if (!trial) return undefined;
  return {
    window: { created, expires },
    find: async () => context.keys.find(keyid, request),
    signer: async (candidates) => signerOf(await tryCandidates(trial, candidates)),
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
