import type { RaiseAlarm } from '../alarms.ts';
import type { Target } from '../auth/contract.ts';
import { canonicalOrUndefined, pathAndQuery, type PublicUrl } from '../config/public-url.ts';
import { MAX_SENDERS, type ResolveSenders } from '../config/senders.ts';
import { ConfigError } from '../errors.ts';
import { type Refusal, refused } from '../outcome.ts';
import type { SenderEntry } from '../senders.ts';
import type { Guarded } from './guard.ts';
import { inTime, type SelectContext, type Selected } from './selected.ts';
import { isThenable } from '../realms.ts';

function prefixedTarget(publicUrl: Extract<PublicUrl, { kind: 'prefix' }>, url: string): Target | Refusal {
  const target = canonicalOrUndefined(publicUrl.origin + pathAndQuery(url));
  if (!target) {
    return refused('webhook_target_uri_malformed', 'the request target has no canonical form', 10);
  }
  return target;
}

/** @throws ConfigError where `publicUrl` is a prefix and the caller gave no `url`. */
export function requireUrl(publicUrl: PublicUrl, url: string | undefined): void {
  if (publicUrl.kind === 'exact' || typeof url === 'string') return;
  throw new ConfigError(
    'publicUrl ends in /*, so path and query come from the request: pass them, verifyAndDispatch(rawBytes, headers, { url: request.url }).',
  );
}

/** @throws Fault (rejects) `misconfigured` where the owner's own parts do not fit or fail. */
export async function select({ delivery }: Guarded, context: SelectContext): Promise<Selected | Refusal> {
  const { publicUrl, senders } = context.config;
  const target =
    publicUrl.kind === 'exact' ? publicUrl.target : prefixedTarget(publicUrl, delivery.url ?? '/');
  if ('kind' in target) return target;
  if (publicUrl.kind === 'prefix' && !target.targetUri.startsWith(publicUrl.prefix)) {
    const { refuseStray } = await import('./unusual-senders.ts');
    return refuseStray(delivery, publicUrl, context);
  }
  const found = await sendersFor(target, senders, context.raiseAlarm);
  if (isWithinLimit(found)) return { kind: 'selected', delivery, target, senders: found };
  const { unusualSenders } = await import('./unusual-senders.ts');
  return unusualSenders(delivery, target, found, context);
}

function isWithinLimit(senders: readonly SenderEntry[]): senders is Selected['senders'] {
  return senders.length > 0 && senders.length <= MAX_SENDERS;
}

async function sendersFor(
  target: Target,
  resolve: ResolveSenders,
  raiseAlarm: RaiseAlarm,
): Promise<readonly SenderEntry[]> {
  try {
    const senders = resolve.forUrl(target.targetUri);
    // A list is there at once; only a function's promise needs a timer.
    return isThenable(senders) ? await inTime(senders) : senders;
  } catch (error) {
    const { sendersFailed } = await import('./unusual-senders.ts');
    return sendersFailed(error, target, raiseAlarm);
  }
}
