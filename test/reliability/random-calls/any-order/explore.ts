import * as fc from 'fast-check';
import { expect } from 'vitest';
import type { Store } from '../../../../src/index.ts';
import type { Call } from '../calls.ts';
import { webhookCall } from '../calls.ts';
import { expectHistories } from '../histories.ts';
import type { Gate, Play, Subject } from '../subject.ts';
import { handleOf, onNewStore } from '../subject.ts';
import { createLedger } from './ledger.ts';
import type { World } from './process.ts';
import { PROCESSES, runScript } from './process.ts';
import { settle } from './settle.ts';

/** What a store does to a call before it is done: `gate` lets other processes in between. */
export type Spoil = (store: Store, gate: Gate) => Store;

const worlds: fc.Arbitrary<World> = fc.record({
  events: fc.array(fc.record({ task: fc.nat(2), second: fc.nat(3), flags: fc.nat(3) }), {
    minLength: 4,
    maxLength: 4,
  }),
  maxRecords: fc.integer({ min: 3, max: 20 }),
  maxBytes: fc.integer({ min: 14, max: 60 }),
});

const scripts: fc.Arbitrary<Call[][]> = fc.array(
  fc.array(webhookCall, { minLength: 1, maxLength: 7, size: 'max' }),
  {
    minLength: 2,
    maxLength: PROCESSES,
    size: 'max',
  },
);

/** One run: processes whose calls the scheduler lets go, on a world, each by its script. */
type Run = readonly [scheduler: fc.Scheduler, world: World, plan: readonly (readonly Call[])[]];

export const RUNS: fc.Arbitrary<Run> = fc.tuple(fc.scheduler(), worlds, scripts);

/**
 * Judges a run by what its processes are told.
 * @param tally answers are counted in it.
 * @throws Error that names the invariant which does not hold.
 */
export async function expectRight(
  subject: Subject,
  [scheduler, world, plan]: Run,
  tally: Map<string, number> = new Map(),
  spoil: Spoil = (store) => store,
): Promise<void> {
  let seq = 0;
  let isScheduled = false;
  const gate: Gate = async (what) => {
    if (isScheduled) await scheduler.schedule(Promise.resolve(), what);
  };
  const play = async ({ handles, clock, advance, opened: { effects } }: Play): Promise<void> => {
    const ticking = { now: clock.now, advance, tick: () => (seq += 1) };
    const shared = { ledger: createLedger(), clock: ticking, world, tally, effects };
    const spoilt = handles.map((store) => spoil(store, gate));
    isScheduled = true;
    const processes = plan.map((script, index) =>
      runScript({ ...shared, name: `p${index}`, store: handleOf(spoilt, index), gate }, script),
    );
    await scheduler.waitFor(Promise.all(processes));
    isScheduled = false;
    await settle({ ...shared, name: 'last', store: handles[0], gate: async () => {} });
  };
  await onNewStore(subject, play, gate);
}

/** Answers that runs which look where they should have seen: else they show nothing. */
const OFTEN = [
  'accept: won',
  'accept: queued',
  'accept: done',
  'accept: in-flight',
  'complete: done',
  'fail: queued',
  'fail: dead',
  'renew: renewed',
];

/** And those that many runs have seen. */
const RARELY = [
  'accept: task-busy',
  'accept: stale',
  'accept: conflict',
  'accept: replayed',
  'accept: over-cap',
  'complete: lost',
  'fail: lost',
  'renew: lost',
  'redrive: queued',
  'discard: discarded',
];

/** Runs from which on every kind of answer is to be expected. */
const MANY = 1000;

/**
 * Processes make their calls in an order that the scheduler decides; the invariants hold for what they are told.
 * @param count runs in the short form.
 */
export async function expectInvariants(
  subject: Subject,
  { name, count }: { name: string; count: number },
): Promise<void> {
  const tally = new Map<string, number>();
  const runs = await expectHistories({
    name,
    histories: RUNS,
    count,
    judge: async (run) => {
      await expectRight(subject, run, tally);
      return 'judged';
    },
  });
  const seen = runs < MANY ? OFTEN : [...OFTEN, ...RARELY];
  expect(
    seen.filter((what) => !tally.has(what)),
    name,
  ).toEqual([]);
}
