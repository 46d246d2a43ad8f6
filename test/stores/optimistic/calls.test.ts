import { describe, expect, it } from 'vitest';
import type { AcceptRequest, Row } from '../../../src/stores/index.ts';
import { emptyStream, streamText } from '../../../src/windows/for-tests.ts';
import { driven, type Handle, recount, status } from '../../support/driven.ts';
import { acceptRequest, key, LEASE_MS, leaseOf, RETENTION_MS } from '../requests.ts';

const SENDER = 'https://seller.example/mcp';

/** What an operation costs in round trips, counts at hand (admission.md §8.11). */
describe('how often the store calls its backend', () => {
  it('an accept and its completion are one commit each, without a load', async () => {
    const { a } = await driven();
    await a.store.accept(acceptRequest({ key: key(1) }));
    recount(a);
    const request = acceptRequest({ key: key(2), task: 'task' });
    expect(await a.store.accept(request)).toMatchObject({ kind: 'won' });
    expect([a.commits.length, a.loads.length]).toEqual([1, 0]);
    expect(await a.store.complete({ ...leaseOf(request), retentionMs: RETENTION_MS })).toBe('done');
    expect([a.commits.length, a.loads.length]).toEqual([2, 0]);
  });

  it('a second status of a free task is one commit in the same process', async () => {
    const { a } = await driven();
    const first = status(key(1), 'task', 1);
    await a.store.accept(first);
    await a.store.complete({ ...leaseOf(first), retentionMs: RETENTION_MS });
    recount(a);
    expect(await a.store.accept(status(key(2), 'task', 2))).toMatchObject({ kind: 'won' });
    expect([a.commits.length, a.loads.length]).toEqual([1, 0]);
  });

  it('a second status of a free task is two commits in another process, which guesses that the task is new', async () => {
    const { a, b } = await driven();
    const first = status(key(1), 'task', 1);
    await a.store.accept(first);
    await a.store.complete({ ...leaseOf(first), retentionMs: RETENTION_MS });
    await b.store.accept(acceptRequest({ key: key(9) }));
    recount(b);
    expect(await b.store.accept(status(key(2), 'task', 2))).toMatchObject({ kind: 'won' });
    expect([b.commits.length, b.loads.length]).toEqual([2, 0]);
  });

  it('a duplicate of a finished event is two commits: one finds the event, one makes the answer durable', async () => {
    const { a, b } = await driven();
    const first = acceptRequest({ key: key(1) });
    await a.store.accept(first);
    await a.store.complete({ ...leaseOf(first), retentionMs: RETENTION_MS });
    await b.store.accept(acceptRequest({ key: key(9) }));
    for (const handle of [a, b]) {
      recount(handle);
      expect(await handle.store.accept(acceptRequest({ key: key(1) }))).toMatchObject({ kind: 'done' });
      expect([handle.commits.length, handle.loads.length]).toEqual([2, 0]);
    }
  });

  it('64 accepts at once are one commit, also when they belong to one task', async () => {
    const { a } = await driven({ of: (backend) => ({ ...backend, concurrency: 1 }) });
    await a.store.accept(acceptRequest({ key: key(0) }));
    for (const task of [undefined, 'task']) {
      recount(a);
      const many = Array.from({ length: 64 }, (_, n) =>
        acceptRequest({ key: `${task}-${key(n)}`, ...(task && { task }) }),
      );
      const answers = await Promise.all(many.map((request) => a.store.accept(request)));
      expect(answers.filter(({ kind }) => kind === 'won')).toHaveLength(task ? 1 : 64);
      expect(answers.filter(({ kind }) => kind === 'task-busy')).toHaveLength(task ? 63 : 0);
      expect([a.commits.length, a.loads.length]).toEqual([1, 0]);
    }
  });

  it('an event that another process changed is loaded once and not guessed again', async () => {
    const { a, b, later } = await driven();
    const first = acceptRequest({ key: key(1) });
    await a.store.accept(first);
    later(LEASE_MS + 1);
    const second = acceptRequest({ key: key(1) });
    expect(await b.store.accept(second)).toMatchObject({ kind: 'won' });
    expect(await a.store.complete({ ...leaseOf(first), retentionMs: RETENTION_MS })).toBe('lost');
    recount(a);
    // It would be in flight as `a` left it, and refused for that.
    expect(await a.store.accept(acceptRequest({ key: key(1) }))).toMatchObject({ kind: 'in-flight' });
    expect(a.commits.map(({ units }) => units.length)).toEqual([1, 1]);
    expect(a.commits[0]?.units[0]?.writes.length).toBeGreaterThan(1);
  });
});

