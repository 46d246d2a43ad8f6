import { describe, expect, it } from 'vitest';
import { Fault } from '../../../src/index.ts';
import {
  type AcceptRequest,
  type AcceptResult,
  type Backend,
  type LoadResult,
  storeOf,
} from '../../../src/stores/index.ts';
import {
  capped,
  driven,
  type Handle,
  inbox,
  leaseRequest,
  recount,
  SENDER,
  status,
} from '../../support/driven.ts';
import { keptRows, rowBackend } from '../../support/row-backend.ts';
import { acceptRequest, key, leaseOf, RETENTION_MS } from '../requests.ts';

const ends = { retentionMs: RETENTION_MS };
const down = new Fault('store_unavailable', 'down');

describe('a failing backend', () => {
  it.each(['commit', 'load'] as const)(
    'fails its calls when %s throws instead of rejecting',
    async (method) => {
      const backend = rowBackend(keptRows(), Date.now);
      let isDown = false;
      const calls: Pick<Backend, 'commit' | 'load'> = {
        commit: (request) => {
          if (isDown) throw down;
          return backend.commit(request);
        },
        load: (request) => {
          if (isDown) throw down;
          return backend.load(request);
        },
      };
      const store = storeOf(
        { ...backend, [method]: calls[method] },
        { clockOffsetMs: () => 0, random: () => 0 },
      );
      await store.open();
      await store.accept(acceptRequest({ key: key(1) }));
      isDown = true;
      const call =
        method === 'commit' ? store.accept(acceptRequest({ key: key(2) })) : store.peek(SENDER, key(3));
      await expect(call).rejects.toThrow('down');
      isDown = false;
      expect(await store.accept(acceptRequest({ key: key(4) }))).toMatchObject({ kind: 'won' });
      await store.close();
    },
  );

  it('fails only the calls that need a row which cannot be read', async () => {
    const { a, b, kept } = await driven();
    await a.store.accept(acceptRequest({ key: key(1) }));
    for (const [name, row] of kept.rows)
      if (row.kind === 'record') kept.rows.set(name, { ...row, data: '{' });
    await expect(b.store.peek(SENDER, key(1))).rejects.toThrow(SyntaxError);
    expect(await b.store.accept(acceptRequest({ key: key(2) }))).toMatchObject({ kind: 'won' });
    await b.store.close();
  });

  it('fails only the call whose row is unreadable, also in a batch of one task', async () => {
    const { a } = await driven({
      of: (backend) => ({
        ...backend,
        concurrency: 1,
        isAboutOne: () => true,
        commit: async (request) => {
          const isBad = request.units.some(({ writes }) => writes.some(({ id }) => id === 'bad'));
          if (isBad) throw down;
          return backend.commit(request);
        },
      }),
    });
    for (const task of [undefined, 'task']) {
      const many = ['one', 'bad', 'two'].map((name) =>
        acceptRequest({ key: name === 'bad' ? name : `${name}-${task}`, ...(task && { task }) }),
      );
      const answers = await Promise.allSettled(many.map((request) => a.store.accept(request)));
      expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    }
  });

  it('tells a worker that nothing could be leased, not that nothing is due', async () => {
    const { a } = await driven();
    await a.store.accept(inbox(acceptRequest({ key: key(1) })));
    a.between.beforeCommit = async () => {
      throw down;
    };
    await expect(a.inbox.lease(leaseRequest('worker'))).rejects.toThrow('down');
  });

  it('tells a worker what went stale, though the next query for due events fails', async () => {
    let queries = 0;
    const { a } = await driven({
      of: (backend) => ({
        ...backend,
        due: (request) => {
          queries += 1;
          return queries === 1 ? backend.due(request) : Promise.reject(down);
        },
      }),
    });
    const keepingEnd = ({ event, ...request }: AcceptRequest): AcceptRequest => ({
      ...inbox(request),
      ...(event?.task && {
        event: { ...event, terminalHash: 'end', task: { ...event.task, keepsEnd: true } },
      }),
    });
    // It came before the end of its task, but is newer.
    await a.store.accept(keepingEnd(status(key(1), 'task', 2)));
    await a.store.accept(keepingEnd(status(key(2), 'task', 1, true)));
    const { events, stale } = await a.inbox.lease(leaseRequest('worker', 2));
    expect({ events, stale, queries }).toEqual({
      events: [],
      stale: [{ sender: SENDER, key: key(1) }],
      queries: 2,
    });
  });

  it('does not delay calls when a sweep fails', async () => {
    let sweeps = 0;
    const { a } = await driven({
      of: (backend) => ({
        ...backend,
        sweep: async () => {
          sweeps += 1;
          throw down;
        },
      }),
    });
    const many = Array.from({ length: 64 }, (_, n) => ({
      ...acceptRequest({ key: key(n), sender: `https://${n}.example/mcp` }),
    }));
    await Promise.all(many.map((request) => a.store.accept(request)));
    await a.store.accept(acceptRequest({ key: key(65) }));
    // One a batch.
    expect(sweeps).toBe(2);
  });

  it('rejects with a fault when the clock cannot be read at the start', async () => {
    const backend = rowBackend(keptRows(), Date.now);
    const store = storeOf(
      {
        ...backend,
        clock: async () => {
          throw new TypeError('no connection');
        },
        asFault: () => down,
      },
      { clockOffsetMs: () => 0, random: () => 0 },
    );
    await expect(store.open()).rejects.toBe(down);
    await store.close();
  });
});

