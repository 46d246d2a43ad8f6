// Cases of the store contract: the states that notifications report, e.g. of an impairment (owed.md §6).
// Called by `describeStoreContract` for stores with registrations.
import assert from 'node:assert/strict';
import { holderIn, keptState, type KeptState } from '../../states/states.ts';
import type { RegistrationRow, Store } from '../../stores/store.ts';
import { streamIn, streamText } from '../../windows/stream.ts';
import { inboxOf, key, leaseOne } from './inbox-kit.ts';
import { type Cases, DAY_MS, type Draft, type Kit, LEASE_MS, SENDER } from './kit.ts';
import { BUY, follow } from './report-windows.ts';
import { registrationsOf } from './registration-rows.ts';

const MINUTE_MS = 60_000;
const ID = 'i1';
const OF_BUY = { kind: 'stream', id: BUY } as const;
const OPENED = { id: ID, atMs: -60 * MINUTE_MS, to: 'rejected', holder: OF_BUY };
const PULL = { mode: 'inbox', nonce: null } as const;

const rowOf = (store: Store, id = BUY, kind: RegistrationRow['kind'] = 'stream') =>
  registrationsOf(store).run(SENDER, (rows) => rows.get(kind, id));

/** Returns a stored state by its id, from the row of the media buy `BUY`, unless `of` names another row. */
export async function stateOf(
  store: Store,
  id: string = ID,
  of: { readonly kind: RegistrationRow['kind']; readonly id: string } = OF_BUY,
): Promise<KeptState | undefined> {
  const row = await rowOf(store, of.id, of.kind);
  return row && keptState(holderIn(row.value), id, 0);
}

const save = (store: Store, row: Pick<RegistrationRow, 'kind' | 'id' | 'value'> & Partial<RegistrationRow>) =>
  registrationsOf(store).run(SENDER, (rows) =>
    rows.save({ sender: SENDER, dueAt: null, list: null, expiresAt: null, ...row }),
  );

/** Sets the `list` of the media buy's row, as registrations and a reconciler do. */
async function list(kit: Kit, state: 'open' | 'closed'): Promise<void> {
  const row = await rowOf(kit.a);
  assert.ok(row);
  await save(kit.a, { ...row, list: state });
}

/** Returns the state `OPENED` with a fixed time, so that the same state can be reported again. */
async function opened({ a }: Kit) {
  const { atMs, ...state } = OPENED;
  const now = await registrationsOf(a).run(SENDER, (_rows, at) => at);
  return { ...state, at: Math.floor(now) + atMs };
}

/** Accepts an event that reports a state. Returns the kind of the decision, and the members about the state. */
async function tell(kit: Kit, draft: Draft, store = kit.a) {
  const accepted = await kit.accept({ state: OPENED, ...draft }, store);
  const { kind, stateDropped = false } = accepted;
  return { kind, stateDropped, claimed: accepted.kind === 'won' ? accepted.claimedState : undefined };
}

/**
 * Cases of states that notifications report. They are saved in the same transaction that inserts or completes the event
 * of the notification (owed.md §6).
 */
