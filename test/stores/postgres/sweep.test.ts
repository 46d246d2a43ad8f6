import { beforeEach, describe, expect, it } from 'vitest';
import { expectCountsRight, ownSchema } from '../postgres-schemas.ts';
import { acceptRequest } from '../requests.ts';

const DAY_MS = 86_400_000;

/** No accept sweeps: one that does may do so after the clock has moved, and takes what is to be counted here. */
const neverSweeps = (): number => 0.999_999;

const at = ownSchema();
beforeEach(() => at.clear());

describe('sweep()', () => {
  it('deletes only expired rows, of every sender and kind', async () => {
    let offsetMs = 0;
    const store = at.store(at.pools[0], { clockOffsetMs: () => offsetMs, random: neverSweeps });
    await store.open();
    for (const sender of ['https://a.example/mcp', 'https://b.example/mcp']) {
      const requests = Array.from({ length: 600 }, (_, n) =>
        acceptRequest({ sender, key: `event-${n}-of-the-seller`, ...(n < 300 && { task: `task-${n}` }) }),
      );
      await Promise.all(requests.map((request) => store.accept(request)));
    }
    const kept = { ...acceptRequest({ key: 'event-kept-of-the-seller' }), mode: 'inbox' } as const;
    await store.accept(kept);
    expect(await store.sweep()).toBe(0);

    offsetMs = 2 * DAY_MS;
    // Records and nonces; tasks outlive them.
    expect(await store.sweep()).toBe(2 * 600 + 2 * 600 + 1);
    offsetMs = 40 * DAY_MS;
    expect(await store.sweep()).toBe(2 * 300);
    expect(await at.sql('SELECT key FROM record')).toEqual([{ key: 'event-kept-of-the-seller' }]);
    await expectCountsRight(at);
    await store.close();
  });

  it('skips locked rows and blocks no other transaction', async () => {
    let offsetMs = 0;
    const store = at.store(at.pools[0], {
      clockOffsetMs: () => offsetMs,
      timeoutMs: 20_000,
      random: neverSweeps,
    });
    await store.open();
    await store.accept(acceptRequest({ key: 'event-1-of-the-seller' }));
    await store.accept(acceptRequest({ key: 'event-2-of-the-seller' }));
    offsetMs = 2 * DAY_MS;
    const other = await at.pools[1].connect();
    await other.query(
      `BEGIN; SELECT FROM ${at.schema}.webhook_row WHERE kind = 'r' AND id LIKE 'event-1-%' FOR UPDATE`,
    );
    expect(await store.sweep()).toBe(1 + 2);
    await other.query('ROLLBACK');
    other.release();
    expect(await store.sweep()).toBe(1);
    await expectCountsRight(at);
    await store.close();
  });

  it('also runs within some accepts, for their own sender', async () => {
    let offsetMs = 0;
    // Each of them.
    const store = at.store(at.pools[0], { clockOffsetMs: () => offsetMs, random: () => 0 });
    await store.open();
    const old = Array.from({ length: 200 }, (_, n) => acceptRequest({ key: `old-${n}-of-the-seller` }));
    await Promise.all(old.map((request) => store.accept(request)));
    offsetMs = 2 * DAY_MS;
    for (let n = 0; n < 60; n += 1) await store.accept(acceptRequest({ key: `new-${n}-of-the-seller` }));
    expect(await at.sql("SELECT key FROM record WHERE key LIKE 'old-%'")).toEqual([]);
    expect(await at.sql('SELECT count(*)::integer AS n FROM nonce')).toEqual([{ n: 60 }]);
    await expectCountsRight(at);
    await store.close();
  });
});
