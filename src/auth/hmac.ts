// Proves the sender by legacy HMAC-SHA256 over timestamp and body (verification.md §6.1).
// Called by `authenticate` for senders that are registered with HMAC, or with HMAC for reports.

import { hex } from '../codec/encoding.ts';
import { equalBytes } from '../crypto/equal.ts';
import type { Head, HeaderFields } from '../shared/delivery.ts';
import { type Refusal, refused } from '../shared/outcome.ts';
import type { Protocol, Protocols } from '../shared/wire-names.ts';
import type { SenderEntry } from '../config/sender-entry.ts';
import { hmacSecretsOf } from './credentials.ts';
import {
  type Authenticate,
  type AuthContext,
  type HeadRequest,
  type Identity,
  type Prove,
  type WholeBody,
  whole,
} from './auth-contract.ts';

/** Largest difference between a timestamp and the receiver's clock. Seconds (contract.md §5.15). */
const MAX_SKEW = 300;

/** Only lower case matches, because the digest is compared as text, as senders write it (contract.md §5.14). */
const SIGNATURE = /^sha256=[0-9a-f]{64}$/;

/**
 * Returns the value of a header that must occur once and not be empty. If it is repeated, it is unknown which line was
 * signed. No HMAC header contains a comma, so a comma means that a framework joined several lines.
 */
function single({ headers }: Head, name: string): string | Refusal {
  const [line = '', ...rest] = headers.get(name) ?? [];
  if (rest.length > 0 || line.includes(',')) {
    return refused('webhook_signature_header_malformed', `${name} came more than once`);
  }
  return line === '' ? refused('webhook_signature_header_malformed', `${name} is missing`) : line;
}

/**
 * Returns the protocol name in the delivery's HMAC headers; the first accepted name if there are none. If there are
 * headers of two names, it is unknown which were signed, so the delivery is refused (verification.md §6.1).
 */
export function hmacProtocol(headers: HeaderFields, protocols: Protocols): Protocol | Refusal {
  const [first = protocols[0], ...others] = protocols.filter(
    ({ hmacSignatureHeader, hmacTimestampHeader }) =>
      headers.has(hmacSignatureHeader) || headers.has(hmacTimestampHeader),
  );
  if (others.length === 0) return first;
  return refused(
    'webhook_signature_header_malformed',
    'HMAC fields of two names of the protocol came together',
  );
}

/**
 * Refuses a timestamp that is not a number, or differs by more than 300 s from the receiver's clock, both in whole
 * seconds. `Number` accepts any count of digits; a very large number is simply a time too far away.
 */
function checkTimestamp(
  text: string,
  { hmacTimestampHeader: name }: Protocol,
  context: AuthContext,
  request: HeadRequest,
): Refusal | undefined {
  if (!/^[0-9]+$/.test(text)) {
    return refused('webhook_signature_header_malformed', `${name} is not a number of seconds`);
  }
  const now = Math.floor(request.arrivedAt / 1000);
  const skew = Number(text) - now;
  if (Math.abs(skew) <= MAX_SKEW) return undefined;
  const inMilliseconds = Math.abs(Number(text) / 1000 - now) <= MAX_SKEW;
  const detail = inMilliseconds
    ? `${name} is in milliseconds, not seconds`
    : `${name} is ${skew} s away from this clock`;
  const [only, ...others] = request.senders;
  context.raiseAlarm({
    code: 'clock_skew',
    message: `${detail}; more than ${MAX_SKEW} s are refused. Check both clocks.`,
    offsetMs: skew * 1000,
    // The sender is not proved yet, so the alarm names a sender only if no other may call this URL.
    ...(only && others.length === 0 && { sender: only.agentUrl }),
  });
  return refused('webhook_signature_window_invalid', detail);
}

/**
 * Returns the sender whose secret made the signature. The search stops at the first match. The search time reveals
 * something only to a party that has a secret, because without one all secrets are tried.
 */
function signerOf(
  { timestamp, signature }: { readonly timestamp: string; readonly signature: string },
  { rawBody }: WholeBody,
  senders: readonly SenderEntry[],
  { hashes }: AuthContext,
): Pick<Identity, 'sender' | 'isPrevious'> | undefined {
  // Length and alphabet are not secret, so a wrong form is refused before the body is hashed.
  if (!SIGNATURE.test(signature)) return undefined;
  const encoder = new TextEncoder();
  const signatureBytes = encoder.encode(signature);
  const prefix = encoder.encode(`${timestamp}.`);
  const matches = (secret: string): boolean => {
    const mac = hashes.hmacSha256(encoder.encode(secret), prefix, rawBody);
    return equalBytes(encoder.encode(`sha256=${hex(mac)}`), signatureBytes);
  };
  for (const sender of senders) {
    const at = hmacSecretsOf(sender.auth).findIndex(matches);
    if (at >= 0) return { sender, ...(at > 0 && { isPrevious: true }) };
  }
  return undefined;
}

/**
 * Authenticates by legacy HMAC-SHA256 over `<timestamp>.<raw body>`. Checks are made in the order of
 * verification.md §6.1: headers of one protocol name, both present, a numeric timestamp, within 300 s, then the
 * digest. A signature in another form than `sha256=` with 64 lower-case hex digits counts as a wrong one. The
 * sender is known only after the body.
 */
export const proveHmac: Prove = (context, request) => {
  const protocol = hmacProtocol(request.delivery.headers, context.protocols);
  if ('kind' in protocol) return protocol;
  const { hmacSignatureHeader, hmacTimestampHeader } = protocol;
  const signature = single(request.delivery, hmacSignatureHeader);
  if (typeof signature !== 'string') return signature;
  const timestamp = single(request.delivery, hmacTimestampHeader);
  if (typeof timestamp !== 'string') return timestamp;
  const refusal = checkTimestamp(timestamp, protocol, context, request);
  if (refusal) return refusal;
  return {
    kind: 'proof',
    sender: undefined,
    complete: (body) => {
      const signer = signerOf({ timestamp, signature }, body, request.senders, context);
      if (signer) return { kind: 'authentic', ...signer, scheme: 'hmac' };
      return refused('webhook_signature_invalid', `${hmacSignatureHeader} matches no registered secret`);
    },
  };
};

/** Authenticates a delivery whose body is available: `proveHmac`, then `complete` of its proof. */
export const authenticateHmac: Authenticate = whole(proveHmac);