describe('close', () => {
  it('waits for running calls, also when it is called twice', async () => {
    const { a } = await driven();
    const order: string[] = [];
    let letGo = (): void => {};
    const held = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    a.between.beforeCommit = () => held;
    const call = a.store.accept(acceptRequest({ key: key(1) })).then(() => order.push('accepted'));
    await new Promise((resolve) => setImmediate(resolve));
    const closes = [1, 2].map((nth) => a.store.close().then(() => order.push(`close ${nth}`)));
    await new Promise((resolve) => setImmediate(resolve));
    expect(order).toEqual([]);
    letGo();
    await Promise.all([call, ...closes]);
    expect(order[0]).toBe('accepted');
    await expect(a.store.accept(acceptRequest({ key: key(2) }))).rejects.toThrow('closed');
  });

  it('waits for an open() that has not finished', async () => {
    const order: string[] = [];
    let letGo = (): void => {};
    const backend = rowBackend(keptRows(), Date.now);
    const store = storeOf(
      {
        ...backend,
        open: () =>
          new Promise<void>((resolve) => {
            letGo = () => {
              order.push('opened');
              resolve();
            };
          }),
        close: async () => void order.push('released'),
      },
      { clockOffsetMs: () => 0, random: () => 0 },
    );
    const opening = store.open();
    const closing = store.close();
    letGo();
    await expect(opening).rejects.toThrow('closed');
    await closing;
    expect(order).toEqual(['opened', 'released']);
  });
});

