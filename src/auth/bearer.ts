import type { RefusedCode } from '../shared/codes.ts';
import type { Refusal } from '../shared/outcome.ts';
import type { SenderEntry } from '../config/sender-entry.ts';
import { bearerToken, comparedWith } from './credentials.ts';
import { type Authenticate, type AuthContext, type Identity, type Prove, whole } from './auth-contract.ts';

/** Answered with the `Bearer` challenge: sellers retry that one, so that a token can be rotated without a loss. */
function refuse(code: RefusedCode, detail: string): Refusal {
  return { kind: 'refused', code, detail, challenge: 'bearer' };
}

/** Where the senders of one URL have their token: the same for all (`checkTogether`). */
function fieldOf([sender]: readonly SenderEntry[]): string {
  return (sender?.auth.scheme === 'bearer' ? sender.auth.header : undefined) ?? 'authorization';
}

/** The sender that one of the tokens belongs to. Every sender's are compared, so that time tells nothing of them. */
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
 * Legacy bearer (verification.md §6.4, §6.8): the token in `Authorization`, or alone in the field that the senders of
 * this URL are registered with, is one of theirs, the previous one included while it is rotated.
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

/** Both halves, of a delivery that is there as a whole. */
export const authenticateBearer: Authenticate = whole(proveBearer);
