import type { RaiseAlarm } from '../../alarms.ts';
import { editionAccepting } from '../../edition.ts';
import type { Candidate } from '../../keys/contract.ts';
import type { Unavailability } from '../../outcome.ts';
import type { SenderEntry } from '../../senders.ts';
import type { Target } from '../contract.ts';
import { usableKey, type KeyPolicy } from './key-policy.ts';
import { quoted } from './refuse.ts';

/** The public key itself, whatever else the JWK says. */
function material({ key }: Candidate): string {
  return JSON.stringify([key.jwk['kty'], key.jwk['crv'], key.jwk['x'], key.jwk['y']]);
}

/**
 * Two senders that publish one key cannot be told apart by it: one of them may have copied the other's to have its
 * events. The first keeps them, and the owner hears of it. Only after a signature verified.
 */
export function raiseSharedKeyAlarm(
  raiseAlarm: RaiseAlarm,
  signer: Candidate,
  among: readonly Candidate[],
): void {
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
 * A key that this sender's edition does not accept and another one does: the sender may speak that edition, and gets
 * a 401 for everything until its owner says so. Raised before the signature is verified, hence stateless.
 */
export function raisePurposeAlarm(
  raiseAlarm: RaiseAlarm,
  policy: Omit<KeyPolicy, 'purposes'>,
  tried: readonly Candidate[],
): void {
  const { purposeMember } = policy.protocol;
  for (const { sender, key } of tried) {
    const { name: edition, keyPurposes } = sender.edition;
    const purpose = String(key.jwk[purposeMember]);
    const other = keyPurposes.includes(purpose) ? undefined : editionAccepting(purpose);
    // Only where nothing else is wrong with it: else the advice would not help.
    if (!other || typeof usableKey(key.jwk, key.verifyKey, { ...policy, purposes: [purpose] }) === 'string')
      continue;
    raiseAlarm({
      code: 'key_purpose_refused',
      sender: sender.agentUrl,
      message: `The key with keyid ${quoted(key.kid)} is for ${purpose}, which in edition ${edition} signs no webhooks: 401. If ${sender.agentUrl} speaks edition ${other} or a later one, set edition: '${other}' for it.`,
    });
  }
}

/**
 * The signature covers our URL and `Host` names another: only the seller can have signed it, so a proxy of ours
 * rewrote `Host` (verification.md §4.12). A fault on our side, hence 503.
 */
export function rewrittenHost(
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
