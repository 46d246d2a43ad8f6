import type { CallSeller } from '../registrations/call-seller.ts';
import { requireBounded } from './bounds.ts';

/**
 * The owner's client, whose answers are held to depth and number of values before anything walks them (calls.md §4.6).
 * @param answered called once there is an answer: what is thrown from then on may be its fault.
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
