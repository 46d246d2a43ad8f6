import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sqliteStore } from '../../../src/stores/sqlite.ts';
import { acceptRequest } from '../requests.ts';
import type { TempFile } from '../sqlite-files.ts';
import { tempFile } from '../sqlite-files.ts';
import type { Watched } from './wrapped.ts';
import { times, watched } from './wrapped.ts';

const RETENTION = { retentionMs: 86_400_000 };

let temp: TempFile;
let handle: Watched;

beforeEach(() => {
  temp = tempFile();
  handle = watched(temp.file);
});

afterEach(() => {
  handle.close();
  temp.remove();
});

async function opened(): Promise<ReturnType<typeof sqliteStore>> {
  const store = sqliteStore(handle);
  await store.open();
  handle.log.length = 0;
  return store;
}

/** Whose rows cannot be written. */
function broken(sender?: string, n = 0): ReturnType<typeof acceptRequest> {
  return acceptRequest({ key: `broken-${n}-of-the-seller`, ...(sender !== undefined && { sender }) });
}

/** Makes them so. */
function breakRows(): void {
  handle.exec(`CREATE TEMP TRIGGER breaks BEFORE INSERT ON webhook_row WHEN new.name LIKE 'broken-%'
    BEGIN SELECT RAISE(ABORT, 'broken'); END`);
}

function many(count: number): ReturnType<typeof acceptRequest>[] {
  return Array.from({ length: count }, (_, n) => acceptRequest({ key: `event-${n}-of-the-seller` }));
}

describe('group commit', () => {
  it('64 concurrent accepts share one commit', async () => {
    const store = await opened();
    const results = await Promise.all(many(64).map((request) => store.accept(request)));
    expect(results.every(({ kind }) => kind === 'won')).toBe(true);
    expect(times(handle, 'COMMIT')).toBe(1);
    expect(times(handle, 'BEGIN IMMEDIATE')).toBe(1);
  });

  it('several failing steps do not repeat the others each time', async () => {
    let steps = 0;
    // Each step reads the clock once.
    const clockOffsetMs = (): number => (steps += 1);
    const store = sqliteStore(handle, { clockOffsetMs });
    await store.open();
    breakRows();
    const requests = many(64).map((request, at) => (at % 2 ? broken(undefined, at) : request));
    const results = await Promise.allSettled(requests.map((request) => store.accept(request)));
    expect(results.map(({ status }) => status)).toEqual(
      requests.map((_, at) => (at % 2 ? 'rejected' : 'fulfilled')),
    );
    expect(steps).toBeLessThanOrEqual(2 * requests.length);
  });

  it('accept, complete, fail and renew share one commit', async () => {
    const store = await opened();
    const [first, second, third, fourth] = many(4);
    if (!first?.event || !second?.event || !third?.event || !fourth) throw new Error('four');
    for (const request of [first, second, third]) await store.accept(request);
    handle.log.length = 0;
    const { sender, retry } = first;
    const ends = await Promise.all([
      store.complete({ sender, key: first.event.key, owner: first.acceptId, ...RETENTION }),
      store.fail({
        sender,
        key: second.event.key,
        owner: second.acceptId,
        permanent: false,
        retry,
        backoffMs: 0,
        ...RETENTION,
      }),
      store.renew({ sender, key: third.event.key, owner: third.acceptId, leaseMs: 8000 }),
      store.accept(fourth).then(({ kind }) => kind),
    ]);
    expect(ends).toEqual(['done', 'queued', 'renewed', 'won']);
    expect(times(handle, 'COMMIT')).toBe(1);
  });

  it('a single accept waits for the end of the turn only', async () => {
    const store = await opened();
    const running = store.accept(acceptRequest());
    expect(times(handle, 'BEGIN IMMEDIATE')).toBe(0);
    await turn();
    expect(times(handle, 'COMMIT')).toBe(1);
    expect((await running).kind).toBe('won');
  });

  it('a long queue is committed in parts, so that the event loop can run', async () => {
    const store = await opened();
    await Promise.all(many(300).map((request) => store.accept(request)));
    expect(times(handle, 'COMMIT')).toBe(3);
  });

  it('no call is answered before the commit', async () => {
    const store = await opened();
    const order: string[] = [];
    handle.before = (sql) => {
      if (sql === 'COMMIT') order.push('commit');
    };
    await Promise.all(many(3).map((request) => store.accept(request).then(() => order.push('answer'))));
    expect(order).toEqual(['commit', 'answer', 'answer', 'answer']);
  });

  it('a failing step fails alone and leaves nothing', async () => {
    const store = await opened();
    breakRows();
    const same = acceptRequest({ sender: 'https://new.example/mcp', key: 'event-0002-of-the-seller' });
    const [first, second, third] = await Promise.allSettled([
      store.accept(acceptRequest()),
      store.accept(broken('https://new.example/mcp')),
      store.accept(same),
    ]);
    expect(first).toMatchObject({ status: 'fulfilled', value: { kind: 'won' } });
    expect(second).toMatchObject({ status: 'rejected', reason: { code: 'store_unavailable' } });
    expect(third).toMatchObject({ status: 'fulfilled', value: { kind: 'won' } });
    expect(await store.peek('https://new.example/mcp', 'broken-0-of-the-seller')).toBe('absent');
    expect(await store.peek('https://new.example/mcp', 'event-0002-of-the-seller')).toBe('busy');
    // Of the one before it, the one behind it, and two peeks.
    expect(times(handle, 'COMMIT')).toBe(4);
  });
});
