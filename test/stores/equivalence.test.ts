import { DatabaseSync } from 'node:sqlite';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AcceptRequest, Store } from '../../src/stores/contract.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import type { SqliteStore } from '../../src/stores/sqlite.ts';
import { sqliteStore } from '../../src/stores/sqlite.ts';
import { acceptRequest } from './requests.ts';

/** One call, by small numbers: few names, so that the calls meet. */
interface Call {
  readonly does: 'accept' | 'complete' | 'fail' | 'renew' | 'peek' | 'wait';
  readonly accept: number;
  readonly key: number;
  readonly nonce: number;
  readonly task: number;
  readonly second: number;
  readonly flags: number;
}

const call: fc.Arbitrary<Call> = fc.record({
  does: fc.constantFrom('accept', 'accept', 'accept', 'accept', 'complete', 'fail', 'renew', 'peek', 'wait'),
  accept: fc.nat(5),
  key: fc.nat(3),
  nonce: fc.nat(6),
  task: fc.nat(2),
  second: fc.nat(3),
  flags: fc.nat(63),
});

const RETENTION_MS = 61_000;

function requestOf({ accept, key, nonce, task, second, flags }: Call): AcceptRequest {
  const base = acceptRequest({ key: `key-${key}`, body: flags & 1 ? 'first' : 'changed' });
  const instant = `00000000000${second}.`;
  const claim = { id: `task-${task}`, instant, instantMs: second * 1000, terminal: (flags & 2) !== 0 };
  return {
    ...base,
    acceptId: `accept-${accept}`,
    mode: flags & 4 ? 'inline' : accept === 0 ? 'inbox' : 'inline',
    nonce: { keyid: `kid-${nonce % 2}`, nonce: `nonce-${nonce}`, nowMs: 0, expiresAtMs: 33_000 },
    ...(base.event && {
      event: {
        ...base.event,
        onChanged: flags & 8 ? 'conflict' : 'first-wins',
        ...(task > 0 && { task: claim }),
        ...(flags & 16 && { notificationId: `notification-${task}` }),
      },
    }),
    limits: { maxRecordsPerSender: 7, maxPendingBytesPerSender: 14, maxNoncesPerKey: 4, maxNonces: 6 },
    retry: { attempts: 4, crashes: 2 },
    retentionMs: RETENTION_MS,
  };
}

async function answerOf(store: Store, made: Call): Promise<unknown> {
  const request = requestOf(made);
  const lease = { sender: request.sender, key: `key-${made.key}`, owner: request.acceptId };
  const answers: Record<Exclude<Call['does'], 'wait'>, () => Promise<unknown>> = {
    accept: () => store.accept(request),
    complete: () => store.complete({ ...lease, retentionMs: RETENTION_MS }),
    fail: () =>
      store.fail({
        ...lease,
        permanent: (made.flags & 32) !== 0,
        retry: request.retry,
        backoffMs: 0,
        retentionMs: RETENTION_MS,
      }),
    renew: () => store.renew({ ...lease, leaseMs: 8000 }),
    peek: () => store.peek(lease.sender, lease.key),
  };
  return made.does === 'wait' ? undefined : answers[made.does]();
}

/** The counts that triggers keep, against the rows themselves. */
function expectCountsRight(db: DatabaseSync): void {
  const counted = db
    .prepare(
      `SELECT (SELECT count(*) FROM webhook_record) + (SELECT count(*) FROM webhook_task)
            + (SELECT count(*) FROM webhook_notification) AS entries,
          coalesce((SELECT sum(body_bytes) FROM webhook_record), 0) AS bytes,
          coalesce((SELECT sum(length(body)) FROM webhook_body), 0) AS kept,
          (SELECT count(*) FROM webhook_nonce) AS nonces`,
    )
    .get();
  const noted = db
    .prepare(
      `SELECT coalesce(sum(entries), 0) AS entries, coalesce(sum(pending_bytes), 0) AS bytes,
          coalesce(sum(pending_bytes), 0) AS kept,
          (SELECT nonces FROM webhook_total) AS nonces FROM webhook_sender`,
    )
    .get();
  expect(noted).toEqual(counted);
  const byKey = db.prepare('SELECT coalesce(sum(nonces), 0) AS nonces FROM webhook_keyid').get();
  expect(byKey?.['nonces']).toBe(counted?.['nonces']);
}

describe('memory and SQLite', () => {
  it('give the same answer to every call of every sequence, and count what they keep', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(call, { minLength: 1, maxLength: 60 }), async (calls) => {
        let offsetMs = 0;
        const clockOffsetMs = (): number => offsetMs;
        const db = new DatabaseSync(':memory:');
        const sqlite: SqliteStore = sqliteStore(db, { clockOffsetMs });
        const memory = memoryStore({ clockOffsetMs });
        await sqlite.open();
        for (const made of calls) {
          // 5 s steps meet neither the lease (8 s), nor the nonces (33 s), nor the retention (61 s) to the ms.
          if (made.does === 'wait') offsetMs += 5000 * (1 + made.key * made.key);
          expect(await answerOf(sqlite, made)).toEqual(await answerOf(memory, made));
          expectCountsRight(db);
        }
        db.close();
      }),
      { numRuns: 150 },
    );
  });
});
