import { beforeEach, describe, expect, it } from 'vitest';
import type { AcceptRequest } from '../../../src/stores/contract.ts';
import { acceptCall } from '../../../src/stores/postgres/call.ts';
import { expectCountsRight, ownSchema } from '../postgres-schemas.ts';
import { acceptRequest, key, leaseOf, RETENTION_MS } from '../requests.ts';

const at = ownSchema();
beforeEach(() => at.clear());

/** The nonce of another form. */
function signed(request: AcceptRequest, keyid: string, nonce: string): AcceptRequest {
  return { ...request, nonce: { keyid, nonce, nowMs: 0, expiresAtMs: 60_000 } };
}

function unsigned({ nonce: _nonce, ...request }: AcceptRequest): AcceptRequest {
  return request;
}

describe('fresh events and names of every form', () => {
  it('a nonce that is long only in its column form is known when it comes again', async () => {
    const store = at.store();
    await store.open();
    const nonce = `${'\ud800'.repeat(400)}n`;
    expect((await store.accept(signed(acceptRequest({ key: key(1) }), 'kid', nonce))).kind).toBe('won');
    expect((await store.accept(signed(acceptRequest({ key: key(2) }), 'kid', nonce))).kind).toBe('replayed');
    await store.close();
  });

  it('a sender and a key id that read like another pair stay apart', async () => {
    const store = at.store();
    await store.open();
    const pairs = [
      { sender: 'urn:seller x', keyid: 'y' },
      { sender: 'urn:seller', keyid: 'x y' },
    ];
    const results = await Promise.all(
      pairs.map(({ sender, keyid }, n) =>
        store.accept(signed(acceptRequest({ sender, key: key(n) }), keyid, `nonce-${n}`)),
      ),
    );
    expect(results.map(({ kind }) => kind)).toEqual(['won', 'won']);
    const rows = await at.sql(`SELECT w.url AS sender, r.key, k.keyid FROM webhook_record r
      JOIN webhook_sender w ON w.id = r.sender_id JOIN webhook_nonce n ON n.record_key = r.key
      JOIN webhook_keyid k ON k.id = n.keyid_id AND k.sender_id = w.id ORDER BY r.key`);
    expect(rows).toEqual(pairs.map((pair, n) => ({ ...pair, key: key(n) })));
    await store.close();
  });

  it('a delivery without a nonce is not taken for one by the key id "undefined", nor that for it', async () => {
    const store = at.store();
    await store.open();
    const requests = [
      unsigned(acceptRequest({ key: key(1) })),
      signed(acceptRequest({ key: key(2) }), 'undefined', 'nonce-2'),
    ];
    const results = await Promise.all(requests.map((request) => store.accept(request)));
    expect(results.map(({ kind }) => kind)).toEqual(['won', 'won']);
    await expectCountsRight(at);
    await store.close();
  });
});

