import { describe, expect, it } from 'vitest';
import {
  judged,
  type KeptState,
  noted,
  SETTLE_MS,
  type SnapshotAnswer,
  type StateHolder,
} from '../../src/states/for-tests.ts';
import { LONG } from '../reliability/form.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const LIMITS = { most: 100, since: 0, isGone: () => false };

const NOW = 100 * HOUR;
const kept = (more: Partial<KeptState> = {}): KeptState => ({
  id: 'i1',
  at: NOW - HOUR,
  to: 'rejected',
  keptAt: NOW - HOUR,
  by: 'webhook',
  ...more,
});
const answer = (more: Partial<SnapshotAnswer> = {}): SnapshotAnswer => ({
  entries: [],
  isTerminal: false,
  askedAt: NOW,
  ...more,
});
const entry = (at: number | undefined, to = 'rejected', id = 'i1') => ({
  id,
  to,
  payload: { impairment_id: id },
  ...(at !== undefined && { at }),
});
const told = (...given: Parameters<typeof judged>) => judged(...given).told.map(({ state }) => state);

describe('what a snapshot says (owed.md §6.4)', () => {
  it('tells what is not kept, once its webhook has had its time', () => {
    const young = answer({ entries: [entry(NOW - SETTLE_MS + 1)] });
    expect(told([], young, LIMITS)).toEqual([]);
    const old = answer({ entries: [entry(NOW - SETTLE_MS)] });
    expect(told([], old, LIMITS)).toEqual([{ id: 'i1', at: NOW - SETTLE_MS, to: 'rejected', ended: false }]);
    expect(judged([], old, LIMITS).told[0]?.isMissed).toBe(true);
  });

  it('raises nothing for what came before states were kept', () => {
    const [first] = judged([], answer({ entries: [entry(NOW - HOUR)] }), { ...LIMITS, since: NOW - 1 }).told;
    expect(first).toMatchObject({ isMissed: false, state: { at: NOW - HOUR } });
  });

  it('tells nothing of what is known, and notes that it had it', () => {
    const { states, ...rest } = judged([kept()], answer({ entries: [entry(NOW - HOUR)] }), LIMITS);
    expect(rest).toEqual({ told: [], isFull: false });
    expect(states).toEqual([kept({ wasOpen: true })]);
    expect(judged(states, answer({ entries: [entry(NOW - HOUR)] }), LIMITS).states).toBe(states);
  });

  it.each([
    ['an event', {}, false],
    ['the first event', { isFirst: true }, false],
    ['an event that a snapshot had since', { wasOpen: true }, true],
    ['a pulled event', { by: 'pull' }, true],
  ] as const)('tells the end behind %s, at the second answer without it', (_what, more, isMissed) => {
    const { states, told: none } = judged([kept(more)], answer(), LIMITS);
    expect([none, states]).toEqual([[], [kept({ ...more, absentAt: NOW })]]);
    const early = answer({ askedAt: NOW + SETTLE_MS - 1 });
    expect(judged(states, early, LIMITS).told).toEqual([]);
    const later = answer({ askedAt: NOW + SETTLE_MS });
    expect(judged(states, later, LIMITS).told).toMatchObject([
      { state: { id: 'i1', at: NOW - HOUR + 1, ended: true }, isMissed },
    ]);
    const said = answer({ askedAt: NOW + SETTLE_MS, asOf: NOW + SETTLE_MS });
    expect(told(states, said, LIMITS)).toEqual([{ id: 'i1', at: NOW + SETTLE_MS, ended: true }]);
  });

  it.each([
    ['an instant', { at: NOW - SETTLE_MS + 1 }],
    ['a time at which it was kept', { keptAt: NOW - SETTLE_MS + 1 }],
  ])('waits for what has %s that is too young', (_what, more) => {
    const young = kept({ ...more, absentAt: NOW - HOUR });
    expect(judged([young], answer(), LIMITS)).toMatchObject({ told: [], states: [young] });
    expect(judged([young], answer({ entries: [entry(NOW - 1, 'worse')] }), LIMITS).told).toEqual([]);
  });

  it.each([
    ['an instant', { at: NOW - SETTLE_MS }],
    ['a time at which it was kept', { keptAt: NOW - SETTLE_MS }],
    ['a time since which it is absent', { absentAt: NOW - SETTLE_MS }],
  ])('waits no more for what has %s that is just old enough', (_what, more) => {
    const old = kept({ absentAt: NOW - HOUR, ...more });
    expect(told([old], answer(), LIMITS)).toMatchObject([{ id: 'i1', ended: true }]);
  });

  it.each([
    ['with the time of its change', entry(NOW - SETTLE_MS, 'worse'), true],
    ['without a time, which may be any', entry(undefined, 'worse'), false],
  ])('raises a later change that no webhook brought, %s', (_what, changed, isMissed) => {
    for (const isEnded of [false, true]) {
      const known = isEnded ? kept({ isEnded }) : kept();
      expect(judged([known], answer({ entries: [changed] }), LIMITS).told).toMatchObject([
        { state: { id: 'i1', at: NOW - SETTLE_MS, to: 'worse', ended: false }, isMissed },
      ]);
    }
  });

  it('begins anew with what was absent and is there again', () => {
    const again = answer({ entries: [entry(NOW - HOUR)] });
    expect(judged([kept({ absentAt: NOW - HOUR })], again, LIMITS).states).toEqual([kept({ wasOpen: true })]);
  });

  it('says nothing of what is absent where an entry could not be read', () => {
    const { states, told: none } = judged([kept()], answer({ isPartial: true }), LIMITS);
    expect(none).toEqual([]);
    expect(states).toEqual([kept()]);
  });

  it('ends everything of a media buy that is terminal, at once, and raises nothing', () => {
    const open = kept({ wasOpen: true });
    const { told: ends } = judged([open], answer({ entries: [entry(NOW - HOUR)], isTerminal: true }), LIMITS);
    expect(ends).toMatchObject([{ state: { ended: true }, isMissed: false }]);
    expect(ends[0]?.entry).toBeUndefined();
  });

  it('lets an old answer say nothing, and one that says that it is newer win', () => {
    const known = kept({ to: 'approved', at: NOW - 30 * MINUTE, keptAt: NOW - 30 * MINUTE });
    const entries = [entry(NOW - HOUR)];
    for (const asOf of [undefined, NOW - 2 * HOUR, NOW - 21 * MINUTE]) {
      const { told: none, states } = judged(
        [known],
        answer({ entries, ...(asOf !== undefined && { asOf }) }),
        LIMITS,
      );
      expect(none).toEqual([]);
      expect(states).toEqual([known]);
    }
    expect(judged([known], answer({ entries, asOf: NOW - 20 * MINUTE }), LIMITS).told).toMatchObject([
      { state: { at: NOW - 20 * MINUTE, to: 'rejected', ended: false }, isMissed: false },
    ]);
  });

  it('tells as open again what nothing but an answer had ended', () => {
    const ended = kept({ by: 'pull', isEnded: true, at: NOW - HOUR + 1 });
    const entries = [entry(NOW - HOUR)];
    expect(told([ended], answer({ entries }), LIMITS)).toEqual([
      { id: 'i1', at: NOW - HOUR + 2, to: 'rejected', ended: false },
    ]);
    expect(told([ended], answer({ entries, asOf: NOW - 51 * MINUTE }), LIMITS)).toEqual([]);
  });

  it('tells as open what a webhook seemed to have ended, where an answer has that very transition', () => {
    const ended = kept({ isEnded: true });
    expect(told([ended], answer({ entries: [entry(NOW - HOUR)] }), LIMITS)).toMatchObject([{ ended: false }]);
    expect(told([ended], answer({ entries: [entry(NOW - 2 * HOUR)] }), LIMITS)).toEqual([]);
    expect(judged([ended], answer(), LIMITS)).toMatchObject({ told: [], states: [ended] });
  });

  it('tells whatever a snapshot says of a state whose event is gone before a handler completed it', () => {
    const gone = { ...LIMITS, isGone: (key: string) => key === 'gone' };
    const entries = [entry(NOW - HOUR)];
    expect(told([kept({ key: 'there' })], answer({ entries }), gone)).toEqual([]);
    expect(judged([kept({ key: 'gone' })], answer({ entries }), gone).told).toMatchObject([
      { state: { at: NOW - HOUR + 1, ended: false }, isMissed: false },
    ]);
    const ended = kept({ key: 'gone', isEnded: true, absentAt: NOW - HOUR });
    expect(told([ended], answer(), gone)).toMatchObject([{ ended: true }]);
  });

  it('knows a thing without an instant by its transition', () => {
    const entries = [entry(undefined)];
    expect(told([], answer({ entries }), LIMITS)).toMatchObject([{ at: NOW - SETTLE_MS }]);
    expect(told([kept()], answer({ entries }), LIMITS)).toEqual([]);
    expect(told([kept({ to: 'pending' })], answer({ entries }), LIMITS)).toMatchObject([{ to: 'rejected' }]);
  });

  it('has room for so many: of more it tells the latest, and nothing that it would forget', () => {
    const many = Array.from({ length: 10_000 }, (_, n) => entry(NOW - HOUR - n, 'x', `i${n}`));
    const all = judged([], answer({ entries: many }), LIMITS);
    expect(all.told.map(({ state }) => state.id)).toEqual(many.slice(0, 100).map(({ id }) => id));
    expect(all.isFull).toBe(true);
    const full = all.told.map(({ state }) => kept({ id: state.id, at: state.at, to: 'x' }));
    expect(judged(full, answer({ entries: many }), LIMITS)).toMatchObject({ told: [], isFull: true });
  });
});

