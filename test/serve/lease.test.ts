import { expect, it } from 'vitest';
import { leaseMsFor } from '../../src/serve/for-tests.ts';
import { LONGEST_LEASE_MS } from '../../src/stores/for-tests.ts';

/** From the shortest to the longest `timeoutMs` of the file. */
const TIMEOUTS = [1, 2_000, 7_500, 15_000, 60_000, 400_000];

it.each(TIMEOUTS)(
  'what a killed process held is not leased again while the sink may be at its request: timeoutMs %i',
  (timeoutMs) => {
    const leaseMs = leaseMsFor(timeoutMs);
    // A lease is renewed when a quarter of it is over, so that less may be over where its process dies.
    expect(leaseMs - leaseMs / 4).toBeGreaterThanOrEqual(timeoutMs);
    expect(leaseMs).toBeLessThanOrEqual(LONGEST_LEASE_MS);
  },
);
