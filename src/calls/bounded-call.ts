// Wraps the application's client so that the size of its answers is checked before they are used (calls.md §4.6).
// Registrations, the poller and the reconciler call sellers through it.
import type { CallSeller } from '../registrations/call-seller.ts';
import { requireBounded } from './bounds.ts';

/**
 * Returns a client that calls the application's client, and checks its answers for depth and number of values (calls.md
 * §4.6).
 * @param answered called when the client has answered. An error after that may be the answer's fault, and not the
 *   connection's.
 */
export function boundedCall(call: CallSeller, answered: () => void = () => undefined): CallSeller {
  const bounded = async (...given: Parameters<CallSeller>): Promise<unknown> => {
    const answer = await call(...given);
    answered();
    requireBounded(answer);
    return answer;
  };
  return Object.assign(bounded, call);
}
