// Raises the alarms about subscriptions that were lost or refused, and about other subscribers' entries that vanished.
// Called after each change or check of subscriptions.
import type { Alarm, RaiseAlarm } from '../../shared/alarms.ts';
import { MAX_TEXT, printableText, quoted } from '../../codec/printable.ts';
import type { Changed } from './change.ts';
import type { Held } from './hold.ts';
import type { Subscription, SubscriptionSet } from './set-row.ts';

/**
 * Raises the alarms about subscriptions that were lost or refused in a change, and about vanished entries of other
 * subscribers.
 * @param asked the `ref` of the subscription that the application requested. A refusal of that subscription raises no
 *   alarm, because the application gets an error.
 */
export function tellChange(raise: RaiseAlarm, held: Held, changed: Changed, asked?: string): void {
  for (const one of changed.lost) raise(alarmOf('subscription_lost', held, changed.set, one));
  for (const one of changed.refused) {
    if (one.ref !== asked) raise(alarmOf('subscription_refused', held, changed.set, one));
  }
  for (const subscriberId of changed.vanished) raise(vanishedAlarm(held, changed.set, subscriberId));
}

function alarmOf(
  code: 'subscription_lost' | 'subscription_refused',
  { agentUrl: sender }: Held,
  { accountId }: SubscriptionSet,
  { ref, subscriberId, reason = '', state }: Subscription,
): Alarm {
  const isAgain = code === 'subscription_lost' && state === 'pending';
  const what = code === 'subscription_refused' ? 'is refused' : isAgain ? 'was lost' : 'is lost';
  const fix = isAgain
    ? 'It is set again now: read what you may have missed.'
    : 'Nothing is changed by itself: ask the seller, then subscribe again.';
  return {
    code,
    sender,
    ref,
    subscriberId,
    ...(accountId !== undefined && { accountId }),
    message: `The subscription ${quoted(ref)} ${what}: ${reason.replace(/\.$/, '')}. ${fix}`,
  };
}

const vanishedAlarm = (
  { agentUrl: sender }: Held,
  { accountId }: SubscriptionSet,
  subscriberId: string,
): Alarm => ({
  code: 'subscription_lost',
  sender,
  subscriberId: printableText(subscriberId, MAX_TEXT),
  ...(accountId !== undefined && { accountId }),
  message: `The subscription ${quoted(subscriberId)} of somebody else was there before ours was changed, and is there no more. Tell its owner.`,
});