/** Numbers from 0 up to 1, the same for the same seed. */
function numbersOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

interface Change {
  readonly id: string;
  readonly at: number;
  /** undefined: its end. */
  readonly to: string | undefined;
  readonly from: string;
  readonly isFirst: boolean;
}

interface Asked {
  readonly askedAt: number;
  /** How old the seller's data are. Ms. */
  readonly age: number;
  readonly hasAsOf: boolean;
}

interface World {
  readonly changes: readonly Change[];
  /** When its webhook comes; several times, or never. */
  readonly comes: readonly { readonly at: number; readonly change: Change }[];
  readonly asked: readonly Asked[];
  /** Its transitions say what they are from. */
  readonly saysFrom: boolean;
}

/** Nothing changes behind it; what is late comes by its end. */
const BUSY = 24 * HOUR;
const END = 30 * HOUR;
const EVERY = 15 * MINUTE;

/**
 * The life of three impairments. An honest seller's webhooks come within ten minutes, five of them for coalescence, and its data are five
 * minutes old at most.
 */
function worldOf(seed: number, isHonest: boolean, isSlow = false): World {
  const random = numbersOf(seed);
  const between = (least: number, most: number): number => Math.floor(least + random() * (most - least));
  const isLikely = (share: number): boolean => random() < share;
  const asked: Asked[] = [];
  const saysAsOf = [0, 0.5, 1][seed % 3] ?? 0;
  for (let askedAt = between(0, EVERY); askedAt < END; askedAt += EVERY) {
    const isOld = !isHonest && askedAt < BUSY + HOUR && isLikely(0.3);
    const age = isOld ? between(0, 3 * HOUR) : between(0, 5 * MINUTE);
    asked.push({ askedAt, age, hasAsOf: isLikely(saysAsOf) });
  }
  const changes: Change[] = [];
  const comes: World['comes'][number][] = [];
  for (const id of ['i1', 'i2', 'i3']) {
    const own: Change[] = [];
    let isOpen = false;
    const most = between(1, 8);
    for (let at = between(0, 4 * HOUR); at < BUSY && own.length < most;) {
      const to: string | undefined = isOpen && isLikely(0.6) ? undefined : `state-${own.length}`;
      own.push({ id, at, to, from: own.at(-1)?.to ?? 'approved', isFirst: own.length === 0 });
      isOpen = to !== undefined;
      at +=
        isLikely(0.3) && !isSlow
          ? between(1, 5 * MINUTE)
          : between(isSlow ? 2 * SETTLE_MS : MINUTE, 5 * HOUR);
    }
    // The first of those that one webhook tells together.
    let first = -Infinity;
    own.forEach((change, n) => {
      const next = own[n + 1];
      first = Math.max(first, change.at - 5 * MINUTE) === first ? first : change.at;
      const isCoalesced = next !== undefined && next.at - first < 5 * MINUTE && isLikely(0.5);
      const latest = first + SETTLE_MS;
      if (!isCoalesced) first = -Infinity;
      const isLost = !isHonest && isLikely(0.4);
      if (isCoalesced || isLost) return;
      const isLate = !isHonest && isLikely(0.2);
      comes.push({ at: between(change.at, isLate ? change.at + 3 * HOUR : latest), change });
      if (isLikely(0.2)) comes.push({ at: change.at + between(0, isHonest ? HOUR : 3 * HOUR), change });
    });
    changes.push(...own);
  }
  return { changes, comes, asked, saysFrom: seed % 2 === 0 };
}