describe('fresh events and what is cleared away', () => {
  it('a seller whose events come one by one, each accepted and completed, leaves no more than a few that expired', async () => {
    let offsetMs = 0;
    const store = at.store(at.pools[0], { clockOffsetMs: () => offsetMs });
    await store.open();
    const one = async (n: number): Promise<void> => {
      const request = acceptRequest({ key: key(n) });
      expect((await store.accept(request)).kind).toBe('won');
      expect(await store.complete({ ...leaseOf(request), retentionMs: RETENTION_MS })).toBe('done');
    };
    for (let n = 0; n < 40; n += 1) await one(n);
    offsetMs = 2 * RETENTION_MS;
    for (let n = 40; n < 120; n += 1) await one(n);
    expect(await at.sql('SELECT count(*)::integer AS n FROM webhook_record')).toEqual([{ n: 80 }]);
    expect(await at.sql('SELECT count(*)::integer AS n FROM webhook_nonce')).toEqual([{ n: 80 }]);
    await expectCountsRight(at);
    await store.close();
  });

  it('so do sellers whose events come in turns: whatever their number, sweeps meet each of them', async () => {
    let offsetMs = 0;
    const store = at.store(at.pools[0], { clockOffsetMs: () => offsetMs });
    await store.open();
    const one = (n: number): Promise<unknown> =>
      store.accept(acceptRequest({ sender: `https://seller-${n % 4}.example/mcp`, key: key(n) }));
    for (let n = 0; n < 40; n += 1) await one(n);
    offsetMs = 2 * RETENTION_MS;
    for (let n = 40; n < 440; n += 1) await one(n);
    expect(await at.sql('SELECT count(*)::integer AS n FROM webhook_record')).toEqual([{ n: 400 }]);
    expect(await at.sql('SELECT count(*)::integer AS n FROM webhook_nonce')).toEqual([{ n: 400 }]);
    await expectCountsRight(at);
    await store.close();
  });

  it('a task whose row is swept after the look is held all the same', async () => {
    const store = at.store();
    await store.open();
    const tasks = ['task-1', 'task-2', 'task-3'];
    const begun = tasks.map((task, n) => acceptRequest({ key: key(n), task }));
    for (const request of begun) {
      await store.accept(request);
      await store.complete({ ...leaseOf(request), retentionMs: RETENTION_MS });
    }
    // As a sweep whose clock is a little ahead: it commits between the look at the task and the write.
    await at.sql(`CREATE SEQUENCE swept;
      CREATE FUNCTION sweep_tasks() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF nextval('${at.schema}.swept') <= 3 THEN
          DELETE FROM ${at.schema}.webhook_task WHERE task_id = NEW.task_id;
          INSERT INTO ${at.schema}.webhook_count VALUES (NEW.sender_id, 0, -1 - currval('${at.schema}.swept'), -1, 0, 0);
        END IF;
        RETURN NEW;
      END $$;
      CREATE TRIGGER sweep_tasks BEFORE INSERT ON webhook_record FOR EACH ROW EXECUTE FUNCTION sweep_tasks()`);
    try {
      const alone = await store.accept(acceptRequest({ key: key(10), task: 'task-1' }));
      const both = await Promise.all(
        ['task-2', 'task-3'].map((task, n) => store.accept(acceptRequest({ key: key(11 + n), task }))),
      );
      expect([alone, ...both].map(({ kind }) => kind)).toEqual(['won', 'won', 'won']);
    } finally {
      await at.sql(
        'DROP TRIGGER sweep_tasks ON webhook_record; DROP FUNCTION sweep_tasks; DROP SEQUENCE swept',
      );
    }
    for (const [n, task] of tasks.entries()) {
      expect((await store.accept(acceptRequest({ key: key(20 + n), task }))).kind).toBe('task-busy');
    }
    await store.close();
  });
});

describe('fresh events and senders that are new', () => {
  it('new senders of a batch have their rows in one order, whether their events are fresh or not', async () => {
    const [one, other] = [at.store(at.pools[0]), at.store(at.pools[1])];
    await one.open();
    await other.open();
    const [a, b] = ['https://a.example/mcp', 'https://b.example/mcp'];
    const { event, ...request } = acceptRequest({ sender: b, key: key(2) });
    const report = { mediaBuyIds: ['media-buy'], final: false };
    const holder = await at.pools[1].connect();
    await holder.query(`BEGIN; INSERT INTO ${at.schema}.webhook_sender (url) VALUES ('${a}')`);
    const both = Promise.all([
      one.accept(acceptRequest({ sender: a, key: key(1) })),
      one.accept({ ...request, ...(event && { event: { ...event, report } }) }),
    ]);
    await expect
      .poll(() =>
        at.sql(
          `SELECT FROM pg_stat_activity WHERE wait_event = 'transactionid' AND query LIKE '%${at.schema}%webhook_run%'`,
        ),
      )
      .toHaveLength(1);
    // Who waits for the first has not written the second.
    expect((await other.accept(acceptRequest({ sender: b, key: key(3) }))).kind).toBe('won');
    await holder.query('ROLLBACK');
    holder.release();
    expect((await both).map(({ kind }) => kind)).toEqual(['won', 'won']);
    await expectCountsRight(at);
    await one.close();
    await other.close();
  });
});

describe('fresh events and the caps', () => {
  it('a body that the room kept free for batches could not hold is counted alone', () => {
    const { event, ...request } = acceptRequest();
    const calls = [4 * 1_048_576, 4 * 1_048_576 + 1].map((size) =>
      acceptCall({ ...request, ...(event && { event: { ...event, body: new Uint8Array(size) } }) }),
    );
    expect(calls.map(({ fresh }) => fresh !== undefined)).toEqual([true, false]);
  });
});
