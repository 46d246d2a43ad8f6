// Answers 503 instead of 401 if a seller still uses credentials that the owner has retired (told.md §4.2).
// Loaded on demand, for receivers with registrations.

import type { EventRegistrations } from '../events/event-registration.ts';
import type { RefusedCode } from '../shared/codes.ts';
import { type Refusal, type Unavailability, unavailable } from '../shared/outcome.ts';
import type { Selected } from '../stages/selected.ts';
import type { Lifecycle } from './lifecycle.ts';

/**
 * The codes with which retired credentials are refused: the credentials are wrong, or the URL now requires another
 * scheme.
 */
const OF_CREDENTIALS: ReadonlySet<RefusedCode> = new Set([
  'webhook_signature_invalid',
  'webhook_mode_mismatch',
]);

/**
 * Replaces a refusal by 503 if the delivery has credentials that the owner retired (told.md §4.2). The seller cannot
 * know that the credentials were retired, and must not lose the event. A refused delivery with a signature stays
 * refused.
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
