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

/** Seconds (contract.md §5.15). */
const MAX_SKEW = 300;

/** Lower case only: the digest is compared as text, as senders write it (contract.md §5.14). */
const SIGNATURE = /^sha256=[0-9a-f]{64}$/;

/**
 * A field that must be there once and say something: a repeated one leaves open which line was signed. Neither value
 * has a comma of its own, so one means lines that a framework joined.
 */
function single({ headers }: Head, name: string): string | Refusal {
  const [line = '', ...rest] = headers.get(name) ?? [];
  if (rest.length > 0 || line.includes(',')) {
    return refused('webhook_signature_header_malformed', `${name} came more than once`);
  }
  return line === '' ? refused('webhook_signature_header_malformed', `${name} is missing`) : line;
}

/**
 * The name by which a delivery has its fields; the first where it has none. One field by each name leaves open which of
 * them was signed (verification.md §6.1).
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
 * Refuses a timestamp that is not a number or lies more than 300 s from the receiver's clock, in whole seconds as the
 * sender's is. `Number` is total here: digits without end are a time far away.
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
    // Nothing is proved yet: only where one sender may call this URL is it worth a name.
    ...(only && others.length === 0 && { sender: only.agentUrl }),
  });
  return refused('webhook_signature_window_invalid', detail);
}

/**
 * The sender one of whose secrets made the signature. Stopping at the first match tells time only to a party that holds a
 * secret: without one, every secret is tried.
 */
function signerOf(
  { timestamp, signature }: { readonly timestamp: string; readonly signature: string },
  { rawBody }: WholeBody,
  senders: readonly SenderEntry[],
  { hashes }: AuthContext,
): Pick<Identity, 'sender' | 'isPrevious'> | undefined {
  // The length and the alphabet are not secret, and the body need not be hashed to see that they are wrong.
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
 * Legacy HMAC-SHA256 over `<timestamp>.<raw body>`, in the order of verification.md §6.1: fields of one name → fields there →
 * timestamp a number → within 300 s → digest. A signature of another form than `sha256=` and 64 lower-case
 * hexadecimal digits fails as any wrong one does. Who it is, only the body tells.
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

/** Both halves, of a delivery that is there as a whole. */
export const authenticateHmac: Authenticate = whole(proveHmac);
