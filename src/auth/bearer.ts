import { equalBytes } from '../crypto/equal.ts';
import type { RefusedCode } from '../outcome.ts';
import type { SenderEntry } from '../senders.ts';
import { bearerToken } from './bearer-token.ts';
import type { Authenticate, AuthContext, AuthResult } from './contract.ts';

/** Answered with the `Bearer` challenge: sellers retry that one, so that a token can be rotated without a loss. */
function refuse(code: RefusedCode, detail: string): AuthResult {
  return { kind: 'refused', code, detail, challenge: 'bearer' };
}

/**
 * The sender that one of the tokens belongs to. Every token is compared, by hashes of one length, so that time tells
 * neither which of them came close nor how long they are.
 */
function ownerOf(
  token: string,
  senders: readonly SenderEntry[],
  { hashes }: AuthContext,
): SenderEntry | undefined {
  const encoder = new TextEncoder();
  const digest = (text: string): Uint8Array => hashes.sha256(encoder.encode(text));
  const given = digest(token);
  let owner: SenderEntry | undefined;
  for (const sender of senders) {
    if (sender.auth.scheme !== 'bearer') continue;
    for (const accepted of sender.auth.tokens) if (equalBytes(given, digest(accepted))) owner ??= sender;
  }
  return owner;
}

/**
 * Legacy bearer (verification.md §6.4): the token in `Authorization` is one that a sender of this URL is
 * registered with, the previous one included while it is rotated.
 */
export const authenticateBearer: Authenticate = async (context, { delivery, senders }) => {
  const lines = delivery.headers.get('authorization') ?? [];
  if (lines.length > 1)
    return refuse('webhook_signature_header_malformed', 'authorization came more than once');
  const token = bearerToken(lines[0] ?? '');
  if (token === undefined) {
    return refuse('webhook_signature_header_malformed', 'authorization has no bearer token');
  }
  const sender = ownerOf(token, senders, context);
  if (!sender) return refuse('webhook_signature_invalid', 'the bearer token is not one that is registered');
  return { kind: 'authentic', sender, scheme: 'bearer' };
};
