import * as fc from 'fast-check';
import { expect } from 'vitest';
import type { Store } from '../../../src/stores/contract.ts';
import type { StoreFactory } from '../../../src/testing/store-contract.ts';
import type { Call } from '../../stores/calls.ts';
import { webhookCall } from '../../stores/calls.ts';
import { LONG } from '../form.ts';
import { createLedger } from './ledger.ts';
import type { Process, World } from './process.ts';
import { runScript } from './process.ts';
import { settle } from './settle.ts';

/** What a store does to a call before it is done: `gate` lets other processes in between. */
export type Spoil = (store: Store, gate: (what: string) => Promise<void>) => Store;

/** Opens two handles; `gate` is for what they do to reach their rows. */
export type Open = (gate: (what: string) => Promise<void>) => ReturnType<StoreFactory>;

/** On two handles. */
const PROCESSES = 4;

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

async function oneRun(
  scheduler: fc.Scheduler,
  world: World,
  plan: readonly (readonly Call[])[],
  { open, spoil, tally }: { open: Open; spoil: Spoil; tally: Map<string, number> },
): Promise<void> {
  let offsetMs = 0;
  let seq = 0;
  let isScheduled = false;
  const gate = (what: string): Promise<void> =>
    isScheduled ? scheduler.schedule(Promise.resolve(), what) : Promise.resolve();
  const { a, b, setClockOffsetMs, effects, cleanup } = await open(gate);
  const clock = {
    now: () => Date.now() + offsetMs,
    advance: (ms: number) => {
      offsetMs += ms;
      setClockOffsetMs(offsetMs);
    },
    tick: () => (seq += 1),
  };
  const shared = { ledger: createLedger(), clock, world, tally, effects };
  try {
    await a.open();
    await b.open();
    isScheduled = true;
    const handles = [spoil(a, gate), spoil(b, gate)];
    const processes = plan.map((script, index): Promise<void> => {
      const store = handles[index % handles.length] ?? expect.fail('no handle');
      return runScript({ ...shared, name: `p${index}`, store, gate }, script);
    });
    await scheduler.waitFor(Promise.all(processes));
    isScheduled = false;
    const last: Process = {
      ...shared,
      name: 'last',
      store: a,
      gate: async () => {},
    };
    await settle(last);
  } finally {
    await cleanup();
  }
}

/** Processes make their calls in an order that the scheduler decides; the invariants hold for what they are told. */
export function anyOrder(
  open: Open,
  tally: Map<string, number>,
  spoil: Spoil = (store) => store,
): fc.IAsyncProperty<[fc.Scheduler, World, Call[][]]> {
  return fc.asyncProperty(fc.scheduler(), worlds, scripts, (scheduler, world, plan) =>
    oneRun(scheduler, world, plan, { open, spoil, tally }),
  );
}

export const FIXED_SEED = 20_260_731;

/** `npm test` takes the same way each time; the long form a new one, which the name of its test tells. */
export const SEED: number = LONG ? Date.now() % 2 ** 31 : FIXED_SEED;

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

/** @param runs in the short form; the long one has 30 times as many. */
export async function expectInvariants(open: Open, runs: number): Promise<void> {
  const tally = new Map<string, number>();
  const numRuns = LONG ? 30 * runs : runs;
  await fc.assert(anyOrder(open, tally), { seed: SEED, numRuns });
  const seen = numRuns < MANY ? OFTEN : [...OFTEN, ...RARELY];
  expect(seen.filter((name) => !tally.has(name))).toEqual([]);
}
