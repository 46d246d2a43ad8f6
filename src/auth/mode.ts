import type { HeaderFields } from '../shared/delivery.ts';
import { type Refusal, refused } from '../shared/outcome.ts';
import { firstNamed, type Protocols } from '../shared/wire-names.ts';
import type { AuthPolicy } from '../config/sender-entry.ts';
import { bearerToken } from './credentials.ts';

type Scheme = AuthPolicy['scheme'];

/** The name of a field, lower case, that is there and belongs to the scheme. */
type Found = (headers: HeaderFields, protocols: Protocols) => string | undefined;

function signatureField(headers: HeaderFields): string | undefined {
  if (headers.has('signature-input')) return 'signature-input';
  return headers.has('signature') ? 'signature' : undefined;
}

const present = (headers: HeaderFields, name: string): string | undefined =>
  headers.has(name) ? name : undefined;

/** Of any name: a delivery under the other one is no less another scheme's. */
const hmacField: Found = (headers, protocols) =>
  firstNamed(protocols, ({ hmacSignatureHeader }) => present(headers, hmacSignatureHeader));

const hmacTimestamp: Found = (headers, protocols) =>
  firstNamed(protocols, ({ hmacTimestampHeader }) => present(headers, hmacTimestampHeader));

/** Those of the schemes beside which a token may stray. */
const OWN: Readonly<Record<Exclude<Scheme, 'bearer'>, Found>> = {
  signature: signatureField,
  hmac: (headers, protocols) => hmacField(headers, protocols) ?? hmacTimestamp(headers, protocols),
};

/** The name of a field in which a request says that it is signed, whichever the scheme; undefined where it has none. */
export const signingField: Found = (headers, protocols) =>
  signatureField(headers) ?? hmacField(headers, protocols);

/** Fields that may not be there at all, whatever else is: those that prove a delivery under another scheme. */
const FOREIGN: Readonly<Record<Scheme, Found>> = {
  signature: hmacField,
  hmac: signatureField,
  bearer: signingField,
};

/**
 * The scheme that a delivery is judged by: the registered one, or by its fields where HMAC counts for reports
 * (verification.md §2.22). Both kinds of fields together are a mismatch under either.
 */
export function schemeOf(auth: AuthPolicy, headers: HeaderFields, protocols: Protocols): Scheme {
  if (auth.scheme !== 'signature' || !auth.reportSecrets) return auth.scheme;
  const isHmac = hmacField(headers, protocols) !== undefined && signatureField(headers) === undefined;
  return isHmac ? 'hmac' : 'signature';
}

function mismatch(detail: string): Refusal {
  return refused('webhook_mode_mismatch', detail);
}

/**
 * Whether a delivery was made under another scheme than its sender is registered with (verification.md §2.22,
 * §2.23). A bearer token counts only alone: proxies and gateways add `Authorization` to deliveries that carry their own
 * scheme's fields. With no scheme's fields at all there is no mismatch: the registered scheme then says what is missing.
 *
 * Answered in the `Signature` form for bearer senders too: verification.md §6.4 has the `Bearer` form for a missing or wrong
 * token only.
 */
export function modeMismatch(
  scheme: Scheme,
  headers: HeaderFields,
  protocols: Protocols,
): Refusal | undefined {
  const foreign = FOREIGN[scheme](headers, protocols);
  if (foreign !== undefined) return mismatch(`${foreign} came from a sender registered with ${scheme}`);
  if (scheme === 'bearer' || OWN[scheme](headers, protocols) !== undefined) return undefined;
  const hasToken = (headers.get('authorization') ?? []).some((line) => bearerToken(line) !== undefined);
  if (!hasToken) return undefined;
  return mismatch(`a bearer token alone came from a sender registered with ${scheme}`);
}
