import { whenThere } from '../eventual.ts';
import type { Authenticate, Prove } from './contract.ts';

/** Both halves of a scheme, for a delivery that is there as a whole. */
export const whole =
  (prove: Prove): Authenticate =>
  (context, request) =>
    whenThere(prove(context, request), (found) => {
      if (found.kind !== 'proof') return found;
      return found.complete({ rawBody: request.delivery.rawBody, wholeAt: request.arrivedAt });
    });
