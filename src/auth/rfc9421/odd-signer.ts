import type { RaiseAlarm } from '../../alarms.ts';
import type { Candidate } from '../../keys/contract.ts';
import type { Unavailability } from '../../outcome.ts';
import type { SenderEntry } from '../../senders.ts';
import type { Target } from '../contract.ts';
import type { Trial } from './candidates.ts';
import { quoted } from './refuse.ts';
import type { Found } from './verify.ts';

/** The public key itself, whatever else the JWK says. */
function material({ key }: Candidate): string {
  return JSON.stringify([key.jwk['kty'], key.jwk['crv'], key.jwk['x'], key.jwk['y']]);
}

/**
 * Two senders that publish one key cannot be told apart by it: one of them may have copied the other's to have its
 * events. The first keeps them, and the owner hears of it. Only after a signature verified.
 */
function raiseSharedKeyAlarm(raiseAlarm: RaiseAlarm, signer: Candidate, among: readonly Candidate[]): void {
  if (among.length === 1) return;
  const others = among.filter(
    (other) => other.sender.agentUrl !== signer.sender.agentUrl && material(other) === material(signer),
  );
  if (others.length === 0) return;
  const names = others.map((other) => other.sender.agentUrl);
  raiseAlarm({
    code: 'nonconforming_sender',
    sender: signer.sender.agentUrl,
    message: `The key that signed is published by ${signer.sender.agentUrl} and by ${names.join(', ')}: its events are taken for the first one's. Give each of them a webhook URL of its own.`,
  });
}

/**
 * The signature covers our URL and `Host` names another: only the seller can have signed it, so a proxy of ours
 * rewrote `Host` (verification.md §4.12). A fault on our side, hence 503.
 */
function rewrittenHost(
  raiseAlarm: RaiseAlarm,
  sender: SenderEntry,
  received: string,
  target: Target,
): Unavailability {
  const detail = `Host is ${quoted(received)} but publicUrl names ${target.authority}, and the signature is right: a proxy in front rewrites Host.`;
  raiseAlarm({
    code: 'host_rewritten',
    sender: sender.agentUrl,
    message: `${detail} Make it pass Host on, correct publicUrl, or set hostCheck: 'off'.`,
  });
  return { kind: 'unavailable', code: 'webhook_target_uri_malformed', check: 10, detail };
}

/** What a proved sender is a reason to say: that its key is another's too, and that `Host` is not what it signed. */
export function oddSigner(
  { context, request, host }: Trial,
  { candidate, among }: Found,
): Unavailability | undefined {
  raiseSharedKeyAlarm(context.raiseAlarm, candidate, among);
  if (host.kind !== 'differs') return undefined;
  return rewrittenHost(context.raiseAlarm, candidate.sender, host.received, request.target);
}
