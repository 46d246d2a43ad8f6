import { utf8 } from '../../codec/encoding.ts';
import type { AuthContext, HeadRequest, Target } from '../contract.ts';
import type { Trial } from './candidates.ts';
import type { CheckedSignature } from './checks.ts';
import { compareHost } from './host.ts';
import { signatureBase } from './signature-base.ts';

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
