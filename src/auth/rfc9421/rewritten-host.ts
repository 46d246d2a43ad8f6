import type { RaiseAlarm } from '../../alarms.ts';
import type { Unavailability } from '../../outcome.ts';
import type { SenderEntry } from '../../senders.ts';
import type { Target } from '../contract.ts';
import { quoted } from '../../codec/printable.ts';

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
