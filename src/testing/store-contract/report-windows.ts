// Cases of the store contract: the report windows (days that a report covers) in the row of a media buy (owed.md §3,
// §7; told.md §1.1).
// Called by `describeStoreContract` for stores with registrations.
import assert from 'node:assert/strict';
import type { ClaimedWindow, Store } from '../../stores/store.ts';
import { count } from '../../windows/runs.ts';
import { emptyStream, hadIn, type Stream, streamIn, streamText } from '../../windows/stream.ts';
import { inboxOf, key, lease, leaseOne } from './inbox-kit.ts';
import { type Cases, DAY_MS, type Draft, type Kit, LEASE_MS, SENDER } from './kit.ts';
import { registrationsOf } from './registration-rows.ts';

/** The media buy whose row `follow` creates by default. */
export const BUY = 'mb_1';
const PULL = { report: BUY, isPulled: true, mode: 'inbox', nonce: null } as const;

/**
 * Returns the three days before today, and today, by the store's clock. Each day is a number of days since 1 January
 * 1970.
 */
export const daysOf = async ({ a }: Kit): Promise<readonly [number, number, number, number]> => {
  const today = await registrationsOf(a).run(SENDER, (_rows, now) => Math.floor(now / DAY_MS));
  return [today - 3, today - 2, today - 1, today];
};

/** Creates the row of a media buy that reports daily. */
export async function follow(kit: Kit, id: string = BUY): Promise<void> {
  const [first] = await daysOf(kit);
  const spans = [{ start: first * DAY_MS, end: Infinity }];
  const terms: Stream['terms'] = [{ from: first * DAY_MS, frequency: 'daily', spans }];
  await registrationsOf(kit.a).run(SENDER, (rows) => {
    const value = streamText({ ...emptyStream(id), terms });
    rows.save({ kind: 'stream', sender: SENDER, id, value, dueAt: null, list: null, expiresAt: null });
  });
}

/**
 * Creates the rows of two media buys whose seller was given one webhook URL for both. @returns the parts of that URL.
 */
async function followTold(kit: Kit): Promise<{ readonly base: string; readonly route: string }> {
  await follow(kit);
  const url = { base: 'https://buyer.example/webhooks', route: 'p' };
  const told: Stream['told'] = [{ ...url, channel: 'reports', scheme: 'signature', at: 0 }];
  await registrationsOf(kit.a).run(SENDER, (rows) => {
    for (const id of [BUY, 'mb_2']) {
      const row = rows.get('stream', id);
      const value = streamText({ ...(row ? streamIn(row.value) : emptyStream(id)), told });
      rows.save({ kind: 'stream', sender: SENDER, id, value, dueAt: null, list: null, expiresAt: null });
    }
  });
  return url;
}

async function streamOf(store: Store, id = BUY): Promise<Stream> {
  const row = await registrationsOf(store).run(SENDER, (rows) => rows.get('stream', id));
  assert.ok(row, 'there is an account of the media buy');
  return streamIn(row.value);
}

/** Returns the number of days for which a report was completed. */
export const hadDays = async (store: Store, id: string = BUY): Promise<number> =>
  count(hadIn(await streamOf(store, id), 'daily'));
const claimsOf = async (store: Store, id = BUY): Promise<readonly string[]> =>
  (await streamOf(store, id)).claims.map((claim) => claim.key);
const stateOf = (store: Store, of: string): Promise<string | undefined> =>
  registrationsOf(store).run(SENDER, (rows) => rows.eventState(of));

const repeated = (windows: readonly ClaimedWindow[] | undefined): boolean | undefined =>
  windows?.[0]?.isRepeated ?? (windows ? false : undefined);

/**
 * Cases of report windows (days that a report covers). They are saved in the same transaction that inserts or completes
 * the event of the report (owed.md §3).
 */
