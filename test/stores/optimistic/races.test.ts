import { describe, expect, it, vi } from 'vitest';
import type { AcceptRequest, AcceptResult } from '../../../src/stores/index.ts';
import type { Driven, Handle } from '../../support/driven.ts';
import { capped, driven, inbox, leaseRequest, recount, SENDER, status } from '../../support/driven.ts';
import type { Planted, PlantedName } from '../../support/planted.ts';
import { PLANTED } from '../../support/planted.ts';
import { acceptRequest, key, LEASE_MS, leaseOf, RETENTION_MS } from '../requests.ts';

const ends = { retentionMs: RETENTION_MS };
const retry = { attempts: 12, crashes: 5 };

/** A handle that knows its sender's counts: its next accept is planned by guesses alone. */
async function warm(handle: Handle, n: number): Promise<void> {
  await handle.store.accept(acceptRequest({ key: `warm-${n}` }));
  recount(handle);
}

const sameNonce = (request: AcceptRequest, of: AcceptRequest): AcceptRequest => ({
  ...request,
  ...(of.nonce && { nonce: of.nonce }),
});

function notified(request: AcceptRequest, notificationId: string): AcceptRequest {
  return { ...request, ...(request.event && { event: { ...request.event, notificationId } }) };
}

/** `b` acts when `a` has planned and nothing is compared yet. */
const RACES = {
  'two fresh inserts of one key': async ({ a, b }) => {
    await warm(a, 1);
    a.between.beforeCommit = async () => {
      expect(await b.store.accept(acceptRequest({ key: key(1) }))).toMatchObject({ kind: 'won' });
    };
    expect(await a.store.accept(acceptRequest({ key: key(1) }))).toMatchObject({ kind: 'in-flight' });
  },
  'a nonce that is bound to another event': async ({ a, b }) => {
    await warm(a, 1);
    const request = acceptRequest({ key: key(1) });
    a.between.beforeCommit = async () => {
      const other = sameNonce(acceptRequest({ key: key(2) }), request);
      expect(await b.store.accept(other)).toMatchObject({ kind: 'won' });
    };
    expect(await a.store.accept(request)).toMatchObject({ kind: 'replayed' });
    expect(await a.store.peek(SENDER, key(1))).toBe('absent');
  },
  'a new task that is leased': async ({ a, b }) => {
    await warm(a, 1);
    a.between.beforeCommit = async () => {
      expect(await b.store.accept(status(key(2), 'task', 2))).toMatchObject({ kind: 'won' });
    };
    expect(await a.store.accept(status(key(1), 'task', 1))).toMatchObject({ kind: 'task-busy' });
  },
  'a known, free task that is leased': async ({ a, b }) => {
    const first = status(key(1), 'task', 1);
    await a.store.accept(first);
    await a.store.complete({ ...leaseOf(first), ...ends });
    recount(a);
    a.between.beforeCommit = async () => {
      expect(await b.store.accept(status(key(2), 'task', 2))).toMatchObject({ kind: 'won' });
    };
    expect(await a.store.accept(status(key(3), 'task', 3))).toMatchObject({ kind: 'task-busy' });
    // It was known and not asked for: the guess was what was out of date.
    expect(a.loads).toHaveLength(0);
  },
  'a newer status that is completed': async ({ a, b }) => {
    const first = status(key(1), 'task', 1);
    await a.store.accept(first);
    await a.store.complete({ ...leaseOf(first), ...ends });
    const newer = status(key(3), 'task', 3);
    a.between.beforeCommit = async () => {
      expect(await b.store.accept(newer)).toMatchObject({ kind: 'won' });
      expect(await b.store.complete({ ...leaseOf(newer), ...ends })).toBe('done');
    };
    expect(await a.store.accept(status(key(2), 'task', 2))).toMatchObject({ kind: 'stale' });
  },
  'a record that is parked while its task is freed': async ({ a, b, later }) => {
    await a.store.accept(inbox(status(key(1), 'task', 1)));
    await a.inbox.lease(leaseRequest('worker'));
    a.between.beforeCommit = async () => {
      expect(await b.store.accept(inbox(status(key(2), 'task', 2)))).toMatchObject({ kind: 'queued' });
    };
    expect(await a.store.complete({ sender: SENDER, key: key(1), owner: 'worker', ...ends })).toBe('done');
    later(10);
    const { events } = await b.inbox.lease(leaseRequest('other'));
    expect(events.map((event) => event.key)).toEqual([key(2)]);
  },
  'two that are parked, both told in the end': async ({ a, b, later }) => {
    await a.store.accept(inbox(status(key(1), 'task', 1)));
    await a.inbox.lease(leaseRequest('w1'));
    await b.store.accept(inbox(status(key(2), 'task', 2)));
    await b.store.accept(inbox(status(key(3), 'task', 3)));
    for (const n of [1, 2, 3]) {
      expect(await a.store.complete({ sender: SENDER, key: key(n), owner: `w${n}`, ...ends })).toBe('done');
      later(10);
      const { events } = await a.inbox.lease(leaseRequest(`w${n + 1}`));
      expect(events.map((event) => event.key)).toEqual(n < 3 ? [key(n + 1)] : []);
    }
  },
  'a lease that is renewed while its task is taken over': async ({ a, b, later }) => {
    const first = status(key(1), 'task', 1);
    await b.store.accept(first);
    await warm(a, 1);
    let onward = (): void => {};
    const isPlanned = new Promise<void>((resolve) => {
      onward = resolve;
    });
    let answer: Promise<AcceptResult> | undefined;
    later(LEASE_MS - 20);
    // Planned while the lease is live, and on its way when it is over for the other one, which only reads the record.
    b.between.beforeCommit = async () => {
      later(40);
      answer = a.store.accept(status(key(2), 'task', 2));
      await isPlanned;
    };
    const renewing = b.store.renew({ ...leaseOf(first), leaseMs: 60_000 });
    a.between.beforeCommit = async () => {
      a.between.beforeCommit = async () => {
        onward();
        expect(await renewing).toBe('renewed');
      };
    };
    await renewing;
    expect(await answer).toMatchObject({ kind: 'task-busy' });
  },
  'a record that comes while its accept finds no place': async ({ a, b }) => {
    const limits = { maxRecordsPerSender: 1 };
    await a.store.accept(capped(acceptRequest({ key: key(1) }), limits));
    a.between.beforeCommit = async () => {
      expect(await b.store.accept(acceptRequest({ key: key(2) }))).toMatchObject({ kind: 'won' });
    };
    const answer = await a.store.accept(capped(acceptRequest({ key: key(2) }), limits));
    expect(answer).toMatchObject({ kind: 'in-flight' });
  },
  'a notification id that comes under another key': async ({ a, b }) => {
    await warm(a, 1);
    a.between.beforeCommit = async () => {
      await b.store.accept(notified(acceptRequest({ key: key(2) }), 'notification'));
    };
    const answer = await a.store.accept(notified(acceptRequest({ key: key(1) }), 'notification'));
    expect(answer).toMatchObject({ kind: 'won', reemission: true });
  },
  'a fast insert beside a plan that others have overtaken once': async ({ a, b }) => {
    await warm(a, 1);
    const request = notified(acceptRequest({ key: key(1) }), 'notification');
    a.between.beforeCommit = async () => {
      await b.store.accept(notified(acceptRequest({ key: key(2) }), 'notification'));
      a.between.beforeCommit = async () => {
        expect(await b.store.accept(acceptRequest({ key: key(1) }))).toMatchObject({ kind: 'won' });
      };
    };
    expect(await a.store.accept(request)).toMatchObject({ kind: 'in-flight' });
    expect(a.commits).toHaveLength(3);
  },
  'a delivery under whose way the lease before it runs out': async ({ a, later }) => {
    await a.store.accept(acceptRequest({ key: key(1) }));
    a.between.beforeCommit = async () => later(LEASE_MS + 1000);
    expect(await a.store.accept(acceptRequest({ key: key(1) }))).toMatchObject({ kind: 'won' });
  },
  'a load whose rows are taken before they are used': async ({ a, b }) => {
    const request = acceptRequest({ key: key(1) });
    await b.store.accept(request);
    await b.store.fail({ ...leaseOf(request), ...ends, permanent: false, retry, backoffMs: 0 });
    a.between.afterLoad = async () => {
      expect(await b.store.accept(acceptRequest({ key: key(1) }))).toMatchObject({ kind: 'won' });
    };
    // Found queued; discarded under a lease it would be gone while its handler runs.
    expect(await a.inbox.discard(SENDER, key(1), RETENTION_MS)).toBe('other');
  },
} satisfies Readonly<Record<string, (driven: Driven) => Promise<void>>>;