export const stateCases: Cases = {
  'a state is kept when its event is inserted, and has its key until that is completed': async (kit) => {
    await follow(kit);
    const { lease: held, claimedState } = await kit.win({ key: key(1), state: OPENED });
    const { at = NaN, ...claimed } = claimedState ?? {};
    assert.deepEqual(claimed, { id: ID, holder: OF_BUY });
    const kept = await stateOf(kit.b);
    assert.deepEqual(
      [kept?.at, kept?.to, kept?.by, kept?.isFirst, kept?.key],
      [at, 'rejected', 'webhook', true, key(1)],
    );
    assert.equal(await kit.complete(held.owner, { key: key(1) }), 'done');
    const { key: done, ...left } = (await stateOf(kit.b)) ?? {};
    assert.equal(done, undefined);
    assert.deepEqual({ ...left, key: key(1) }, kept);
  },
  'so is one in inbox mode; its worker is given it, and so is one that runs it again': async (kit) => {
    await follow(kit);
    const mediaBuyId = 'the media buy';
    await kit.accept({ mode: 'inbox', state: { ...OPENED, mediaBuyId } });
    const event = await leaseOne(kit);
    assert.deepEqual([event.claimedState?.id, event.claimedState?.mediaBuyId], [ID, mediaBuyId]);
    await kit.fail(event.lease.owner, { permanent: true });
    assert.notEqual((await stateOf(kit.b))?.key, undefined);
    const [record] = (await inboxOf(kit.a).list({ state: 'dead', limit: 1 })).records;
    assert.ok(record);
    await inboxOf(kit.a).redrive(SENDER, record.key);
    const again = await leaseOne(kit);
    assert.deepEqual(again.claimedState, event.claimedState);
    await kit.complete(again.lease.owner);
    assert.equal((await stateOf(kit.b))?.key, undefined);
  },
  'an older one changes nothing and is handled; one without an instant is of the store’s clock': async (
    kit,
  ) => {
    await follow(kit);
    const first = await tell(kit, { key: key(1) });
    assert.equal((await tell(kit, { key: key(2), state: { ...OPENED, atMs: -90 * MINUTE_MS } })).kind, 'won');
    assert.deepEqual([(await stateOf(kit.b))?.at, (await stateOf(kit.b))?.key], [first.claimed?.at, key(1)]);
    const { atMs: _untimed, ...untimed } = OPENED;
    const second = await tell(kit, { key: key(3), state: untimed });
    const kept = await stateOf(kit.b);
    assert.deepEqual([kept?.at, kept?.keptAt, kept?.isFirst], [second.claimed?.at, kept?.at, undefined]);
  },
  'a duplicate keeps nothing anew, and a retry is given the same': async (kit) => {
    await follow(kit);
    const first = await kit.win({ key: key(1), state: OPENED });
    const kept = await stateOf(kit.b);
    kit.advance(1000);
    await kit.fail(first.lease.owner, { key: key(1) });
    const again = await kit.win({ key: key(1), state: { ...OPENED, to: 'another' } });
    assert.deepEqual(again.claimedState, first.claimedState);
    assert.deepEqual(await stateOf(kit.b), kept);
  },
  'of a media buy without an account nothing is kept, and the event is handled': async (kit) => {
    const { kind, claimed } = await tell(kit, { key: key(1) });
    assert.deepEqual([kind, claimed?.id, claimed?.holder], ['won', ID, undefined]);
    const { holder: _none, ...nobodys } = OPENED;
    assert.equal((await tell(kit, { key: key(2), state: nobodys })).kind, 'won');
    assert.equal(await rowOf(kit.b), undefined);
  },
  'an event that names its operation alone is of the media buy of that': async (kit) => {
    const holder = (id: string) => ({ kind: 'operation', id }) as const;
    const operation = (id: string, value: object) =>
      save(kit.a, { kind: 'operation', id, value: JSON.stringify(value) });
    await follow(kit);
    await follow(kit, 'hash-of-its-name');
    await operation('op-1', { mediaBuyId: BUY });
    await operation('op-2', { mediaBuyId: 'été', streamId: 'hash-of-its-name' });
    await operation('op-3', {});
    const of = (id: string, n: number) =>
      tell(kit, { key: key(n), state: { ...OPENED, holder: holder(id) } });
    assert.deepEqual((await of('op-1', 1)).claimed?.mediaBuyId, BUY);
    assert.equal((await stateOf(kit.b))?.to, 'rejected');
    assert.deepEqual((await of('op-2', 2)).claimed?.mediaBuyId, 'été');
    assert.equal((await stateOf(kit.b, ID, { kind: 'stream', id: 'hash-of-its-name' }))?.to, 'rejected');
    for (const [n, id] of [[3, 'op-3'] as const, [4, 'op-nobody-knows'] as const]) {
      const { kind, claimed } = await of(id, n);
      assert.deepEqual([kind, claimed?.mediaBuyId, claimed?.holder], ['won', undefined, undefined]);
    }
  },
  'a pulled state is a duplicate where what is kept is not what was judged': async (kit) => {
    await follow(kit);
    const pull = async (n: number, seen: KeptState | null, atMs: number) =>
      (await kit.accept({ ...PULL, key: key(n), state: { ...OPENED, atMs, seen } }, kit.b)).kind;
    assert.equal(await pull(1, null, -60 * MINUTE_MS), 'queued');
    assert.equal(await pull(2, null, -60 * MINUTE_MS), 'done');
    const first = (await stateOf(kit.a)) ?? null;
    assert.deepEqual([first?.by, first?.wasOpen, first?.isFirst], ['pull', true, true]);
    kit.advance(1);
    await kit.win({ key: key(3), state: { ...OPENED, atMs: -30 * MINUTE_MS } });
    assert.equal(await pull(4, first, 0), 'done');
    const second = (await stateOf(kit.a)) ?? null;
    assert.equal(await pull(5, second && { ...second, wasOpen: true, absentAt: 5 }, 0), 'queued');
    // The row expires here. The store must then act as if the row had been deleted.
    const row = await rowOf(kit.a);
    assert.ok(row);
    await save(kit.a, { ...row, expiresAt: 1 });
    assert.equal(await pull(6, null, 0), 'done');
  },
  'a webhook of what was pulled says that it repeats it': async (kit) => {
    await follow(kit);
    const state = await opened(kit);
    await kit.accept({ ...PULL, key: key(1), state: { ...state, seen: null } });
    assert.equal((await tell(kit, { key: key(2), state })).claimed?.isRepeated, true);
    assert.equal((await tell(kit, { key: key(3), state })).claimed?.isRepeated, undefined);
    assert.equal(
      (await tell(kit, { key: key(4), state: { ...OPENED, atMs: 0 } })).claimed?.isRepeated,
      undefined,
    );
  },
  'of two pulls at once one is told; of a pull and a webhook both, or the pull stands back': async (kit) => {
    await follow(kit);
    const pulls = [kit.a, kit.b].map((store, n) =>
      kit.accept({ ...PULL, key: key(n), state: { ...OPENED, seen: null } }, store),
    );
    assert.deepEqual((await Promise.all(pulls)).map(({ kind }) => kind).sort(), ['done', 'queued']);
    const other = { ...(await opened(kit)), id: 'i2' };
    const [came, pulled] = await Promise.all([
      kit.win({ key: key(3), state: other }),
      kit.accept({ ...PULL, key: key(4), state: { ...other, seen: null } }, kit.b),
    ]);
    assert.equal(came.claimedState?.isRepeated === true, pulled.kind === 'queued');
  },
  'of more than a hundred of a media buy a hundred are kept, and it is said': async (kit) => {
    await follow(kit);
    const { at } = await opened(kit);
    const states = Array.from({ length: 99 }, (_, n) => ({ id: `i${n}`, at, keptAt: at, by: 'webhook' }));
    const row = await rowOf(kit.a);
    assert.ok(row);
    await save(kit.a, { ...row, value: JSON.stringify({ ...holderIn(row.value), states }) });
    const told = async (n: number) => tell(kit, { key: key(n), state: { ...OPENED, id: `i${n}` } });
    assert.equal((await told(99)).stateDropped, false);
    assert.equal((await told(100)).stateDropped, true);
    assert.deepEqual([await stateOf(kit.b, 'i0'), (await stateOf(kit.b, 'i1'))?.id], [undefined, 'i1']);
    const inbox = await kit.accept({ mode: 'inbox', key: key(101), state: { ...OPENED, id: 'i101' } });
    assert.deepEqual([inbox.kind, inbox.stateDropped], ['queued', true]);
    assert.equal(holderIn((await rowOf(kit.b))?.value ?? '').states?.length, 100);
  },
  'an event that is gone before it was done leaves its key': async (kit) => {
    await follow(kit);
    const lost = await kit.win({ key: key(1), state: OPENED, retentionMs: MINUTE_MS });
    await kit.fail(lost.lease.owner, { key: key(1), retentionMs: MINUTE_MS });
    kit.advance(MINUTE_MS + LEASE_MS);
    assert.equal((await stateOf(kit.b))?.key, key(1));
    const gone = await registrationsOf(kit.b).run(SENDER, (rows) => rows.eventState(key(1)));
    assert.equal(gone, undefined);
    // The event of `key(3)` replaces the key that is stored with the state. The completion of the event of `key(2)` must
    // not remove the new key.
    const next = await kit.win({ key: key(2), state: OPENED });
    const third = await kit.win({ key: key(3), state: OPENED });
    await kit.complete(next.lease.owner, { key: key(2) });
    assert.equal((await stateOf(kit.b))?.key, key(3));
    await kit.complete(third.lease.owner, { key: key(3) });
    assert.equal((await stateOf(kit.b))?.key, undefined);
  },
  'what is emitted again makes its media buy asked about, once in a quarter of an hour': async (kit) => {
    await follow(kit);
    await list(kit, 'open');
    const state = await opened(kit);
    const later = { ...state, at: state.at + MINUTE_MS };
    const emit = async (n: number, draft: Draft = {}) => {
      await kit.win({ key: key(n), notification: ID, state: later, ...draft });
      const row = await rowOf(kit.b);
      assert.ok(row);
      return { dueAt: row.dueAt, changedAt: streamIn(row.value).changedAt };
    };
    const unasked = { dueAt: null, changedAt: undefined };
    assert.deepEqual(await emit(1, { state }), unasked);
    // `emit(2)` reports a later state than `emit(1)`, so it repeats nothing. Only a repeated state makes the buyer ask
    // the seller.
    assert.deepEqual(await emit(2), unasked);
    const asked = await emit(3);
    assert.ok(asked.changedAt !== undefined && asked.dueAt === Math.ceil(asked.changedAt));
    kit.advance(14 * MINUTE_MS);
    assert.deepEqual(await emit(4, { state }), asked);
    kit.advance(2 * MINUTE_MS);
    // `emit(5)` repeats the first state. It counts as repeated, although the store has only the later state by now.
    const again = await emit(5, { state });
    assert.ok((again.changedAt ?? 0) > asked.changedAt);
    // A retry has the same idempotency key. It does not count as a repeated state.
    kit.advance(20 * MINUTE_MS);
    await kit.accept({ key: key(5), notification: ID, state });
    assert.equal(streamIn((await rowOf(kit.b))?.value ?? '').changedAt, again.changedAt);
  },
  'a media buy that nobody has registered is not asked about; one that is closed is looked at': async (
    kit,
  ) => {
    await follow(kit);
    const state = await opened(kit);
    await kit.win({ key: key(1), notification: ID, state });
    await kit.win({ key: key(2), notification: ID, state });
    assert.equal((await rowOf(kit.b))?.dueAt, null);
    await list(kit, 'closed');
    await kit.win({ key: key(3), state: { ...OPENED, atMs: 0 } });
    assert.notEqual((await rowOf(kit.b))?.dueAt, null);
  },
  'states of a subscription are kept where it has a row': async (kit) => {
    const holder = { kind: 'snapshot', id: 'subscriber type' } as const;
    const state = { ...OPENED, holder };
    assert.equal((await tell(kit, { key: key(1), state })).claimed?.holder, undefined);
    await save(kit.a, { kind: 'snapshot', id: holder.id, value: JSON.stringify({ round: 7 }) });
    const { lease: held } = await kit.win({ key: key(2), state });
    assert.equal((await stateOf(kit.b, ID, holder))?.key, key(2));
    await kit.complete(held.owner, { key: key(2) });
    assert.equal((await stateOf(kit.b, ID, holder))?.key, undefined);
    const row = await rowOf(kit.b, holder.id, holder.kind);
    assert.equal((holderIn(row?.value ?? '') as { round?: number }).round, 7);
  },
  'what reports claim, and what notifications tell, are kept side by side': async (kit) => {
    await follow(kit);
    const today = await registrationsOf(kit.a).run(SENDER, (_rows, now) => Math.floor(now / DAY_MS));
    const drafts = Array.from({ length: 20 }, (_, n): Draft => {
      const draft = { key: key(n) };
      return n % 2 === 0
        ? { ...draft, report: BUY, days: [today - 3 + (n % 3)] }
        : { ...draft, state: { ...OPENED, id: `i${n}` } };
    });
    await Promise.all(
      drafts.map(async (draft, n) => {
        const store = n % 4 < 2 ? kit.a : kit.b;
        const { lease: held } = await kit.win(draft, store);
        await kit.complete(held.owner, draft, store);
      }),
    );
    const row = await rowOf(kit.a);
    assert.ok(row);
    const stream = streamIn(row.value);
    assert.equal(streamText(stream), row.value);
    assert.equal(stream.claims.length, 0);
    const kept = stream.states ?? [];
    assert.deepEqual([kept.length, kept.filter((one) => one.key !== undefined)], [10, []]);
    assert.equal(new Set(kept.map(({ id }) => id)).size, 10);
  },
};