describe('what a report of many media buys costs, in calls and rows', () => {
  const account = (id: string) => ({
    kind: 'stream' as const,
    sender: SENDER,
    id,
    value: streamText(emptyStream(id)),
    dueAt: null,
    list: null,
    expiresAt: null,
  });
  const wide = (of: number): AcceptRequest => {
    const { event, ...request } = acceptRequest({ key: key(1), sender: SENDER });
    const windows = Array.from({ length: of }, (_, at) => ({
      id: `mb_${at}`,
      mediaBuyId: `mb_${at}`,
      start: 0,
      end: 86_400_000,
      stage: '',
      isRevision: false,
    }));
    const report = { mediaBuyIds: [], final: false, windows };
    return { ...request, ...(event && { event: { ...event, report } }) };
  };
  const following = async (handle: Handle, of: number): Promise<void> => {
    await handle.store.registrations?.run(SENDER, (rows) => {
      for (let at = 0; at < of; at += 1) rows.save(account(`mb_${at}`));
    });
    recount(handle);
  };

  it.each([100, 10_000])(
    'its accounts are loaded once and written once, and so at its end (%d)',
    async (of) => {
      const { a } = await driven();
      await following(a, of);
      const request = wide(of);
      expect(await a.store.accept(request)).toMatchObject({ kind: 'won' });
      expect(a.loads.map(({ rows }) => rows.length).filter((rows) => rows > 1)).toEqual([of]);
      expect(a.commits.map(({ units }) => units.map(({ writes }) => writes.length))).toEqual([[of + 2]]);
      recount(a);
      expect(await a.store.complete({ ...leaseOf(request), retentionMs: RETENTION_MS })).toBe('done');
      expect(a.loads.map(({ rows }) => rows.length)).toEqual([of]);
      expect(a.commits.map(({ units }) => units.map(({ writes }) => writes.length))).toEqual([[of + 1]]);
    },
  );

  it('it is committed alone, and what comes with it does not wait for it', async () => {
    const { a } = await driven();
    await following(a, 5000);
    let go = (): void => {};
    const held = new Promise<void>((resolve) => (go = resolve));
    a.between.beforeLoad = () => held;
    const report = a.store.accept(wide(5000));
    const others = [2, 3, 4].map((n) => a.store.accept(acceptRequest({ key: key(n) })));
    expect((await Promise.all(others)).map(({ kind }) => kind)).toEqual(['won', 'won', 'won']);
    go();
    expect(await report).toMatchObject({ kind: 'won' });
    expect(a.commits.map(({ units }) => units.length)).toEqual([3, 1]);
  });

  it('it is not planned again for the seconds that its rows take to be sent', async () => {
    const { a, later } = await driven();
    await following(a, 5000);
    a.between.beforeCommit = async () => later(4500);
    expect(await a.store.accept(wide(5000))).toMatchObject({ kind: 'won' });
    expect(a.commits).toHaveLength(1);
  });

  it('it is planned again on the clock of the store where it is older than that', async () => {
    const { a, later } = await driven();
    await following(a, 5000);
    a.between.beforeCommit = async () => later(5500);
    expect(await a.store.accept(wide(5000))).toMatchObject({ kind: 'won' });
    expect(a.commits).toHaveLength(2);
  });
});

describe('how often a look reads the text of a row that it has found', () => {
  it.each([true, false])('once, also where its plans run by sender (%s)', async (bySender) => {
    let reads = 0;
    let rows = 0;
    const counted = (row: Row): Row => {
      rows += 1;
      return {
        ...row,
        get data() {
          reads += 1;
          return row.data;
        },
      };
    };
    const { a } = await driven({
      of: (backend) => ({
        ...backend,
        bySender,
        due: async (request) => {
          const result = await backend.due(request);
          return { ...result, rows: result.rows.map(counted) };
        },
        registrations: {
          list: (request) => backend.registrations?.list(request) ?? expect.fail(),
          due: async (request) => {
            const result = (await backend.registrations?.due(request)) ?? expect.fail();
            return { ...result, rows: result.rows.map(counted) };
          },
        },
      }),
    });
    const { registrations = expect.fail() } = a.store;
    const senders = Array.from({ length: 8 }, (_, n) => `https://seller-${n}.example`);
    for (const [n, sender] of senders.entries()) {
      await a.store.accept({ ...acceptRequest({ key: key(n), task: `task-${n}` }), sender, mode: 'inbox' });
      await registrations.run(sender, (own) =>
        own.save({ kind: 'watch', sender, id: 'task', value: '', dueAt: 1, list: null, expiresAt: null }),
      );
    }
    const { retry } = acceptRequest();
    const asked = { owner: 'worker', max: 8, leaseMs: LEASE_MS, retry, retentionMs: RETENTION_MS, senders };
    expect((await a.inbox.lease(asked)).events).toHaveLength(8);
    expect((await registrations.due({ kind: 'watch', max: 8, holdMs: 1, senders })).rows).toHaveLength(8);
    expect(rows).toBeGreaterThan(16);
    expect(reads).toBe(rows);
  });
});