describe('retries of a batch', () => {
  it('go on as long as each round answers one of the calls', async () => {
    const { a, later } = await driven({ of: (backend) => ({ ...backend, concurrency: 1 }) });
    // Queued before their task was held, 40 are not parked; each that is discarded wakes another one, which is.
    for (let n = 0; n < 41; n += 1) await a.store.accept(inbox(status(key(n), 'task', n)));
    const [holder] = (await a.inbox.lease(leaseRequest('worker'))).events;
    for (let n = 41; n < 120; n += 1) {
      later(1);
      await a.store.accept(inbox(status(key(n), 'task', n)));
    }
    const free = Array.from({ length: 41 }, (_, n) => key(n)).filter((name) => name !== holder?.key);
    const answers = await Promise.all(free.map((name) => a.inbox.discard(SENDER, name, RETENTION_MS)));
    expect(new Set(answers)).toEqual(new Set(['discarded']));
  });

  it('tell the event that has waited longest for a task that it is free, whatever else the batch asks', async () => {
    const { a, b, later } = await driven({ of: (backend) => ({ ...backend, concurrency: 1 }) });
    const holder = inbox(status('holder', 'task', 0));
    await a.store.accept(holder);
    await a.inbox.lease(leaseRequest('worker'));
    for (let n = 1; n <= 4; n += 1) {
      later(5);
      await a.store.accept(inbox(status(key(n), 'task', n)));
    }
    await b.store.accept(acceptRequest({ key: key(9) }));
    // In one batch: the newest one by its name, and the end that wakes one.
    await Promise.all([
      b.store.accept(inbox(status(key(4), 'task', 4))),
      b.store.complete({ sender: SENDER, key: 'holder', owner: 'worker', ...ends }),
    ]);
    later(10);
    const { events } = await b.inbox.lease(leaseRequest('other', 4));
    expect(events.map((event) => event.key)).toEqual([key(1)]);
  });

  it('read no counts while a cap is far, though over 80 % of it is used, and sweep for the alarm every 10 s', async () => {
    const limits = { maxRecordsPerSender: 1_000_000 };
    const many = <R extends LoadResult>(result: R): R => ({
      ...result,
      counts: result.counts.map((count) =>
        count.scope.keyid === undefined ? { ...count, rows: count.rows + 900_000 } : count,
      ),
    });
    const { a, b, later } = await driven({
      of: (backend) => ({
        ...backend,
        load: async (request) => many(await backend.load(request)),
        commit: async (request) => many(await backend.commit(request)),
      }),
    });
    const accepted = async (n: number): Promise<readonly [number, readonly string[]]> => {
      recount(a);
      const { pressure } = await a.store.accept(capped(acceptRequest({ key: key(n) }), limits));
      expect(a.commits).toHaveLength(1);
      return [a.loads.length, pressure];
    };
    expect((await accepted(1))[1]).toEqual(['records']);
    a.between.beforeCommit = async () => {
      await b.store.accept(capped(acceptRequest({ key: key(2) }), limits));
    };
    for (let n = 3; n < 6; n += 1) expect(await accepted(n)).toEqual([0, ['records']]);
    later(10_000);
    for (const [n, loads] of [
      [6, 1],
      [7, 0],
    ] as const)
      expect(await accepted(n)).toEqual([loads, ['records']]);
  });

  it('of two processes exceed a cap at most by what both have under way, and not at all once it is reached', async () => {
    const { kept, a, b } = await driven({ of: (backend) => ({ ...backend, concurrency: 1 }) });
    const limits = { maxRecordsPerSender: 10 };
    const accepts = (handle: Handle, from: number, many: number): Promise<AcceptResult>[] =>
      Array.from({ length: many }, (_, n) =>
        handle.store.accept(capped(acceptRequest({ key: key(from + n) }), limits)),
      );
    const records = (): number => [...kept.rows.values()].filter(({ kind }) => kind === 'record').length;
    for (let n = 0; n < 9; n += 1) await Promise.all(accepts(a, n, 1));
    // Both have counted and planned before one of them commits.
    const both = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
    const together = (own: 0 | 1) => async (): Promise<void> => {
      both[own].resolve();
      await both[1 - own]?.promise;
    };
    a.between.beforeCommit = together(0);
    b.between.beforeCommit = together(1);
    const answers = await Promise.all([...accepts(a, 100, 5), ...accepts(b, 200, 3)]);
    expect(answers.map(({ kind }) => kind)).toEqual(Array(8).fill('won'));
    expect(records()).toBe(9 + 5 + 3);
    const later = await Promise.all([...accepts(a, 300, 5), ...accepts(b, 400, 3)]);
    expect(later.map(({ kind }) => kind)).toEqual(Array(8).fill('over-cap'));
    expect(records()).toBe(9 + 5 + 3);
  });

  it('are not refused by a count that is old: it is read again first', async () => {
    const { a, b } = await driven();
    const limits = { maxPendingBytesPerSender: 30 };
    const first = capped(acceptRequest({ key: key(1) }), limits);
    await a.store.accept(first);
    expect(await a.store.accept(capped(acceptRequest({ key: key(2) }), limits))).toMatchObject({
      kind: 'over-cap',
    });
    expect(await b.store.complete({ ...leaseOf(first), ...ends })).toBe('done');
    recount(a);
    expect(await a.store.accept(capped(acceptRequest({ key: key(3) }), limits))).toMatchObject({
      kind: 'won',
    });
    expect(a.loads.map(({ counts }) => counts.length > 0)).toContain(true);
  });

  it('are not refused for what another accept of the batch does not write in the end', async () => {
    const { a, b } = await driven({ of: (backend) => ({ ...backend, concurrency: 1 }) });
    const limits = { maxRecordsPerSender: 1 };
    const first = capped(acceptRequest({ key: key(1) }), limits);
    const { event: _event, ...bare } = first;
    // The first one's nonce: it is replayed, and takes no room.
    a.between.beforeCommit = async () => {
      expect(await b.store.accept({ ...bare, acceptId: 'other' })).toMatchObject({ kind: 'burned' });
    };
    const second = capped(acceptRequest({ key: key(2) }), limits);
    const answers = await Promise.all([a.store.accept(first), a.store.accept(second)]);
    expect(answers.map(({ kind }) => kind)).toEqual(['replayed', 'won']);
  });

  it('count right in a process that has just started', async () => {
    const { a, b } = await driven();
    const limits = { maxRecordsPerSender: 2 };
    for (const n of [1, 2]) await a.store.accept(capped(acceptRequest({ key: key(n) }), limits));
    await a.store.close();
    const answer = await b.store.accept(capped(acceptRequest({ key: key(3) }), limits));
    expect(answer).toMatchObject({ kind: 'over-cap', limit: 'records' });
  });
});
