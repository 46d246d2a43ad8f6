// Proves the sender by a legacy bearer token (verification.md §6.4, §6.8).
// Called by `authenticate` for senders that are registered with bearer.

import type { RefusedCode } from '../shared/codes.ts';
import type { Refusal } from '../shared/outcome.ts';
import type { SenderEntry } from '../config/sender-entry.ts';
import { bearerToken, comparedWith } from './credentials.ts';
import { type Authenticate, type AuthContext, type Identity, type Prove, whole } from './auth-contract.ts';

/**
 * Refuses with the `Bearer` challenge. Sellers retry after this answer, so a token can be replaced without losing
 * events.
 */
function refuse(code: RefusedCode, detail: string): Refusal {
  return { kind: 'refused', code, detail, challenge: 'bearer' };
}

/** Returns the header that carries the token: the same for all senders of one URL (`checkTogether`). */
function fieldOf([sender]: readonly SenderEntry[]): string {
  return (sender?.auth.scheme === 'bearer' ? sender.auth.header : undefined) ?? 'authorization';
}

/**
 * Returns the sender that has this token. The tokens of all senders are compared, so that the time reveals nothing
 * about any of them.
 */
function ownerOf(
  token: string,
  senders: readonly SenderEntry[],
  { hashes }: AuthContext,
): Pick<Identity, 'sender' | 'isPrevious'> | undefined {
  const isOneOf = comparedWith(token, hashes);
  let owner: Pick<Identity, 'sender' | 'isPrevious'> | undefined;
  for (const sender of senders) {
    if (sender.auth.scheme !== 'bearer') continue;
    const { tokens } = sender.auth;
    const [isCurrent, isPrevious] = [isOneOf(tokens.slice(0, 1)), isOneOf(tokens.slice(1))];
    if (isCurrent || isPrevious) owner ??= { sender, ...(!isCurrent && { isPrevious: true }) };
  }
  return owner;
}

/**
 * Authenticates by a legacy bearer token (verification.md §6.4, §6.8). The token is in `Authorization`,
 * or is the whole value of the header that is configured for the senders of this URL. It must be the token of one of
 * these senders. While a token is being replaced, the previous one is accepted too.
 */
export const proveBearer: Prove = (context, { delivery, senders }) => {
  const field = fieldOf(senders);
  const [line = '', ...rest] = delivery.headers.get(field) ?? [];
  if (rest.length > 0) return refuse('webhook_signature_header_malformed', `${field} came more than once`);
  const token = field === 'authorization' ? bearerToken(line) : line || undefined;
  if (token === undefined)
    return refuse('webhook_signature_header_malformed', `${field} has no bearer token`);
  const owner = ownerOf(token, senders, context);
  if (!owner) return refuse('webhook_signature_invalid', 'the bearer token is not registered');
  return {
    kind: 'proof',
    sender: owner.sender,
    complete: () => ({ kind: 'authentic', ...owner, scheme: 'bearer' }),
  };
};

/** Authenticates a delivery whose body is available: `proveBearer`, then `complete` of its proof. */
export const authenticateBearer: Authenticate = whole(proveBearer);
