import { describe, expect, it } from 'vitest';
import { Fault } from '../../../src/index.ts';
import type { AcceptRequest } from '../../../src/stores/index.ts';
import { type Backend, storeOf } from '../../../src/stores/index.ts';
import { capped, driven, inbox, leaseRequest, recount, SENDER, status } from '../../support/driven.ts';
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

  it('do not refuse an accept because of rows that are not written in the end', async () => {
    const { a, b } = await driven({ of: (backend) => ({ ...backend, concurrency: 1 }) });
    const limits = { maxRecordsPerSender: 1 };
    const first = capped(acceptRequest({ key: key(1) }), limits);
    const second = capped(acceptRequest({ key: key(2) }), limits);
    const { event: _event, ...bare } = first;
    const burn = async (accept: AcceptRequest): Promise<void> => {
      expect(await b.store.accept(accept)).toMatchObject({ kind: 'burned' });
    };
    // Another nonce: the counts have changed, and all of it is planned again, what has expired being swept by then.
    a.between.beforeCommit = async () => {
      await burn({ ...bare, ...(bare.nonce && { nonce: { ...bare.nonce, nonce: 'other' } }) });
      // The first one's: it is replayed, and takes no room.
      a.between.beforeCommit = () => burn({ ...bare, acceptId: 'other' });
    };
    const answers = await Promise.all([a.store.accept(first), a.store.accept(second)]);
    expect(answers.map(({ kind }) => kind)).toEqual(['replayed', 'won']);
  });

  it('do not give away room under a cap before the completion that makes it is written', async () => {
    const { a, b } = await driven({ of: (backend) => ({ ...backend, concurrency: 1 }) });
    const limits = { maxPendingBytesPerSender: 30 };
    const first = capped(acceptRequest({ key: key(1) }), limits);
    await a.store.accept(first);
    // Another process ends it; between plan and commit its lease is given back.
    b.between.beforeCommit = async () => {
      const retry = { attempts: 12, crashes: 5 };
      const how = { ...leaseOf(first), ...ends, permanent: false, retry, backoffMs: 0 };
      expect(await a.store.fail(how)).toBe('queued');
    };
    const [ended, came] = await Promise.all([
      b.store.complete({ ...leaseOf(first), ...ends }),
      b.store.accept(capped(acceptRequest({ key: key(2) }), limits)),
    ]);
    expect([ended, came.kind]).toEqual(['lost', 'over-cap']);
  });

  it('do not conflict with other accepts of the sender between 80 % of a cap and the cap', async () => {
    const { a, b } = await driven();
    const limits = { maxRecordsPerSender: 1_000_000, maxPendingBytesPerSender: 80_000_000 };
    await a.store.accept(capped(acceptRequest({ key: key(1) }), limits));
    recount(a);
    a.between.beforeCommit = async () => {
      await b.store.accept(capped(acceptRequest({ key: key(2) }), limits));
    };
    expect(await a.store.accept(capped(acceptRequest({ key: key(3) }), limits))).toMatchObject({
      kind: 'won',
    });
    expect(a.commits).toHaveLength(1);
  });
});
