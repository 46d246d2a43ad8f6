import { describe, expect, it } from 'vitest';
import { leaseMsFor, withoutQueue } from '../../src/serve/for-tests.ts';
import { LONGEST_LEASE_MS } from '../../src/stores/for-tests.ts';
import { SILENT_LOGGER } from '../support/silent-logger.ts';

/** From the shortest to the longest `timeoutMs` of the file. */
const TIMEOUTS = [1, 2_000, 7_500, 15_000, 60_000, 400_000];

describe('an instance of serve', () => {
  it.each(TIMEOUTS)(
    'what a killed process held is not leased again while the sink may be at its request: timeoutMs %i',
    (timeoutMs) => {
      const leaseMs = leaseMsFor(timeoutMs);
      // A lease is renewed when a quarter of it is over, so that less may be over where its process dies.
      expect(leaseMs - leaseMs / 4).toBeGreaterThanOrEqual(timeoutMs);
      expect(leaseMs).toBeLessThanOrEqual(LONGEST_LEASE_MS);
    },
  );

  it('does not log queue_unattended while the sink is paused, and everything else', () => {
    let paused = true;
    const seen: string[] = [];
    const logger = { ...SILENT_LOGGER, warn: (_: object, message: string) => void seen.push(message) };
    const log = withoutQueue(logger, () => ({ paused }));
    log.warn({ code: 'queue_unattended' }, 'during the pause');
    log.warn({ code: 'near_capacity' }, 'another one');
    paused = false;
    log.warn({ code: 'queue_unattended' }, 'after the pause');
    expect(seen).toEqual(['another one', 'after the pause']);
  });
});