type Race = keyof typeof RACES;

describe('changes between plan and commit', () => {
  it.each(Object.entries(RACES))('%s', async (_is, race) => {
    await race(await driven());
  });
});

/** Each fault, and a race that shows it: a test that a fault passes is none. */
const SHOWN_BY: Readonly<Record<PlantedName, readonly Race[]>> = {
  'versions are not compared': [
    'two fresh inserts of one key',
    'a known, free task that is leased',
    'a newer status that is completed',
    'a load whose rows are taken before they are used',
  ],
  'rows that are only read are not compared': ['a lease that is renewed while its task is taken over'],
  'rows that have to be absent are not compared': [
    'two fresh inserts of one key',
    'a nonce that is bound to another event',
    'a new task that is leased',
    'a record that comes while its accept finds no place',
    'a notification id that comes under another key',
    'a fast insert beside a plan that others have overtaken once',
  ],
  'a known task is written without its version': [
    'a known, free task that is leased',
    'a newer status that is completed',
    'a record that is parked while its task is freed',
  ],
  'any clock is taken': ['a delivery under whose way the lease before it runs out'],
  'what waits for a task does not come with it': ['two that are parked, both told in the end'],
};

describe('these tests catch a faulty backend', () => {
  const pairs = (Object.keys(SHOWN_BY) as PlantedName[]).flatMap((fault) =>
    SHOWN_BY[fault].map((race) => [fault, race] as const),
  );
  it.each(pairs)('%s: %s', async (fault, race) => {
    const run = driven({ of: PLANTED[fault] }).then((handles) => RACES[race](handles));
    await expect(run).rejects.toThrow(/expected/);
  });
});

