import type { Authenticate, Prove } from './contract.ts';

/** Both halves of a scheme, for a delivery that is there as a whole. */
export const whole =
  (prove: Prove): Authenticate =>
  async (context, request) => {
    const found = await prove(context, request);
    if (found.kind !== 'proof') return found;
    return found.complete({ rawBody: request.delivery.rawBody, wholeAt: request.arrivedAt });
  };
