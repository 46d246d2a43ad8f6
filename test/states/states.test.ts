import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isUnchanged, keptState, noted, stateDone, statesIn } from '../../src/states/for-tests.ts';
import type { KeptState, StateClaim } from '../../src/stores/index.ts';

const NOW = Date.parse('2026-04-01T00:00:00Z');
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

interface Holder {
  readonly states?: readonly KeptState[];
}
type Told = StateClaim & { readonly now?: number; readonly key?: string };

/** What is kept after so many events, and what the last one was told. */
function after(...told: readonly Told[]): ReturnType<typeof noted<Holder>> {
  let is: ReturnType<typeof noted<Holder>> = {
    holder: {},
    at: NaN,
    isEnded: false,
    isRepeated: false,
    isDropped: false,
  };
  for (const { now = NOW, key, ...claim } of told) is = noted(is.holder, claim, now, key);
  return is;
}
const keptAfter = (...told: readonly Told[]): KeptState | undefined =>
  keptState(after(...told).holder, told[0]?.id ?? '', told.at(-1)?.now ?? NOW);
const pulled = (of: Pick<StateClaim, 'id' | 'at' | 'to' | 'from' | 'ended'>): StateClaim => ({
  ...of,
  seen: null,
});

const OPENED = { id: 'i1', at: NOW - 60 * MINUTE_MS, to: 'rejected' };
const CLOSED = { id: 'i1', at: NOW - 30 * MINUTE_MS, to: 'approved' };

