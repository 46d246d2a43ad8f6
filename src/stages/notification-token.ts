// Compares the token in a webhook with the token that was registered with the seller (verification.md §6.9).
// Loaded on demand by `src/receiver/verify.ts`, after the sender is proved and before `admit`.

import type { RaiseAlarm } from '../shared/alarms.ts';
import { comparedWith, PUSH_TOKEN_FIELD } from '../auth/credentials.ts';
import { present } from '../codec/members.ts';
import type { Hashes } from '../crypto/engine.ts';
import { fieldValue, type HeaderFields } from '../shared/delivery.ts';
import type { WarningCode } from '../shared/codes.ts';
import type { Event } from '../events/event.ts';
import type { EventRegistrations } from '../events/event-registration.ts';
import { withMembers } from '../events/event-members.ts';
import { eventWarning } from '../events/warnings.ts';
import { type Refusal, refused } from '../shared/outcome.ts';
import type { TokenPolicy } from '../config/sender-entry.ts';
import type { Read, ReadChallenge } from './read.ts';

export interface TokenContext {
  readonly hashes: Hashes;
  readonly raiseAlarm: RaiseAlarm;
}

/**
 * True for an event from a task envelope: a task's status or a delivery report. For an event of kind `other`, that is
 * so only if the task's status is unknown.
 */
const isTaskEnvelope = ({ kind, transport, warnings }: Event): boolean =>
  transport === 'tool' && (kind !== 'other' || warnings.some(({ code }) => code === 'unknown_status'));

/**
 * Returns the token of a task envelope. In notifications the member `token` has another meaning. `null` counts as
 * absent, because many senders write it for an absent member.
 */
function tokenOf(event: Event): unknown {
  return isTaskEnvelope(event) ? present(event.envelope, 'token') : undefined;
}

/**
 * Returns every token in the delivery's headers and body. If the body is unreadable, only tokens in the headers are
 * returned.
 */
function tokensOf(headers: HeaderFields, { reading }: Read | ReadChallenge): readonly unknown[] {
  const carried = [fieldValue(headers, PUSH_TOKEN_FIELD), reading.ok ? tokenOf(reading.event) : undefined];
  return carried.filter((token) => token !== undefined);
}

function warned<R extends Read | ReadChallenge>(read: R, code: WarningCode): R {
  if (read.claim === undefined) return read;
  const { event } = read.reading;
  const warnings = [...event.warnings, eventWarning(code)];
  return { ...read, reading: { ...read.reading, event: withMembers(event, { warnings }) } };
}

/**
 * Returns the token that was registered for the operation of an agent-transport webhook. On that transport the token is
 * in a header, so it is looked up in the store while the headers are available. Other transports have the token in the
 * body, where it is compared later (`ofEvent`).
 */
export async function registeredToken(
  { reading }: Read | ReadChallenge,
  registrations: EventRegistrations | undefined,
): Promise<TokenPolicy | undefined> {
  if (!reading.ok || reading.event.transport !== 'agent') return undefined;
  const token = await registrations?.tokenOf?.(reading.event);
  return token === undefined ? undefined : { tokens: [token], onMismatch: 'warn' };
}

/**
 * Compares the tokens in an authenticated delivery with the registered one (verification.md §6.9). Runs before
 * admission, so a refusal here leaves the nonce unused.
 */
export function checkToken<R extends Read | ReadChallenge>(
  read: R,
  headers: HeaderFields,
  { tokens: accepted, onMismatch }: TokenPolicy,
  { hashes, raiseAlarm }: TokenContext,
): R | Refusal {
  const carried = tokensOf(headers, read);
  if (carried.length === 0) return warned(read, 'token_missing');
  const fits = (token: unknown): boolean =>
    typeof token === 'string' && comparedWith(token, hashes)(accepted);
  if (carried.every(fits)) return read;
  const refuses = onMismatch === 'refuse';
  raiseAlarm({
    code: 'token_mismatch',
    ...(refuses && { option: 'notificationToken' }),
    sender: read.identity.sender.agentUrl,
    message: `A proved sender's delivery carries another token than notificationToken and was ${refuses ? 'refused with 401' : 'accepted'}. Compare it with the token that you gave the seller; during a rotation set previousToken.`,
  });
  if (!refuses) return warned(read, 'token_mismatch');
  return refused('webhook_token_mismatch', 'the token is not registered');
}
