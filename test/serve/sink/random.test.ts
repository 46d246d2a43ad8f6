import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createForwarder, SinkFault } from '../../../src/serve/sink/for-tests.ts';
import { SILENT_LOGGER } from '../../support/silent-logger.ts';
import { virtualClock } from '../../support/virtual-clock.ts';
import { eventOf, payloads } from './kit.ts';

const EVENT = eventOf(payloads.tool('completed'));
const SECOND = 1_000;
const LONGEST_ATTEMPT_MS = 5 * SECOND;
const CONCURRENCY = 4;
const POISONS = new Set([3, 11]);

/** An attempt with an event. Begin and end are places in the order of all that happened. */
interface Try {
  readonly event: number;
  readonly run: number;
  readonly began: number;
  readonly atMs: number;
  readonly wasPaused: boolean;
  ended: number;
  how: 'pass' | 'fault' | undefined;
}

/** How a run of the handler ended. */
interface Run {
  readonly event: number;
  readonly run: number;
  readonly how: string;
  readonly ended: number;
  readonly tookMs: number;
}

interface Story {
  readonly tries: readonly Try[];
  readonly runs: readonly Run[];
}

/** What a story is made of, by chance. */
interface Chances {
  /** How long the sink is up, and then down, in turns. Ms. */
  readonly turns: readonly number[];
  /** How long attempts take, in turns. Ms. */
  readonly durations: readonly number[];
  /** What a fault asks for, in turns. Ms. */
  readonly retryAfter: readonly number[];
}

/** Workers that lease one event after the other, and again what was not done, at a sink that comes and goes. */
async function story({ turns, durations, retryAfter }: Chances): Promise<Story> {
  const clock = virtualClock(0);
  try {
    const tries: Try[] = [];
    const runs: Run[] = [];
    let order = 0;
    let isUp = true;
    const workers = { areOver: false };
    const forwarder = createForwarder(
      {
        name: 'sink',
        send: async ({ id, run }) => {
          const event = Number(id);
          const { paused } = forwarder.state();
          const one: Try = {
            event,
            run,
            began: (order += 1),
            atMs: clock.now(),
            wasPaused: paused,
            ended: Infinity,
            how: undefined,
          };
          tries.push(one);
          const n = tries.length;
          await clock.sleep(durations[n % durations.length] ?? 0);
          one.ended = order += 1;
          one.how = isUp && !POISONS.has(event) ? 'pass' : 'fault';
          if (one.how === 'fault') throw new SinkFault('away', retryAfter[n % retryAfter.length]);
        },
        check: async () => {},
        close: async () => {},
      },
      {
        onAlarm: () => {},
        logger: SILENT_LOGGER,
        concurrency: CONCURRENCY,
        clock: { now: clock.now, sleep: (ms, signal) => clock.sleep(ms, signal) },
      },
    );
    let events = 0;
    const due: { readonly event: number; readonly run: number }[] = [];
    const worker = async (): Promise<void> => {
      while (!workers.areOver) {
        // New ones come without end.
        const next = due.shift() ?? { event: (events += 1), run: 1 };
        const began = clock.now();
        const { signal } = new AbortController();
        const ctx = { deliveryId: String(next.event), run: next.run, signal, log: SILENT_LOGGER };
        const how = await forwarder.handle(EVENT, ctx).then(
          () => 'done',
          (error: { readonly code?: string }) => error.code ?? 'charged',
        );
        runs.push({ ...next, how, ended: (order += 1), tookMs: clock.now() - began });
        await clock.sleep(SECOND);
        if (how !== 'done') due.push({ event: next.event, run: next.run + 1 });
      }
    };
    const working = Array.from({ length: CONCURRENCY }, worker);
    for (const ms of turns) {
      await clock.pass(ms);
      isUp = !isUp;
    }
    isUp = true;
    workers.areOver = true;
    await clock.pass(200 * SECOND);
    await Promise.all(working);
    return { tries, runs };
  } finally {
    clock.end();
  }
}

/** Whether another event's attempt began behind `from` and had passed before `to`. */
const passedBetween = (tries: readonly Try[], event: number, from: number, to: number): boolean =>
  tries.some((one) => one.event !== event && one.how === 'pass' && one.began > from && one.ended < to);

/**
 * The rule itself: two faults of the event since it was charged last, and behind each, before the next one, another event
 * that passed.
 */
function isChargeable({ tries, runs }: Story, { event, run, ended }: Run): boolean {
  const charged = runs.filter((one) => one.event === event && one.run < run && one.how === 'charged');
  const since = Math.max(0, ...charged.map((one) => one.run));
  const faults = tries.filter(
    (one) => one.event === event && one.run > since && one.run <= run && one.how === 'fault',
  );
  const proven = faults.filter((fault, n) =>
    passedBetween(tries, event, fault.ended, faults[n + 1]?.ended ?? ended),
  );
  return proven.length >= 2;
}

function expectRules(told: Story): void {
  const { tries, runs } = told;
  for (const run of runs) {
    if (run.how === 'charged') expect(isChargeable(told, run)).toBe(true);
    expect(['done', 'charged', 'given_back']).toContain(run.how);
    expect(run.tookMs).toBeLessThanOrEqual(61 * SECOND + 2 * LONGEST_ATTEMPT_MS);
  }
  const done = runs.filter(({ how }) => how === 'done').map(({ event }) => event);
  expect(new Set(done).size).toBe(done.length);
  // One at a time while it is paused, and a second apart, but for the first of a pause.
  const probes = tries.filter(({ wasPaused }) => wasPaused);
  for (const [n, probe] of probes.entries()) {
    const before = probes[n - 1];
    if (!before) continue;
    expect(before.ended).toBeLessThan(probe.began);
    const isOfOnePause = !tries.some(
      ({ how, began, ended }) => how === 'pass' && began >= before.began && ended < probe.began,
    );
    if (isOfOnePause) expect(probe.atMs - before.atMs).toBeGreaterThanOrEqual(SECOND);
  }
}

describe('a forwarder at a sink that comes and goes', () => {
  it('charges by the rule alone, tries a paused sink by one attempt a second, and holds nothing for long', async () => {
    const some = <T>(one: fc.Arbitrary<T>, least: number, most: number) =>
      fc.array(one, { minLength: least, maxLength: most });
    const chances = fc.record({
      turns: some(fc.oneof(fc.integer({ min: 1, max: 3_000 }), fc.integer({ min: 1, max: 150_000 })), 4, 30),
      durations: some(
        fc.oneof(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 0, max: LONGEST_ATTEMPT_MS })),
        1,
        7,
      ),
      retryAfter: some(fc.constantFrom(0, 0, 0, 2_000, 90_000), 1, 5),
    });
    let charged = 0;
    let passed = 0;
    await fc.assert(
      fc.asyncProperty(chances, async (given) => {
        const told = await story(given);
        expectRules(told);
        charged += told.runs.filter(({ how }) => how === 'charged').length;
        passed += told.runs.filter(({ how }) => how === 'done').length;
      }),
      { numRuns: 50, seed: 7 },
    );
    // Else it has judged nothing.
    expect(Math.min(charged, passed)).toBeGreaterThan(100);
  });
});