export const reportWindowCases: Cases = {
  'a report claims its window when it is inserted, and has it when it is completed': async (kit) => {
    await follow(kit);
    const [day] = await daysOf(kit);
    const { lease: held, windows } = await kit.win({ report: BUY, days: [day] });
    const period = { start: day * DAY_MS, end: (day + 1) * DAY_MS };
    assert.deepEqual(windows, [{ id: BUY, period }]);
    assert.equal((await claimsOf(kit.b)).length, 1);
    assert.equal(await hadDays(kit.b), 0);
    assert.equal(await kit.complete(held.owner), 'done');
    assert.deepEqual(await claimsOf(kit.b), []);
    assert.equal(await hadDays(kit.b), 1);
  },
  'so does one in inbox mode, whose worker is given the window': async (kit) => {
    await follow(kit);
    const [day] = await daysOf(kit);
    await kit.accept({ mode: 'inbox', report: BUY, days: [day] });
    assert.equal(await hadDays(kit.b), 0);
    const event = await leaseOne(kit);
    assert.equal(event.windows?.[0]?.period?.start, day * DAY_MS);
    assert.equal(await kit.complete(event.lease.owner), 'done');
    assert.equal(await hadDays(kit.b), 1);
  },
  'a duplicate claims nothing anew, and a retry is given the same': async (kit) => {
    await follow(kit);
    const [day] = await daysOf(kit);
    const first = await kit.win({ report: BUY, days: [day] });
    await kit.fail(first.lease.owner);
    const again = await kit.win({ report: BUY, days: [day] });
    assert.deepEqual(again.windows, first.windows);
    assert.equal((await claimsOf(kit.b)).length, 1);
  },
  'several media buys of one report are claimed and completed together': async (kit) => {
    await follow(kit, 'mb_1');
    await follow(kit, 'mb_2');
    const [day] = await daysOf(kit);
    const { lease: held } = await kit.win({ report: 'mb_1,mb_2', days: [day] });
    await kit.complete(held.owner);
    assert.deepEqual([await hadDays(kit.b, 'mb_1'), await hadDays(kit.b, 'mb_2')], [1, 1]);
  },
  'a hundred media buys of one report, too': async (kit) => {
    const ids = Array.from({ length: 100 }, (_, at) => `mb_${at}`);
    for (const id of ids) await follow(kit, id);
    const [day] = await daysOf(kit);
    const { lease: held } = await kit.win({ report: ids.join(','), days: [day] });
    await kit.complete(held.owner);
    for (const id of ids) assert.equal(await hadDays(kit.b, id), 1);
  },
  'an account with many claims is read in one step by another process, and a report of all their windows is taken':
    async (kit) => {
      const ids = Array.from({ length: 120 }, (_, at) => `mb_${at}`);
      const [day] = await daysOf(kit);
      await follow(kit, BUY);
      for (const [at, id] of ids.entries()) {
        await follow(kit, id);
        await kit.win({ key: key(at), report: id, days: [day] });
      }
      await registrationsOf(kit.a).run(SENDER, (rows) => {
        const row = rows.get('stream', BUY);
        assert.ok(row);
        const claims = ids.map((_, at) => ({
          frequency: 'daily' as const,
          number: day - at,
          stage: '',
          key: key(at),
        }));
        rows.save({ ...row, value: streamText({ ...streamIn(row.value), claims }) });
      });
      const states = await registrationsOf(kit.b).run(SENDER, (rows) => {
        const row = rows.get('stream', BUY);
        assert.ok(row);
        return streamIn(row.value).claims.map((claim) => rows.eventState(claim.key));
      });
      assert.deepEqual([...new Set(states)], ['unsafe']);
      const all = await kit.accept({ key: key(500), report: ids.join(','), days: [day] }, kit.b);
      assert.equal(all.kind, 'won');
    },
  'a report of a window that came before says so, whether that is done or not; a correction does not': async (
    kit,
  ) => {
    await follow(kit);
    const [day] = await daysOf(kit);
    const claim = async (n: number, draft: Draft = {}): Promise<boolean | undefined> => {
      const { windows, lease: held } = await kit.win({ key: key(n), report: BUY, days: [day], ...draft });
      if (n !== 1) await kit.complete(held.owner, { key: key(n) });
      return repeated(windows);
    };
    assert.equal(await claim(1), false);
    assert.equal(await claim(2), true);
    assert.equal(await claim(3), true);
    assert.equal(await claim(4, { isRevision: true }), false);
    assert.equal(await claim(5, { stage: 'c3' }), false);
    assert.equal(await claim(6, { stage: 'c3' }), true);
  },
  'a pulled report is a duplicate where its window is had, or is about to be': async (kit) => {
    await follow(kit);
    const [first, second, third] = await daysOf(kit);
    await kit.apply({ key: key(1), report: BUY, days: [first] });
    await kit.win({ key: key(2), report: BUY, days: [second] });
    assert.equal((await kit.accept({ ...PULL, key: key(3), days: [first] }, kit.b)).kind, 'done');
    assert.equal((await kit.accept({ ...PULL, key: key(4), days: [second] }, kit.b)).kind, 'done');
    assert.equal((await kit.accept({ ...PULL, key: key(5), days: [third] }, kit.b)).kind, 'queued');
    assert.equal((await kit.accept({ ...PULL, key: key(6), days: [third] })).kind, 'done');
  },
  'a final report, and a terminal status, are noted in the step that inserts the report; of no media buy but theirs':
    async (kit) => {
      await follow(kit, 'mb_1');
      await follow(kit, 'mb_2');
      const [first, second] = await daysOf(kit);
      const saidOf = async (id: string) => {
        const { final, endSaid, changedAt } = await streamOf(kit.b, id);
        return { final, ends: endSaid, isAsked: changedAt !== undefined };
      };
      const nothing = { final: undefined, ends: undefined, isAsked: false };
      await kit.win({ key: key(1), report: 'mb_1', days: [first] });
      assert.deepEqual(await saidOf('mb_1'), nothing);
      await kit.win({ key: key(2), report: 'mb_1', days: [second], ending: 'canceled' });
      const canceled = { status: 'canceled', at: (second + 1) * DAY_MS - 1000 };
      assert.deepEqual(await saidOf('mb_1'), { final: undefined, ends: canceled, isAsked: true });
      assert.deepEqual(await saidOf('mb_2'), nothing);
      // This report has no readable period for its two media buys, and no row exists for `mb_3`.
      await kit.win({ key: key(3), report: 'mb_2,mb_3', days: [], final: true });
      const { final, ends, isAsked } = await saidOf('mb_2');
      assert.deepEqual([final, ends?.status, isAsked], ['received', 'completed', true]);
      const strange = await registrationsOf(kit.a).run(SENDER, (rows) => rows.get('stream', 'mb_3'));
      assert.equal(strange, undefined);
    },
  'of a pull and a webhook at once the pull stands back, or the webhook is told that it repeats': async (
    kit,
  ) => {
    await follow(kit);
    const [day] = await daysOf(kit);
    const webhook = kit.accept({ key: key(1), report: BUY, days: [day] });
    const pull = kit.accept({ ...PULL, key: key(2), days: [day] }, kit.b);
    const [came, pulled] = await Promise.all([webhook, pull]);
    assert.equal(came.kind, 'won');
    if (came.kind !== 'won') return;
    assert.equal(repeated(came.windows), pulled.kind === 'queued');
    assert.ok(['queued', 'done'].includes(pulled.kind));
  },
  'a claim of an event that is gone before it was done counts for nothing': async (kit) => {
    await follow(kit);
    const [day] = await daysOf(kit);
    const lost = await kit.win({ key: key(1), report: BUY, days: [day], retentionMs: 60_000 });
    await kit.fail(lost.lease.owner, { key: key(1), retentionMs: 60_000 });
    assert.equal(await stateOf(kit.b, key(1)), 'unsafe');
    kit.advance(61_000);
    assert.equal(await stateOf(kit.b, key(1)), undefined);
    assert.equal((await kit.accept({ ...PULL, key: key(2), days: [day] })).kind, 'queued');
    assert.deepEqual(await claimsOf(kit.b), [key(2)]);
  },
  'a DEAD event holds its window; once it is discarded, the window is pulled': async (kit) => {
    await follow(kit);
    const [day] = await daysOf(kit);
    const first = await kit.win({ key: key(1), report: BUY, days: [day] });
    await kit.fail(first.lease.owner, { key: key(1), permanent: true });
    assert.equal(await stateOf(kit.b, key(1)), 'dead');
    assert.equal((await kit.accept({ ...PULL, key: key(2), days: [day] })).kind, 'done');
    await inboxOf(kit.a).discard(SENDER, key(1), DAY_MS);
    assert.equal((await kit.accept({ ...PULL, key: key(3), days: [day] })).kind, 'queued');
  },
  'an event that is not acknowledged can be made safe, and a worker then has it; others stay as they are':
    async (kit) => {
      await follow(kit);
      const [day] = await daysOf(kit);
      const first = await kit.win({ key: key(1), report: BUY, days: [day] });
      await kit.fail(first.lease.owner, { key: key(1), backoffMs: 0 });
      assert.equal((await lease(kit)).events.length, 0);
      const acknowledge = (of: string): Promise<void> =>
        registrationsOf(kit.a).run(SENDER, (rows) => rows.acknowledge(of));
      await acknowledge('an-event-that-nobody-knows');
      await acknowledge(key(1));
      assert.equal(await stateOf(kit.b, key(1)), 'safe');
      kit.advance(LEASE_MS);
      const event = await leaseOne(kit);
      await kit.complete(event.lease.owner, { key: key(1) });
      assert.equal(await stateOf(kit.b, key(1)), 'done');
      assert.equal(await hadDays(kit.b), 1);
      await acknowledge(key(1));
      assert.equal(await stateOf(kit.b, key(1)), 'done');
    },
  'a plan that throws acknowledges nothing': async (kit) => {
    await follow(kit);
    const [day] = await daysOf(kit);
    await kit.win({ key: key(1), report: BUY, days: [day] });
    const plan = registrationsOf(kit.a).run(SENDER, (rows) => {
      rows.acknowledge(key(1));
      throw new Error('thrown by the plan');
    });
    await assert.rejects(plan, /thrown by the plan/u);
    assert.equal(await stateOf(kit.b, key(1)), 'unsafe');
  },
  'reports of a media buy that nobody registered are kept for a while, with what became of them': async (
    kit,
  ) => {
    const [day, next] = await daysOf(kit);
    const { windows, lease: held } = await kit.win({ key: key(1), report: BUY, days: [day] });
    assert.deepEqual(windows, [{ id: BUY }]);
    await kit.complete(held.owner, { key: key(1) });
    await kit.win({ key: key(2), report: BUY, days: [next] });
    const { unplaced } = await streamOf(kit.b);
    assert.deepEqual(
      unplaced.map((one) => [one.key, one.isDone ?? false]),
      [
        [key(1), true],
        [key(2), false],
      ],
    );
    assert.equal((await kit.accept({ ...PULL, key: key(3), days: [day] })).kind, 'queued');
    kit.advance(400 * DAY_MS);
    const row = await registrationsOf(kit.b).run(SENDER, (rows) => rows.get('stream', BUY));
    assert.equal(row, undefined);
  },
  'of a sender a thousand media buys that nobody registered are kept, and of each one that is registered the windows; it is said':
    async (kit) => {
      await follow(kit);
      const [day] = await daysOf(kit);
      const named = (from: number, count: number): string =>
        Array.from({ length: count }, (_, at) => `nobodys_${from + at}`).join(',');
      const report = async (n: number, names: string, draft: Draft = {}) => {
        const accepted = await kit.accept({ key: key(n), report: names, days: [day], ...draft });
        return accepted.kind === 'won' ? [accepted.windows?.length, accepted.claimsDropped] : [accepted.kind];
      };
      const kept = (store: Store, id: string, sender = SENDER) =>
        registrationsOf(store).run(sender, (rows) => rows.get('stream', id) !== undefined);
      assert.deepEqual(await report(1, named(0, 990)), [990, undefined]);
      assert.deepEqual(await report(2, `${named(980, 30)},${BUY}`), [21, true]);
      assert.deepEqual([await kept(kit.b, 'nobodys_999'), await kept(kit.b, 'nobodys_1000')], [true, false]);
      assert.deepEqual(await report(3, `${named(0, 10)},${BUY}`), [11, undefined]);
      const inbox = await kit.accept({ key: key(4), mode: 'inbox', report: named(2000, 1), days: [day] });
      assert.deepEqual([inbox.kind, inbox.claimsDropped], ['queued', true]);
      const sender = 'https://other.example/mcp';
      assert.deepEqual(await report(5, named(3000, 1), { sender }), [1, undefined]);
      assert.equal(await kept(kit.a, 'nobodys_3000', sender), true);
      kit.advance(31 * DAY_MS);
      assert.deepEqual(await report(6, named(4000, 1)), [1, undefined]);
    },
  'one plan writes three hundred accounts, and one reads them': async ({ a, b }) => {
    const ids = Array.from({ length: 300 }, (_, at) => `mb_${at}`);
    const row = { kind: 'stream', sender: SENDER, value: '', dueAt: null, list: null } as const;
    await registrationsOf(a).run(SENDER, (rows) => {
      for (const id of ids) rows.save({ ...row, id, expiresAt: null });
    });
    const found = await registrationsOf(b).run(SENDER, (rows) => ids.filter((id) => rows.get('stream', id)));
    assert.equal(found.length, 300);
  },
  'the URL by which an event came is noted with the media buys that were told it, once a minute': async (
    kit,
  ) => {
    const told = await followTold(kit);
    const [day] = await daysOf(kit);
    const heard = async (): Promise<readonly (number | undefined)[]> =>
      (await Promise.all([BUY, 'mb_2'].map((id) => streamOf(kit.b, id)))).flatMap((stream) =>
        (stream.told ?? []).map(({ heardAt }) => heardAt),
      );
    // The first event came by a URL that is not registered for the media buy. The URL of the second event is unknown.
    await kit.accept({ key: key(1), report: BUY, days: [day], via: { ...told, route: 'q', streams: [] } });
    await kit.accept({ key: key(2), report: BUY, days: [day] });
    assert.deepEqual(await heard(), [undefined, undefined]);
    await kit.accept({
      key: key(3),
      report: BUY,
      days: [day],
      via: { ...told, streams: ['mb_2', 'nobodys'] },
    });
    const [first = 0, other] = await heard();
    assert.equal(other, first);
    assert.ok(first > 0);
    // A duplicate must not count as a new event that came by the URL.
    kit.advance(120_000);
    await kit.accept({ key: key(3), report: BUY, days: [day], via: { ...told, streams: ['mb_2'] } });
    assert.deepEqual(await heard(), [first, first]);
    await kit.accept({ key: key(4), via: { ...told, streams: ['mb_2'] } });
    const [before, after = 0] = await heard();
    assert.equal(before, first);
    assert.ok(after >= first + 120_000);
  },
  'two senders have two accounts of one media buy': async (kit) => {
    await follow(kit);
    const [day] = await daysOf(kit);
    await kit.apply({ sender: 'https://other.example/mcp', report: BUY, days: [day] });
    assert.equal(await hadDays(kit.b), 0);
  },
  'reports at once, by both handles, lose no window': async (kit) => {
    await follow(kit);
    const days = await daysOf(kit);
    const drafts = days.flatMap((day, at) =>
      [0, 1, 2, 3].map((copy) => ({ key: key(10 * at + copy), report: BUY, days: [day] })),
    );
    await Promise.all(
      drafts.map(async (draft, at) => {
        const store = at % 2 === 0 ? kit.a : kit.b;
        const { lease: held } = await kit.win(draft, store);
        await kit.complete(held.owner, draft, store);
      }),
    );
    assert.equal(await hadDays(kit.a), days.length);
    assert.deepEqual(await claimsOf(kit.b), []);
  },
};