/** What the seller has at an instant. */
function truth(changes: readonly Change[], at: number): ReadonlyMap<string, Change> {
  const is = new Map<string, Change>();
  for (const change of changes) if (change.at <= at) is.set(change.id, change);
  return is;
}

interface Lived {
  /** By id: what its handler was told last, by the instants that it was told. */
  readonly held: ReadonlyMap<string, { readonly at: number; readonly to: string | undefined }>;
  readonly missed: number;
  readonly told: number;
  /** Of these: no ends. */
  readonly opened: number;
  /** Of these: when nothing changed any more. */
  readonly late: number;
}

function live({ changes, comes, asked, saysFrom }: World): Lived {
  const held = new Map<string, { at: number; to: string | undefined }>();
  const tell = (id: string, at: number, to: string | undefined): void => {
    if (at >= (held.get(id)?.at ?? -Infinity)) held.set(id, { at, to });
  };
  let holder: StateHolder = {};
  let [missed, times, opened, late] = [0, 0, 0, 0];
  const look = ({ askedAt, age, hasAsOf }: Asked): void => {
    const asOf = askedAt - age;
    const entries = [...truth(changes, asOf).values()].flatMap(({ id, at, to }) =>
      to === undefined ? [] : [entry(at, to, id)],
    );
    const said = answer({ entries, askedAt, ...(hasAsOf && { asOf }) });
    const { told: news, states } = judged(holder.states ?? [], said, LIMITS);
    holder = { ...holder, states };
    for (const { state, seen = null, isMissed } of news) {
      const { ended, ...is } = state;
      const origin = saysFrom ? truth(changes, asOf).get(state.id)?.from : undefined;
      const from = origin === undefined || ended ? {} : { from: origin };
      const note = noted(holder, { ...is, ...from, ...(ended && { ended }), seen }, askedAt);
      ({ holder } = note);
      tell(state.id, note.at, state.to);
      times += 1;
      if (!ended) opened += 1;
      if (askedAt > END - 90 * MINUTE) late += 1;
      if (isMissed) missed += 1;
    }
  };
  const steps = [
    ...asked.map((one) => ({ at: one.askedAt, run: () => look(one) })),
    ...comes.map(({ at, change }) => ({
      at,
      run: () => {
        const { id, to = 'approved', from } = change;
        const note = noted(holder, { id, at: change.at, to, ...(saysFrom && { from }) }, at);
        ({ holder } = note);
        tell(id, note.at, change.to);
      },
    })),
  ].toSorted((a, b) => a.at - b.at);
  for (const { run } of steps) run();
  return { held, missed, told: times, opened, late };
}

