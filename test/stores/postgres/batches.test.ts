import { randomBytes } from 'node:crypto';
import { Pool } from 'pg';
import { beforeEach, describe, expect, it } from 'vitest';
import { Fault } from '../../../src/index.ts';
import type { PgClient } from '../../../src/stores/postgres.ts';
import { ownSchema } from '../postgres-schemas.ts';
import { acceptRequest, key, leaseOf, RETENTION_MS } from '../requests.ts';
import { wrappedPool } from './wrapped-pool.ts';

const SENDER = acceptRequest().sender;

const at = ownSchema();
beforeEach(() => at.clear());

describe('concurrent calls share a transaction', () => {
  it('64 accepts and then their completions are written by two batches each', async () => {
    const said: string[] = [];
    const pool = wrappedPool(at.pools[0], (run, text) => {
      said.push(text);
      return run();
    });
    // No accept sweeps.
    const store = at.store(at.pools[0], { pool, random: () => 0.99 });
    await store.open();
    await store.accept(acceptRequest());
    said.length = 0;
    const requests = Array.from({ length: 64 }, (_, n) => acceptRequest({ key: key(10 + n) }));
    const results = await Promise.all(requests.map((request) => store.accept(request)));
    expect(results.every(({ kind }) => kind === 'won')).toBe(true);
    const ends = await Promise.all(
      requests.map((request) => store.complete({ ...leaseOf(request), retentionMs: RETENTION_MS })),
    );
    expect(new Set(ends)).toEqual(new Set(['done']));
    expect(said).toHaveLength(4);
    await store.close();
  });

  it('accepts of one batch see each other in their order', async () => {
    const store = at.store();
    await store.open();
    const kinds = await Promise.all(
      [
        acceptRequest({ key: key(1), task: 't' }),
        acceptRequest({ key: key(1), task: 't' }),
        acceptRequest({ key: key(2), task: 't' }),
        acceptRequest({ key: key(2) }),
      ].map(async (request) => (await store.accept(request)).kind),
    );
    expect(kinds).toEqual(['won', 'in-flight', 'task-busy', 'task-busy']);
    await store.close();
  });

  it('a call that the server rejects fails alone', async () => {
    const store = at.store();
    await store.open();
    await at.sql(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'not this one' USING ERRCODE = '23514'; END $$;
      CREATE TRIGGER refuse BEFORE INSERT ON webhook_row FOR EACH ROW WHEN (NEW.id = '${key(7)}')
      EXECUTE FUNCTION refuse()`);
    try {
      const calls = Array.from({ length: 20 }, (_, n) => store.accept(acceptRequest({ key: key(n) })));
      const settled = await Promise.allSettled(calls);
      const failed = settled.flatMap((result, n) => (result.status === 'rejected' ? [n] : []));
      expect(failed).toEqual([7]);
      const reason: unknown = settled[7]?.status === 'rejected' ? settled[7].reason : undefined;
      expect(reason).toBeInstanceOf(Fault);
      expect(reason).toMatchObject({ code: 'store_unavailable' });
    } finally {
      await at.sql('DROP TRIGGER refuse ON webhook_row; DROP FUNCTION refuse');
    }
    await store.close();
  });

  it('keys that differ only far beyond the index limit stay distinct', async () => {
    const store = at.store();
    await store.open();
    // Longer than an entry of an index may be, and not to be compressed.
    const long = randomBytes(4000).toString('hex');
    expect((await store.accept(acceptRequest({ key: `${long}a` }))).kind).toBe('won');
    expect((await store.accept(acceptRequest({ key: `${long}b` }))).kind).toBe('won');
    expect((await store.accept(acceptRequest({ key: `${long}a` }))).kind).toBe('in-flight');
    await store.close();
  });

  it('nonces and key ids of any length stay distinct', async () => {
    const store = at.store();
    await store.open();
    const burn = (keyid: string, nonce: string): Promise<string> => {
      const { event: _event, ...request } = acceptRequest();
      return store
        .accept({ ...request, nonce: { keyid, nonce, nowMs: 0, expiresAtMs: 60_000 } })
        .then(({ kind }) => kind);
    };
    const long = 'x'.repeat(20_000);
    expect(await burn('kid', `${long}a`)).toBe('burned');
    expect(await burn('kid', `${long}b`)).toBe('burned');
    expect(await burn('kid', `${long}a`)).toBe('replayed');
    expect(await burn(`${long}a`, 'nonce')).toBe('burned');
    expect(await burn(`${long}b`, 'nonce')).toBe('burned');
    expect(await burn(`${long}a`, 'nonce')).toBe('replayed');
    await store.close();
  });

  it('bodies up to the limit come back byte for byte from one batch', async () => {
    const store = at.store();
    await store.open();
    const bodies = [1, 0, 1_048_576, 3000, 1_048_576].map((length, n) =>
      Uint8Array.from({ length }, (_, index) => (index * 7 + n) % 256),
    );
    const inbox = (body: Uint8Array, n: number): ReturnType<typeof acceptRequest> => {
      const request = acceptRequest({ key: key(n) });
      return { ...request, mode: 'inbox', ...(request.event && { event: { ...request.event, body } }) };
    };
    await Promise.all(bodies.map((body, n) => store.accept(inbox(body, n))));
    const { retry, leaseMs } = acceptRequest();
    const asked = { owner: 'worker', max: 10, leaseMs, retry, retentionMs: RETENTION_MS, senders: [] };
    const { events } = await store.inbox.lease(asked);
    expect(events).toHaveLength(bodies.length);
    for (const event of events) {
      const body = bodies[Number(event.key.split('-')[1])] ?? expect.fail();
      expect(Buffer.compare(event.body, body), event.key).toBe(0);
    }
    await store.close();
  });
});

describe('durability of answers', () => {
  it('every answer that permits a 2xx or a replayed comes from a transaction that writes', async () => {
    let wrote = false;
    const pool = wrappedPool(at.pools[0], async (run, text, client) => {
      if (!/webhook_(commit|load)/.test(text)) return run();
      await client.query('BEGIN');
      const result = await run();
      const { rows } = await client.query('SELECT txid_current_if_assigned() IS NOT NULL AS wrote');
      await client.query('COMMIT');
      // The last one before the answer.
      wrote = (rows as [{ wrote: boolean }])[0].wrote;
      return result;
    });
    const store = at.store(at.pools[0], { pool });
    await store.open();
    const first = acceptRequest();
    const lease = leaseOf(first);
    const { nonce: _nonce, ...legacy } = acceptRequest();
    const answers: readonly (readonly [call: () => Promise<unknown>, says: unknown, wrote: boolean])[] = [
      [() => store.accept(first), 'won', true],
      [() => store.peek(SENDER, lease.key), 'busy', false],
      [() => store.complete({ ...lease, retentionMs: RETENTION_MS }), 'done', true],
      [() => store.complete({ ...lease, retentionMs: RETENTION_MS }), 'done', true],
      [() => store.accept(first), 'won', true],
      [() => store.accept({ ...first, acceptId: 'another' }), 'replayed', true],
      [() => store.accept(acceptRequest()), 'done', true],
      [() => store.accept(legacy), 'done', true],
      [() => store.peek(SENDER, lease.key), 'applied', true],
    ];
    for (const [place, [call, says, writes]] of answers.entries()) {
      const answer = await call();
      expect((answer as { readonly kind?: string }).kind ?? answer, String(place)).toBe(says);
      expect(wrote, `${place} ${String(says)}`).toBe(writes);
    }
    await store.close();
  });
});

describe('behind PgBouncer in transaction mode', () => {
  it('no session state is used: each transaction may run on a fresh connection', async () => {
    const small = new Pool({ connectionString: at.url, max: 3 });
    const left: unknown[] = [];
    const owners = new Set<PgClient>();
    const pool = wrappedPool(small, async (run, text, client) => {
      // The owner's transaction goes on until its COMMIT; all else is a transaction by itself.
      const isOwners = owners.has(client);
      if (text.startsWith('BEGIN')) owners.add(client);
      if (text.startsWith('COMMIT')) owners.delete(client);
      if (!isOwners && !text.startsWith('INSERT')) await client.query('DISCARD ALL');
      const result = await run();
      if (owners.has(client)) return result;
      const { rows } = await client.query(
        `SELECT name, setting FROM pg_settings WHERE source = 'session'
         UNION ALL SELECT 'prepared', name FROM pg_prepared_statements
         UNION ALL SELECT 'lock', locktype FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'`,
      );
      if (!text.startsWith('INSERT')) left.push(...rows);
      return result;
    });
    const store = at.store(small, { pool });
    await store.open();
    const [first, second] = [
      acceptRequest({ key: key(1), task: 't' }),
      acceptRequest({ key: key(2), task: 'u' }),
    ];
    expect((await store.accept(first)).kind).toBe('won');
    expect((await store.accept(second)).kind).toBe('won');
    const lease = { sender: SENDER, retentionMs: RETENTION_MS };
    await store.transaction({ ...lease, key: key(1), owner: first.acceptId }, (tx) =>
      tx.query(`INSERT INTO ${at.schema}.note VALUES ('a')`),
    );
    expect(await store.complete({ ...lease, key: key(2), owner: second.acceptId })).toBe('done');
    expect(await store.peek(SENDER, key(1))).toBe('applied');
    await store.sweep();
    expect(left).toEqual([]);
    await store.close();
    await small.end();
  });

  it('a pool of one connection serves everything except ctx.transaction, whose error says so', async () => {
    const one = new Pool({ connectionString: at.url, max: 1 });
    const store = at.store(one);
    await store.open();
    const requests = Array.from({ length: 10 }, (_, n) => acceptRequest({ key: key(n) }));
    const results = await Promise.all(requests.map((request) => store.accept(request)));
    expect(results.every(({ kind }) => kind === 'won')).toBe(true);
    const owner = requests[0]?.acceptId ?? '';
    const lease = { sender: SENDER, key: key(0), owner, retentionMs: RETENTION_MS };
    await expect(store.transaction(lease, () => undefined)).rejects.toThrow(/max to 2 or more/);
    expect(await store.complete(lease)).toBe('done');
    await store.close();
    await one.end();
  });
});