describe('versions', () => {
  /** A record whose lease and life are over 600 ms from now is purged, and its key comes again. */
  async function anotherLife({ a, b, later }: Driven): Promise<unknown> {
    const short = { leaseMs: 500, retentionMs: 100 };
    const first = { ...acceptRequest({ key: key(1) }), ...short };
    await a.store.accept(first);
    a.between.beforeCommit = async () => {
      later(600);
      expect(await b.store.sweep([{ sender: SENDER }])).toBe(1);
      expect(await b.store.accept({ ...acceptRequest({ key: key(1) }), ...short })).toMatchObject({
        kind: 'won',
      });
    };
    return a.store.complete({ ...leaseOf(first), ...ends });
  }

  it('are not reused, so that a purged and recreated row is another one', async () => {
    expect(await anotherLife(await driven())).toBe('lost');
  });

  it('if reused, let a former owner end a lease that is not its own', async () => {
    const random = vi.spyOn(globalThis.crypto, 'getRandomValues').mockImplementation((array) => {
      (array as Uint32Array).set([0, 1]);
      return array;
    });
    try {
      // Both begin with the same one.
      expect(await anotherLife(await driven())).toBe('done');
    } finally {
      random.mockRestore();
    }
  });
});

describe('durability of answers', () => {
  /**
   * Rows are seen as soon as they are written, and last once they are flushed.
   * @param isLazy a commit without writes waits for nothing.
   */
  function disk(isLazy: boolean): { readonly of: Planted; readonly flush: () => void } {
    const waiting: (() => void)[] = [];
    return {
      of: (backend) => ({
        ...backend,
        commit: async (request) => {
          const result = await backend.commit(request);
          const taken = request.units.filter((_, at) => !result.refused.includes(at));
          const isWritten = taken.some(({ writes }) => writes.length > 0);
          if (taken.length === 0 || (isLazy && !isWritten)) return result;
          await new Promise<void>((resolve) => waiting.push(resolve));
          return result;
        },
      }),
      flush: () => {
        for (const resolve of waiting.splice(0)) resolve();
      },
    };
  }

  async function replayedBeforeFlush(isLazy: boolean): Promise<readonly string[]> {
    const { of, flush } = disk(isLazy);
    const { a, b } = await driven({ of });
    const order: string[] = [];
    const request = inbox(acceptRequest({ key: key(1) }));
    const first = a.store.accept(request).then(({ kind }) => order.push(kind));
    for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    // The row is there for all to see, and lost if the power fails now.
    const again = b.store
      .accept({ ...request, acceptId: 'another delivery' })
      .then(({ kind }) => order.push(kind));
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    order.push('flush');
    flush();
    await Promise.all([first, again]);
    return order;
  }

  it('answers a duplicate only after its first copy is flushed', async () => {
    expect(await replayedBeforeFlush(false)).toEqual(['flush', 'queued', 'replayed']);
  });

  it('is missing in a backend that commits nothing when nothing is written, and this test notices', async () => {
    expect(await replayedBeforeFlush(true)).toEqual(['replayed', 'flush', 'queued']);
  });
});
