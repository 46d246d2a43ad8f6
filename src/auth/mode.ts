// Detects the authentication scheme of a delivery by its headers, and a mismatch with the registered one
// (verification.md §2.22, §2.23).
// Called by `authenticate` before any scheme, and by advice about refusals.

import type { HeaderFields } from '../shared/delivery.ts';
import { type Refusal, refused } from '../shared/outcome.ts';
import { firstNamed, type Protocols } from '../shared/wire-names.ts';
import type { AuthPolicy } from '../config/sender-entry.ts';
import { bearerToken } from './credentials.ts';

type Scheme = AuthPolicy['scheme'];

/** Finds the lower-case name of a header that is present and belongs to the scheme. */
type Found = (headers: HeaderFields, protocols: Protocols) => string | undefined;

function signatureField(headers: HeaderFields): string | undefined {
  if (headers.has('signature-input')) return 'signature-input';
  return headers.has('signature') ? 'signature' : undefined;
}

const present = (headers: HeaderFields, name: string): string | undefined =>
  headers.has(name) ? name : undefined;

/** Accepts any protocol name: a delivery under the other name is still of another scheme. */
const hmacField: Found = (headers, protocols) =>
  firstNamed(protocols, ({ hmacSignatureHeader }) => present(headers, hmacSignatureHeader));

const hmacTimestamp: Found = (headers, protocols) =>
  firstNamed(protocols, ({ hmacTimestampHeader }) => present(headers, hmacTimestampHeader));

/** Headers of the schemes beside which a stray token is allowed. */
const OWN: Readonly<Record<Exclude<Scheme, 'bearer'>, Found>> = {
  signature: signatureField,
  hmac: (headers, protocols) => hmacField(headers, protocols) ?? hmacTimestamp(headers, protocols),
};

/** The name of a header that marks a request as signed, by either scheme; undefined if it has none. */
export const signingField: Found = (headers, protocols) =>
  signatureField(headers) ?? hmacField(headers, protocols);

/** Headers that must not be present at all, because they prove a delivery under another scheme. */
const FOREIGN: Readonly<Record<Scheme, Found>> = {
  signature: hmacField,
  hmac: signatureField,
  bearer: signingField,
};

/**
 * The scheme that a delivery is judged by: the registered one, or the one of its headers if HMAC counts for
 * reports (verification.md §2.22). Headers of both schemes together are a mismatch under either.
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
 * Refuses a delivery of another scheme than its sender is registered with (verification.md §2.22, §2.23). A
 * bearer token counts only alone: proxies and gateways add `Authorization` to deliveries with headers of
 * their own scheme. Without headers of any scheme there is no mismatch; the registered scheme then reports
 * what is missing.
 *
 * The answer has the `Signature` form for bearer senders too. The `Bearer` form is for a missing or wrong
 * token only (verification.md §6.4).
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
