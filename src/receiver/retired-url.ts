import type { EventRegistrations } from '../events/event-registration.ts';
import type { RefusedCode } from '../shared/codes.ts';
import { type Refusal, type Unavailability, unavailable } from '../shared/outcome.ts';
import type { Selected } from '../stages/selected.ts';
import type { Lifecycle } from './lifecycle.ts';

/** The codes of a delivery under credentials that do not count: where others do, and where none do. */
const OF_CREDENTIALS: ReadonlySet<RefusedCode> = new Set([
  'webhook_signature_invalid',
  'webhook_mode_mismatch',
]);

/**
 * What a refusal comes to by credentials that the owner has retired (told.md §4.2): the seller cannot know, and is not to lose the
 * event. What is signed is judged as ever.
 */
export function retiredOr<R extends Refusal | Unavailability>(
  rejection: R,
  { delivery, target, senders }: Selected,
  {
    registrations,
    lifecycle,
  }: {
    readonly registrations: Pick<EventRegistrations, 'retired'> | undefined;
    readonly lifecycle: Pick<Lifecycle, 'background'>;
  },
): R | Unavailability {
  if (rejection.kind !== 'refused' || !OF_CREDENTIALS.has(rejection.code)) return rejection;
  if (delivery.headers.has('signature-input')) return rejection;
  const retired = registrations?.retired?.(target.targetUri, senders[0].agentUrl);
  if (!retired) return rejection;
  if (retired.written) lifecycle.background(retired.written);
  return unavailable(
    'misconfigured',
    'the credentials of this URL were retired: the seller has to use the new ones',
  );
}
