// Detects the authentication scheme of a delivery by its headers, and a mismatch with the registered one
// (verification.md §2.22, §2.23).
// Called by `authenticate` before any scheme, and to give advice about refusals.

import type { HeaderFields } from '../shared/delivery.ts';
import { type Refusal, refused } from '../shared/outcome.ts';
import { firstNamed, type Protocols } from '../shared/wire-names.ts';
import type { AuthPolicy } from '../config/sender-entry.ts';
import { bearerToken } from './credentials.ts';

type Scheme = AuthPolicy['scheme'];

/** Returns the lower-case name of a header that is present and belongs to the scheme; undefined if there is none. */
type Found = (headers: HeaderFields, protocols: Protocols) => string | undefined;

function signatureField(headers: HeaderFields): string | undefined {
  if (headers.has('signature-input')) return 'signature-input';
  return headers.has('signature') ? 'signature' : undefined;
}

const present = (headers: HeaderFields, name: string): string | undefined =>
  headers.has(name) ? name : undefined;

/** Headers with any accepted protocol name are found, because each of these names is used for the HMAC scheme. */
const hmacField: Found = (headers, protocols) =>
  firstNamed(protocols, ({ hmacSignatureHeader }) => present(headers, hmacSignatureHeader));

const hmacTimestamp: Found = (headers, protocols) =>
  firstNamed(protocols, ({ hmacTimestampHeader }) => present(headers, hmacTimestampHeader));

/**
 * For each scheme but bearer, finds one of its own headers. If there is one, a bearer token in the same delivery is
 * ignored.
 */
const OWN: Readonly<Record<Exclude<Scheme, 'bearer'>, Found>> = {
  signature: signatureField,
  hmac: (headers, protocols) => hmacField(headers, protocols) ?? hmacTimestamp(headers, protocols),
};

/**
 * Returns the name of a header that shows that the request is signed, by RFC 9421 or HMAC. Undefined if there is
 * none.
 */
export const signingField: Found = (headers, protocols) =>
  signatureField(headers) ?? hmacField(headers, protocols);

/** For each scheme, finds a header that must be absent, because it shows that the delivery uses another scheme. */
const FOREIGN: Readonly<Record<Scheme, Found>> = {
  signature: hmacField,
  hmac: signatureField,
  bearer: signingField,
};

/**
 * Returns the scheme by which a delivery is authenticated. It is the registered one, unless HMAC is allowed for
 * reports; then the headers decide (verification.md §2.22). Headers of both schemes together are a mismatch in either
 * case.
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
 * Refuses a delivery that uses another scheme than the registered one (verification.md §2.22, §2.23). A bearer
 * token is a sign of the bearer scheme only if it is alone, because proxies and gateways add `Authorization` to
 * signed deliveries. Without headers of any scheme there is no mismatch; the registered scheme then reports what is
 * missing.
 *
 * The answer has the `Signature` form for bearer senders too. The `Bearer` form is only for a missing or wrong
 * token (verification.md §6.4).
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
