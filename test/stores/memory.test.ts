import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { describeStoreContract, type StoreHarness } from '../../src/testing/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createMemoryState, dueAt, memoryRows, type RecordRow } from '../../src/stores/for-tests.ts';
import { acceptRequest, leaseOf, RETENTION_MS } from './requests.ts';

async function harness(): Promise<StoreHarness> {
  const state = createMemoryState();
  let offsetMs = 0;
  const options = { state, clockOffsetMs: () => offsetMs };
  return {
    a: memoryStore(options),
    b: memoryStore(options),
    setClockOffsetMs: (ms) => {
      offsetMs = ms;
    },
    reopen: async () => memoryStore(options),
    cleanup: async () => {},
  };
}

describe('memoryStore', () => {
  describeStoreContract(harness, { describe, it, persistent: true, inbox: true, registrations: true });

  it('has durability process', async () => {
    expect(await memoryStore().durability()).toBe('process');
  });

  it('keeps stores without a shared state apart', async () => {
    const request = acceptRequest();
    expect((await memoryStore().accept(request)).kind).toBe('won');
    expect((await memoryStore().accept(request)).kind).toBe('won');
  });

  it('forgets expired entries of every map', async () => {
    const state = createMemoryState();
    let offsetMs = 0;
    const store = memoryStore({ state, clockOffsetMs: () => offsetMs });
    for (let n = 0; n < 100; n += 1) {
      const request = acceptRequest({ key: `event-${n}-of-the-seller`, task: `t${n}` });
      await store.accept(request);
    }
    const sender = state.senders.get(acceptRequest().sender);
    const nonces = sender?.nonces.get('seller-2026');
    expect([sender?.records.rows.size, sender?.tasks.rows.size, nonces?.rows.size]).toEqual([100, 100, 100]);
    offsetMs = 31 * 86_400_000;
    await store.accept(acceptRequest({ key: 'the-same-event-again' }));
    expect([sender?.records.rows.size, sender?.tasks.rows.size, sender?.pendingBytes]).toEqual([1, 0, 22]);
    expect(state.allNonces).toBe(1);
  });

  it('gives bodies that are its own', async () => {
    const state = createMemoryState();
    const store = memoryStore({ state });
    const request = acceptRequest({ body: '{"status":"working"}' });
    await store.accept(request);
    request.event?.body.fill(0);
    const rows = memoryRows(state);
    const { sender } = request;
    const key = request.event?.key ?? '';
    rows.body(sender, key).fill(0);
    expect(new TextDecoder().decode(rows.body(sender, key))).toBe('{"status":"working"}');
    await store.complete({ ...leaseOf(request), retentionMs: RETENTION_MS });
    expect(rows.body(sender, key)).toEqual(new Uint8Array());
  });

  it('gives a long queue in its order, and keeps no places of what has left it', async () => {
    const state = createMemoryState();
    const store = memoryStore({ state });
    const count = 100;
    for (let n = 0; n < count; n += 1) {
      await store.accept({
        ...acceptRequest({ key: `event-${n}-of-the-seller`, task: `t${n}` }),
        mode: 'inbox',
      });
    }
    const rows = memoryRows(state);
    const { sender } = acceptRequest();
    for (let n = 0; n < count; n += 1) {
      const found = rows.due(Infinity);
      expect(found?.key).toBe(`event-${n}-of-the-seller`);
      const places = state.due.get(sender)?.rows ?? [];
      expect(places.length).toBeLessThanOrEqual(2 * (count - n));
      if (found) rows.updateRecord({ ...found, state: 'applied', bodyBytes: 0 });
    }
    expect(state.due.size).toBe(0);
  });

  it('finds what is due and parked as a search of all records does', async () => {
    const template = createMemoryState();
    await memoryStore({ state: template }).accept({ ...acceptRequest({ task: 't' }), mode: 'inbox' });
    const [known] = template.senders.get(acceptRequest().sender)?.records.rows.values() ?? [];
    if (!known) throw new Error('the record is not there');
    const change = fc.record({
      key: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
      sender: fc.constantFrom('one', 'other'),
      state: fc.constantFrom('queued', 'leased', 'applied', 'dead'),
      acked: fc.boolean(),
      suspect: fc.boolean(),
      crashes: fc.nat(2),
      notBefore: fc.nat(4),
      leaseUntil: fc.nat(4),
      parkedUntil: fc.constantFrom(0, 0, 2, 3),
      bodyBytes: fc.nat(1),
    });
    fc.assert(
      fc.property(fc.array(change, { maxLength: 40 }), fc.nat(4), (changes, now) => {
        const state = createMemoryState();
        const rows = memoryRows(state);
        // In the order of their insertion.
        const all = new Map<string, RecordRow>();
        for (const each of changes) {
          const row: RecordRow = { ...known.row, ...each };
          const name = `${row.sender} ${row.key}`;
          if (all.has(name)) rows.updateRecord(row);
          else rows.insertRecord(row, new Uint8Array(row.bodyBytes));
          all.set(name, row);
        }
        const due = [...all.values()].filter((row) => dueAt(row) !== null);
        const at = (row: RecordRow): number => dueAt(row) ?? Infinity;
        const first = (some: RecordRow[]): RecordRow | undefined => some.toSorted((a, b) => at(a) - at(b))[0];
        const usual = due.filter(({ suspect }) => !suspect);
        const firsts = ['one', 'other'].map((of) => first(usual.filter(({ sender }) => sender === of)));
        const expected = firsts.flatMap((row) => (row && at(row) <= now ? row : []));
        // Both senders have their turn.
        const found = [rows.due(now), rows.due(now)];
        expect(new Set(found)).toEqual(new Set(expected.length > 0 ? expected : [undefined]));
        const next = first(usual);
        expect(rows.nextDue()).toBe(next && at(next));
        const suspects = due.filter(({ suspect }) => suspect);
        const suspect = first(suspects);
        expect(rows.nextSuspect()).toBe(suspect && at(suspect));
        const turn = suspects.filter((row) => at(row) <= now).toSorted((a, b) => a.crashes - b.crashes)[0];
        expect(rows.dueSuspect(now)).toBe(turn);
        for (const sender of ['one', 'other']) {
          const own = [...all.values()].filter((row) => row.sender === sender);
          expect(rows.parked(sender, 't')).toBe(own.find(({ parkedUntil }) => parkedUntil > 0));
          const bytes = own.reduce((sum, { bodyBytes }) => sum + bodyBytes, 0);
          expect(rows.usage(sender, undefined)).toMatchObject({ entries: own.length, pendingBytes: bytes });
        }
      }),
      { numRuns: 500 },
    );
  });
});