const SEEDS = Array.from({ length: LONG ? 20_000 : 1000 }, (_, seed) => seed);

/** What differs from the seller in the end. */
function differing(world: World): readonly string[] {
  const { held, late } = live(world);
  if (late > 0) return ['it goes on telling'];
  return [...truth(world.changes, END).values()].flatMap(({ id, to }) => {
    const is = held.get(id)?.to;
    return is === to ? [] : [`${id}: ${is} and not ${to}`];
  });
}

describe('random sellers', () => {
  it('have told what they have, whatever was lost, late, doubled, coalesced or old', () => {
    const wrong = SEEDS.map((seed) => [seed, ...differing(worldOf(seed, false))]);
    expect(wrong.filter((one) => one.length > 1)).toEqual([]);
  });

  it('are not said to have missed any, where they are honest', () => {
    const lives = SEEDS.map((seed) => live(worldOf(seed, true)));
    expect(lives.map(({ missed }) => missed).filter((count) => count > 0)).toEqual([]);
    const wrong = SEEDS.map((seed) => [seed, ...differing(worldOf(seed, true))]);
    expect(wrong.filter((one) => one.length > 1)).toEqual([]);
  });

  it('have told everything but ends themselves, where they are honest and nothing lasts for a moment', () => {
    for (const seed of SEEDS) {
      const world = worldOf(seed, true, true);
      const ends = world.changes.filter(({ to }) => to === undefined);
      const { opened, told: count } = live(world);
      expect(opened).toBe(0);
      expect(count).toBeLessThanOrEqual(world.saysFrom ? 0 : ends.length);
    }
  });
});