/** Scans of whole tables, and rows read, by the connection; what it has not yet reported is included. */
async function readsOf(client: PgClient, schema: string): Promise<{ scans: number; rows: number }> {
  const { rows } = await client.query(
    `SELECT sum(seq_scan)::integer AS scans, sum(coalesce(idx_tup_fetch, 0) + seq_tup_read)::integer AS rows
     FROM pg_stat_xact_user_tables WHERE schemaname = '${schema}'`,
  );
  return rows[0] as { scans: number; rows: number };
}

describe('with many rows', () => {
  it('each call reads a bounded number of rows through indexes', async () => {
    // Plans go by what the server has counted: it counts here, and at no other moment.
    await at.sql('ALTER TABLE webhook_row SET (autovacuum_enabled = off)');
    const filling = at.store();
    await filling.open();
    const fill = Array.from({ length: 2000 }, (_, n) => acceptRequest({ key: key(n), task: `task-${n}` }));
    await Promise.all(
      fill.map(async (request, n) => {
        await filling.accept({ ...request, mode: n % 2 === 0 ? 'inline' : 'inbox' });
        if (n % 4 !== 0) return;
        const lease = { sender: SENDER, key: key(n), owner: request.acceptId, retentionMs: RETENTION_MS };
        expect(await filling.complete(lease)).toBe('done');
      }),
    );
    await filling.close();
    await at.sql('ANALYZE webhook_row, webhook_scope, webhook_tally');
    const reads: number[] = [];
    const pool = wrappedPool(at.pools[0], async (run, text, client) => {
      if (!/webhook_(commit|load|due)/.test(text)) return run();
      await client.query('BEGIN');
      const before = await readsOf(client, at.schema);
      const result = await run();
      const after = await readsOf(client, at.schema);
      await client.query('COMMIT');
      expect(after.scans).toBe(before.scans);
      reads.push(after.rows - before.rows);
      return result;
    });
    const store = at.store(at.pools[0], { pool });
    await store.open();
    const fresh = acceptRequest({ key: 'event-new-of-the-seller', task: 'task-1' });
    expect((await store.accept({ ...fresh, mode: 'inbox' })).kind).toBe('queued');
    expect((await store.accept(acceptRequest({ key: key(4), task: 'task-4' }))).kind).toBe('done');
    const { retry, leaseMs } = fresh;
    const asked = { owner: 'worker', max: 4, leaseMs, retry, retentionMs: RETENTION_MS, senders: [] };
    const { events } = await store.inbox.lease(asked);
    expect(events).toHaveLength(4);
    const lease = { sender: SENDER, key: events[0]?.key ?? '', owner: 'worker' };
    expect(await store.renew({ ...lease, leaseMs })).toBe('renewed');
    expect(await store.complete({ ...lease, retentionMs: RETENTION_MS })).toBe('done');
    expect(await store.peek(SENDER, key(8))).toBe('applied');
    // Of some 6,000 rows. A look goes through 64 entries of the index more than it gives, to know who has something due.
    expect(Math.max(...reads), String(reads)).toBeLessThan(60 + 64);
    await store.close();
    await at.sql('ALTER TABLE webhook_row RESET (autovacuum_enabled)');
  });
});
