import { describe, expect, it } from 'vitest';
import { Fault } from '../../../src/index.ts';
import type { AcceptRequest } from '../../../src/stores/index.ts';
import type { Driven } from '../../support/driven.ts';
import { driven, inbox, leaseRequest, SENDER, status } from '../../support/driven.ts';
import { acceptRequest, key, leaseOf, RETENTION_MS } from '../requests.ts';

const ends = { retentionMs: RETENTION_MS };
const retry = { attempts: 12, crashes: 5 };
const inline = acceptRequest({ key: key(1), task: 'task' });
const queued = inbox(acceptRequest({ key: key(1) }));

function bare({ event: _event, ...request }: AcceptRequest): AcceptRequest {
  return request;
}

interface Case {
  readonly before?: (driven: Driven) => Promise<unknown>;
  readonly call: (driven: Driven) => Promise<unknown>;
  /** What the same call is told again. */
  readonly again: unknown;
}

const won = (driven: Driven): Promise<unknown> => driven.a.store.accept(inline);
const failing = (permanent: boolean) => ({ ...leaseOf(inline), ...ends, permanent, retry, backoffMs: 0 });
const dead = async (driven: Driven): Promise<unknown> => {
  await won(driven);
  return driven.a.store.fail(failing(true));
};

/** Every operation that writes. What was written before its reply was lost, the repetition is told as it was. */
const CASES: Readonly<Record<string, Case>> = {
  'accept, won': {
    call: won,
    again: { kind: 'won', lease: { owner: inline.acceptId, run: 1, chargedAttempts: 1 } },
  },
  'accept, queued': { call: ({ a }) => a.store.accept(queued), again: { kind: 'queued', changed: false } },
  'accept, burned': { call: ({ a }) => a.store.accept(bare(inline)), again: { kind: 'burned' } },
  'accept, stale': {
    before: async ({ a }) => {
      const newer = status(key(2), 'task', 2);
      await a.store.accept(newer);
      await a.store.complete({ ...leaseOf(newer), ...ends });
    },
    call: ({ a }) =>
      a.store.accept({
        ...status(key(3), 'task', 1),
        acceptId: 'the same',
        nonce: { keyid: 'kid', nonce: 'n', nowMs: 0, expiresAtMs: 360_000 },
      }),
    again: { kind: 'stale', changed: false },
  },
  'accept, of a finished event': {
    before: async (driven) => {
      await won(driven);
      await driven.a.store.complete({ ...leaseOf(inline), ...ends });
    },
    call: ({ a }) =>
      a.store.accept({
        ...inline,
        acceptId: 'another',
        nonce: { keyid: 'kid', nonce: 'n', nowMs: 0, expiresAtMs: 360_000 },
      }),
    again: { kind: 'done', state: 'applied' },
  },
  complete: {
    before: won,
    call: ({ a }) => a.store.complete({ ...leaseOf(inline), ...ends }),
    again: 'done',
  },
  'fail, to be tried again': { before: won, call: ({ a }) => a.store.fail(failing(false)), again: 'queued' },
  'fail, for good': { before: won, call: ({ a }) => a.store.fail(failing(true)), again: 'dead' },
  renew: {
    before: won,
    call: ({ a }) => a.store.renew({ ...leaseOf(inline), leaseMs: 8000 }),
    again: 'renewed',
  },
  // It is QUEUED by then, and no more DEAD: an operator sees that.
  redrive: { before: dead, call: ({ a }) => a.inbox.redrive(SENDER, key(1)), again: 'other' },
  discard: { before: dead, call: ({ a }) => a.inbox.discard(SENDER, key(1), RETENTION_MS), again: 'other' },
};

describe('a commit whose reply was lost', () => {
  it.each(Object.entries(CASES))('%s', async (_is, { before, call, again }) => {
    const handles = await driven();
    await handles.a.store.accept(acceptRequest({ key: 'warm' }));
    await before?.(handles);
    // A duplicate is found by the first commit, and answered on the second.
    const lose = (): void => {
      handles.a.between.afterCommit = async ({ refused }) => {
        if (refused.length > 0) return lose();
        throw new Fault('store_unavailable', 'the reply is lost');
      };
    };
    lose();
    await expect(call(handles)).rejects.toThrow('the reply is lost');
    const told = await call(handles);
    if (typeof again === 'object') expect(told).toMatchObject(again as object);
    else expect(told).toBe(again);
  });

  it('lease: a lease that the same worker finds expired counts as neither a crash nor an attempt', async () => {
    const { a, later } = await driven();
    await a.store.accept(queued);
    a.between.afterCommit = async () => {
      throw new Fault('store_unavailable', 'the reply is lost');
    };
    await expect(a.inbox.lease(leaseRequest('worker'))).rejects.toThrow('the reply is lost');
    later(9000);
    const { events } = await a.inbox.lease(leaseRequest('worker'));
    expect(events.map(({ lease }) => lease)).toEqual([{ owner: 'worker', run: 2, chargedAttempts: 1 }]);
    expect(await a.inbox.inspect(SENDER, key(1))).toMatchObject({ crashes: 0, attempts: 1 });
  });

  it('a commit that never reached the backend is made by the repeated call', async () => {
    const { a, b } = await driven();
    await a.store.accept(acceptRequest({ key: 'warm' }));
    a.between.beforeCommit = async () => {
      throw new Fault('store_unavailable', 'no connection');
    };
    await expect(a.store.accept(inline)).rejects.toThrow('no connection');
    expect(await b.store.peek(SENDER, key(1))).toBe('absent');
    expect(await a.store.accept(inline)).toMatchObject({ kind: 'won', lease: { chargedAttempts: 1 } });
  });

  it('a load whose reply was lost changes nothing', async () => {
    const { a } = await driven();
    await a.store.accept(inline);
    a.between.afterLoad = async () => {
      throw new Fault('store_unavailable', 'the reply is lost');
    };
    await expect(a.store.peek(SENDER, key(2))).rejects.toThrow('the reply is lost');
    expect(await a.store.peek(SENDER, key(2))).toBe('absent');
  });
});

describe('a call that conflicts again and again', () => {
  it('fails with store_unavailable after a bounded number of plans and may be repeated', async () => {
    const { a, b } = await driven();
    const request = status(key(1), 'task', 1);
    await a.store.accept(acceptRequest({ key: 'warm' }));
    let conflicts = 0;
    const inTheWay = async (): Promise<void> => {
      conflicts += 1;
      // It holds the task, and gives it up again: each writes its row.
      const other = status(`other-${conflicts}`, 'task', 0);
      await b.store.accept(other);
      await b.store.fail({ ...leaseOf(other), ...ends, permanent: false, retry, backoffMs: 0 });
      a.between.beforeCommit = inTheWay;
    };
    a.between.beforeCommit = inTheWay;
    await expect(a.store.accept(request)).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(conflicts).toBe(96);
    a.between.beforeCommit = undefined;
    expect(await a.store.accept(request)).toMatchObject({ kind: 'won', lease: { chargedAttempts: 1 } });
  });

  it('plans again without counting a conflict when only the clock has moved on', async () => {
    const { a, later } = await driven();
    await a.store.accept(acceptRequest({ key: 'warm' }));
    a.between.beforeCommit = async () => later(5000);
    expect(await a.store.accept(inline)).toMatchObject({ kind: 'won' });
    expect(a.commits.slice(-2).map(({ at }) => at)).toEqual([expect.any(Number), expect.any(Number)]);
    const [old, fresh] = a.commits.slice(-2);
    expect((fresh?.at ?? 0) - (old?.at ?? 0)).toBeGreaterThanOrEqual(5000);
  });
});
