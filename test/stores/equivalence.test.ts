import { DatabaseSync } from 'node:sqlite';
import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { AcceptRequest, Store } from '../../src/stores/contract.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import type { SqliteStore } from '../../src/stores/sqlite.ts';
import { sqliteStore } from '../../src/stores/sqlite.ts';
import { acceptRequest } from './requests.ts';

type Does =
  | 'accept'
  | 'complete'
  | 'fail'
  | 'renew'
  | 'peek'
  | 'lease'
  | 'list'
  | 'inspect'
  | 'redrive'
  | 'discard'
  | 'wait';

const OFTEN: readonly Does[] = [
  'accept',
  'accept',
  'accept',
  'accept',
  'accept',
  'lease',
  'lease',
  'complete',
];
const SOMETIMES: readonly Does[] = ['fail', 'renew', 'peek', 'list', 'inspect', 'redrive', 'discard', 'wait'];

/** One call, by small numbers: few names, so that the calls meet. */
interface Call {
  readonly does: Does;
  readonly accept: number;
  readonly key: number;
  readonly nonce: number;
  readonly task: number;
  readonly second: number;
  readonly flags: number;
}

const call: fc.Arbitrary<Call> = fc.record({
  does: fc.constantFrom(...OFTEN, ...SOMETIMES),
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
    mode: flags & 4 ? 'inline' : 'inbox',
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

/** A lease's owner: an accept, or one of the workers. */
function ownerOf({ accept, flags }: Call, acceptId: string): string {
  return flags & 1 ? acceptId : `worker-${accept % 3}`;
}

const STATES = ['queued', 'leased', 'dead'] as const;

async function answerOf(store: Store, made: Call): Promise<unknown> {
  const request = requestOf(made);
  const { sender, retry } = request;
  const key = `key-${made.key}`;
  const lease = { sender, key, owner: ownerOf(made, request.acceptId) };
  const inbox = store.inbox ?? expect.fail('both have an inbox');
  const answers: Record<Exclude<Does, 'wait'>, () => Promise<unknown>> = {
    accept: () => store.accept(request),
    complete: () => store.complete({ ...lease, retentionMs: RETENTION_MS }),
    fail: () =>
      store.fail({
        ...lease,
        permanent: (made.flags & 32) !== 0,
        ...(made.flags & 16 && { unstarted: true }),
        ...(made.flags & 8 && { error: `error-${made.nonce}` }),
        retry,
        backoffMs: made.second * 4000,
        retentionMs: RETENTION_MS,
      }),
    renew: () => store.renew({ ...lease, leaseMs: 8000 }),
    peek: () => store.peek(sender, key),
    lease: () =>
      inbox.lease({
        owner: `worker-${made.accept % 3}`,
        max: 1 + (made.second % 3),
        leaseMs: 8000,
        retry,
        retentionMs: RETENTION_MS,
        senders: [],
      }),
    list: async () => {
      const of = { state: STATES[made.task] ?? 'queued', ...(made.flags & 1 && { sender }) } as const;
      const { records, next } = await inbox.list({ ...of, limit: 1 + made.second });
      return { records, more: next !== undefined };
    },
    inspect: () => inbox.inspect(sender, key),
    redrive: () => inbox.redrive(sender, key),
    discard: () => inbox.discard(sender, key, RETENTION_MS),
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
  beforeEach(() => {
    // One instant for both: the answers have instants in them.
    vi.useFakeTimers({ toFake: ['Date'] });
  });

  afterEach(() => {
    vi.useRealTimers();
  });

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
      { numRuns: 300 },
    );
  });
});