describe('what is kept of a state (owed.md §6.1)', () => {
  it('the first change, the next one, and nothing of one that is older', () => {
    expect(keptAfter(OPENED)).toEqual({ ...OPENED, keptAt: NOW, by: 'webhook', isFirst: true });
    expect(keptAfter(OPENED, CLOSED)).toEqual({ ...CLOSED, keptAt: NOW, by: 'webhook' });
    const { holder } = after(CLOSED);
    const older = noted(holder, OPENED, NOW + 1);
    expect(older.holder).toBe(holder);
    expect(older).toMatchObject({ at: OPENED.at, isRepeated: false });
  });

  it('of two at one instant the one that comes last', () => {
    expect(keptAfter(OPENED, { ...OPENED, to: 'paused' })).toMatchObject({ to: 'paused' });
  });

  it('the same change once more is the first still, and was open still', () => {
    const again = { ...OPENED, now: NOW + 1 };
    expect(keptAfter(OPENED, again)).toMatchObject({ isFirst: true, keptAt: NOW + 1 });
    expect(keptAfter(pulled(OPENED), again)).toMatchObject({ by: 'webhook', isFirst: true, wasOpen: true });
    expect(keptAfter(pulled(OPENED), CLOSED)).not.toHaveProperty('wasOpen');
  });

  it('the webhook of a change that a pull told says so', () => {
    expect(after(pulled(OPENED), OPENED).isRepeated).toBe(true);
    expect(after(OPENED, OPENED).isRepeated).toBe(false);
    expect(after(OPENED, pulled(CLOSED)).isRepeated).toBe(false);
    expect(after(pulled(OPENED), CLOSED).isRepeated).toBe(false);
    expect(after(pulled({ ...OPENED, ended: true }), OPENED).isRepeated).toBe(false);
  });

  it('the pull of an end that the last webhook may have told says so', () => {
    const end = pulled({ id: 'i1', at: NOW, ended: true });
    expect(after(OPENED, CLOSED, end).isRepeated).toBe(true);
    expect(after(OPENED, end).isRepeated).toBe(false);
    expect(after(OPENED, pulled(CLOSED), end).isRepeated).toBe(false);
    expect(after(OPENED, pulled(CLOSED), CLOSED, end).isRepeated).toBe(false);
    expect(after(end).isRepeated).toBe(false);
  });

  it('an impairment is over where its thing is again what it was before the first change', () => {
    const opened = { ...OPENED, from: 'approved' };
    expect(after(opened)).toMatchObject({ isEnded: false });
    expect(after(opened, CLOSED)).toMatchObject({ isEnded: true });
    expect(keptAfter(opened, CLOSED)).toMatchObject({ isEnded: true, by: 'webhook', origin: 'approved' });
    // Its webhook once more, and a change between.
    expect(after(opened, CLOSED, CLOSED)).toMatchObject({ isEnded: true, isRepeated: false });
    const paused = { id: 'i1', at: CLOSED.at - 1, to: 'paused', from: 'rejected' };
    expect(after(opened, paused)).toMatchObject({ isEnded: false });
    expect(after(opened, paused, CLOSED)).toMatchObject({ isEnded: true });
    // One that comes behind a newer one says it all the same; one that says nothing of before says nothing.
    expect(after(opened, { ...OPENED, at: NOW }, CLOSED)).toMatchObject({ isEnded: true, at: CLOSED.at });
    expect(after(OPENED, CLOSED)).toMatchObject({ isEnded: false });
    expect(after({ ...opened, to: 'approved' })).toMatchObject({ isEnded: false });
    expect(after(pulled(opened), pulled(CLOSED))).toMatchObject({ isEnded: false });
    expect(after(pulled(opened), CLOSED)).toMatchObject({ isEnded: true });
    // What was seen not to be the end was not it.
    const end = pulled({ id: 'i1', at: NOW, ended: true });
    expect(after(opened, paused, end).isRepeated).toBe(false);
    expect(after(OPENED, paused, end).isRepeated).toBe(true);
  });

  it('a pull replaces what it was judged by, whatever instant that has', () => {
    const older = pulled({ id: 'i1', at: OPENED.at, ended: true });
    expect(keptAfter(CLOSED, older)).toMatchObject({ at: CLOSED.at + 1, isEnded: true, by: 'pull' });
    expect(after(CLOSED, older).at).toBe(CLOSED.at + 1);
  });

  it('an instant that is not said, or well ahead of the clock, is the clock', () => {
    expect(keptAfter({ id: 'i1' })).toMatchObject({ at: NOW });
    expect(keptAfter({ id: 'i1', at: Date.parse('9999-12-31T23:59:59Z') })).toMatchObject({ at: NOW });
    expect(keptAfter({ id: 'i1', at: NOW + 4 * MINUTE_MS })).toMatchObject({ at: NOW + 4 * MINUTE_MS });
    expect(keptAfter({ id: 'i1', at: NaN })).toMatchObject({ at: NOW });
  });

  it('an end is forgotten after 30 days, and until then keeps what is older away', () => {
    const ended = pulled({ id: 'i1', at: CLOSED.at, ended: true });
    const { holder } = after(ended);
    expect(keptState(holder, 'i1', NOW + 29 * DAY_MS)).toMatchObject({ isEnded: true });
    expect(noted(holder, OPENED, NOW + 29 * DAY_MS).holder).toBe(holder);
    expect(keptState(holder, 'i1', NOW + 30 * DAY_MS)).toBeUndefined();
    expect(noted(holder, OPENED, NOW + 30 * DAY_MS).holder.states).toMatchObject([{ at: OPENED.at }]);
    expect(keptState(after(OPENED).holder, 'i1', NOW + 400 * DAY_MS)).toBeDefined();
  });

  it('ids are texts, not members', () => {
    const { holder } = after(...['__proto__', 'constructor', ''].map((id) => ({ ...OPENED, id })));
    expect(statesIn(holder, NOW).map(({ id }) => id)).toEqual(['__proto__', 'constructor', '']);
    expect(keptState(holder, 'toString', NOW)).toBeUndefined();
  });

  it('a seller that names its states at length', () => {
    expect(keptAfter({ ...OPENED, to: 'x'.repeat(100_000) })?.to).toHaveLength(64);
    const long = { ...OPENED, to: 'x'.repeat(65) };
    expect(after(pulled(long), long).isRepeated).toBe(true);
  });
});

