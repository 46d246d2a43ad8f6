import assert from 'node:assert/strict';
import { inboxOf, lease, leasedKeys } from './inbox-kit.ts';
import type { Cases } from './kit.ts';
import { LEASE_MS } from './kit.ts';

const INBOX = { mode: 'inbox' } as const;

const key = (n: number): string => `event-${String(n).padStart(4, '0')}-of-the-seller`;

/** Of a store whose own clock goes on meanwhile. */
function near(ms: number | undefined, expected: number, what: string): void {
  assert.ok(ms !== undefined && ms >= expected && ms < expected + 30_000, `${what}: ${ms} ms`);
}

/** `StoreInbox.overdueMs`, where the store has it. */
export const inboxDueCases: Cases = {
  'overdueMs tells how long the first event that is due has been due, be it queued or its lease over': async (
    kit,
  ) => {
    const overdueMs = async (): Promise<number | undefined> => inboxOf(kit.b).overdueMs?.();
    if (!inboxOf(kit.b).overdueMs) return;
    assert.equal(await overdueMs(), undefined, 'of an empty store');
    await kit.win({ key: key(1) });
    await kit.accept({ ...INBOX, key: key(2) });
    kit.advance(LEASE_MS + 60_000);
    await kit.accept({ ...INBOX, key: key(3) });
    near(await overdueMs(), LEASE_MS + 60_000, 'the first of two; a lease of inline mode is its sender’s');
    const { events } = await lease(kit, { owner: 'worker' });
    assert.equal(events.length, 2);
    assert.equal(await overdueMs(), undefined, 'while both are leased');
    assert.equal(await kit.fail('worker', { key: key(3), backoffMs: 600_000 }), 'queued');
    kit.advance(LEASE_MS + 60_000);
    near(await overdueMs(), 60_000, 'since a lease ran out; the other one is in its back-off');
    kit.advance(600_000);
    assert.deepEqual(await leasedKeys(kit, { max: 1 }), [key(3)]);
    near(await overdueMs(), 660_000, 'since a lease ran out: a suspect waits for its turn');
    assert.deepEqual(await leasedKeys(kit, { alone: true }), [key(2)]);
    assert.equal(await overdueMs(), undefined, 'while both are leased again');
  },
};
