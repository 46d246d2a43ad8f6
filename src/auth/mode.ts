import type { HeaderFields } from '../delivery.ts';
import type { Refusal } from '../outcome.ts';
import type { Protocol } from '../protocol.ts';
import type { AuthPolicy } from '../senders.ts';
import { bearerToken } from './bearer-token.ts';

type Scheme = AuthPolicy['scheme'];

/** Names of fields by the scheme that they belong to, lower case. */
type SchemeFields = Record<Scheme, readonly string[]>;

function ownFields(protocol: Protocol): SchemeFields {
  return {
    signature: ['signature-input', 'signature'],
    hmac: [protocol.hmacSignatureHeader, protocol.hmacTimestampHeader],
    bearer: ['authorization'],
  };
}

/** Fields that may not be there at all, whatever else is: those that prove a delivery under another scheme. */
function foreignFields(protocol: Protocol): SchemeFields {
  const signature = ['signature-input', 'signature'];
  const hmac = [protocol.hmacSignatureHeader];
  return { signature: hmac, hmac: signature, bearer: [...signature, ...hmac] };
}

function mismatch(detail: string): Refusal {
  return { kind: 'refused', code: 'webhook_mode_mismatch', detail };
}

/**
 * Whether a delivery was made under another scheme than its sender is registered with (verification.md, section 2,
 * "Registered authentication decides the path"). A bearer token counts only alone: proxies and gateways add
 * `Authorization` to deliveries that carry their own scheme's fields. With no scheme's fields at all there is no
 * mismatch: the registered scheme then says what is missing.
 *
 * Answered in the `Signature` form for bearer senders too: section 6 has the `Bearer` form for a missing or wrong
 * token only.
 */
export function modeMismatch(scheme: Scheme, headers: HeaderFields, protocol: Protocol): Refusal | undefined {
  const foreign = foreignFields(protocol)[scheme].find((name) => headers.has(name));
  if (foreign !== undefined) return mismatch(`${foreign} came from a sender registered with ${scheme}`);
  if (ownFields(protocol)[scheme].some((name) => headers.has(name))) return undefined;
  const hasToken = (headers.get('authorization') ?? []).some((line) => bearerToken(line) !== undefined);
  if (!hasToken) return undefined;
  return mismatch(`a bearer token alone came from a sender registered with ${scheme}`);
}