describe('too many states (owed.md §6.1)', () => {
  const many = (count: number, of: Partial<StateClaim> = {}): readonly Told[] =>
    Array.from({ length: count }, (_, at) => ({ ...OPENED, id: `i${at}`, ...of }));

  it('of ten thousand of a media buy the last hundred, and it is said', () => {
    const { holder, isDropped } = after(...many(10_000));
    expect(holder.states?.map(({ id }) => id)).toEqual(
      Array.from({ length: 100 }, (_, at) => `i${9900 + at}`),
    );
    expect(isDropped).toBe(true);
    expect(after(...many(100)).isDropped).toBe(false);
  });

  it('the ended ones go first, and nothing is said of them', () => {
    const end = pulled({ id: 'i50', at: CLOSED.at, ended: true });
    const { holder, isDropped } = after(...many(100), end, { ...OPENED, id: 'new' });
    expect(isDropped).toBe(false);
    expect(holder.states).toHaveLength(100);
    expect(keptState(holder, 'i50', NOW)).toBeUndefined();
    expect(keptState(holder, 'i0', NOW)).toBeDefined();
  });

  it('of a subscription a thousand', () => {
    const { holder } = after(...many(1100, { holder: { kind: 'snapshot', id: 's' } }));
    expect(holder.states).toHaveLength(1000);
  });
});

describe('whether another event came (owed.md §6.6)', () => {
  const kept = keptAfter(OPENED);

  it('by what an event changes, and not by what snapshots note', () => {
    expect(isUnchanged(kept, kept)).toBe(true);
    expect(isUnchanged(kept, { ...(kept as KeptState), wasOpen: true, absentAt: NOW })).toBe(true);
    expect(isUnchanged(kept, keptAfter(OPENED, { ...OPENED, now: NOW + 1 }))).toBe(false);
    expect(isUnchanged(kept, keptAfter(OPENED, CLOSED))).toBe(false);
    expect(isUnchanged(kept, { ...(kept as KeptState), isEnded: true })).toBe(false);
  });

  it('none and none are the same, none and one are not', () => {
    expect(isUnchanged(undefined, null)).toBe(true);
    expect(isUnchanged(kept, undefined)).toBe(false);
    expect(isUnchanged(null, kept)).toBe(false);
  });
});

describe('a state whose event is not done (owed.md §6.4)', () => {
  it('has its key until then', () => {
    const { holder } = after({ ...OPENED, key: 'event-1' }, { ...OPENED, id: 'i2', key: 'event-2' });
    const done = stateDone(holder, 'i1', 'event-1');
    expect(done?.states?.map(({ id, key }) => [id, key])).toEqual([
      ['i1', undefined],
      ['i2', 'event-2'],
    ]);
    expect(done?.states?.[0]).not.toHaveProperty('key');
    expect(stateDone(holder, 'i1', 'event-2')).toBeUndefined();
    expect(stateDone({}, 'i1', 'event-1')).toBeUndefined();
  });
});

describe('any sequence of events', () => {
  const claim = fc.record(
    {
      id: fc.constantFrom('i1', 'i2'),
      at: fc.integer({ min: NOW - 20, max: NOW }),
      to: fc.constantFrom('a', 'b'),
      ended: fc.constant(true as const),
      seen: fc.constant(null),
    },
    { requiredKeys: ['id', 'at'] },
  );

  it('leaves the newest of each id, and never an older one', () => {
    fc.assert(
      fc.property(fc.array(claim, { maxLength: 30 }), (claims) => {
        let holder: Holder = {};
        const model = new Map<string, { at: number; to: string | undefined; heard: number }>();
        for (const [step, told] of claims.entries()) {
          const now = NOW + step;
          const before = model.get(told.id);
          const isPull = told.seen === null;
          const at = isPull && before ? Math.max(told.at, before.at + 1) : told.at;
          const isNew = !before || at >= before.at;
          if (isNew) model.set(told.id, { at, to: told.to, heard: (before?.heard ?? 0) + 1 });
          const is = noted(holder, told, now);
          expect(is.at).toBe(at);
          expect(is.isDropped).toBe(false);
          holder = is.holder;
        }
        const kept = statesIn(holder, NOW + claims.length);
        expect(kept).toHaveLength(model.size);
        for (const { id, at, to, isFirst } of kept) {
          const is = model.get(id);
          expect([at, to]).toEqual([is?.at, is?.to]);
          if (is?.heard === 1) expect(isFirst).toBe(true);
        }
      }),
    );
  });
});
