import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { PlantedName } from '../../support/planted.ts';
import { PLANTED } from '../../support/planted.ts';
import { LONG } from '../form.ts';
import {
  acceptEnd,
  acceptLast,
  acceptStatus,
  completeEnd,
  completeStatus,
  dueWatch,
  failEnd,
  followByOldEnd,
  followTask,
  lookAtAll,
  lookAtTask,
  move,
  observeEnd,
  operationFirst,
  routeFirst,
} from './calls.ts';
import type { Call, Scenario } from './one-by-one.ts';
import { expectOneByOne } from './one-by-one.ts';

/*
 * `registrations.run` and `due` of a driven store, beside what else is done with the same seller and task: in whatever order
 * its loads and commits come, each call is one atomic step.
 */

const NOTHING: readonly Call[] = [];
const WATCHED: readonly Call[] = [followTask, move];
const RUNNING: readonly Call[] = [acceptStatus, completeStatus, followTask, acceptEnd];

const RUNS: readonly Call[] = [followTask, move, operationFirst, dueWatch];
const OTHERS: readonly Call[] = [
  ...RUNS,
  routeFirst,
  acceptStatus,
  acceptEnd,
  acceptLast,
  observeEnd,
  completeEnd,
  failEnd,
];

type Scripts = Scenario['scripts'];

const inAll = (before: readonly Call[], scripts: readonly Scripts[]): readonly Scenario[] =>
  scripts.map((of) => ({ before, scripts: of, look: lookAtAll }));

const byOneHandle = (scenarios: readonly Scenario[]): readonly Scenario[] =>
  scenarios.map((scenario) => ({ ...scenario, isOneHandle: true }));

const PAIRS: readonly Scripts[] = RUNS.flatMap((run) => OTHERS.map((other) => [[run], [other]]));

/** What a process sees next of what its own call and another's have done. */
const THEN_LOOKS: readonly Scripts[] = [
  [[followTask], [acceptEnd, lookAtTask]],
  [[followTask], [observeEnd, lookAtTask]],
  [[followTask], [completeEnd, lookAtTask]],
  [[dueWatch], [followTask, lookAtTask]],
];

const THREE: readonly Scripts[] = LONG
  ? OTHERS.flatMap((second) => OTHERS.map((third) => [[followTask], [second], [third]]))
  : [[[followTask], [observeEnd], [completeEnd]]];

/** By name: what is played, and how many orders it has at least in the short form. */
const PLAYED: Readonly<Record<string, readonly [readonly Scenario[], number]>> = {
  'of a task that is not known': [inAll(NOTHING, PAIRS), 240],
  'of a task that is watched': [inAll(WATCHED, PAIRS), 300],
  'of a task whose end is running': [inAll(RUNNING, PAIRS), 400],
  'by one handle': [byOneHandle([...inAll(WATCHED, PAIRS), ...(LONG ? inAll(RUNNING, PAIRS) : [])]), 580],
  'with a look after them': [
    [...inAll(NOTHING, THEN_LOOKS), ...inAll(WATCHED, THEN_LOOKS), ...inAll(RUNNING, THEN_LOOKS)],
    360,
  ],
  'three at once': [inAll(RUNNING, THREE), 410],
};

const TIMEOUT_MS = LONG ? 1_800_000 : 120_000;

const NOT_SO = 'Not as one after the other';

describe('every order of the loads and commits of runs, and of what is done beside them', () => {
  let orders = 0;
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['Date', 'performance'], now: 1_767_225_600_000 });
  });
  afterEach(() => {
    vi.useRealTimers();
  });
  afterAll(() => {
    console.info(`played ${orders} orders`);
  });

  it.each(Object.entries(PLAYED))(
    '%s: answered as one after the other',
    async (_name, [scenarios, atLeast]) => {
      let played = 0;
      for (const scenario of scenarios) played += await expectOneByOne(scenario);
      orders += played;
      expect(played).toBeGreaterThanOrEqual(atLeast);
    },
    TIMEOUT_MS,
  );

  /** A condition that a backend leaves out, and what shows it. */
  it.each<[PlantedName, readonly Call[], Scripts]>([
    ['versions are not compared', WATCHED, [[move], [move]]],
    ['versions are not compared', WATCHED, [[dueWatch], [dueWatch]]],
    ['rows that have to be absent are not compared', NOTHING, [[move], [move]]],
    ['rows that are only read are not compared', NOTHING, [[operationFirst], [routeFirst]]],
    ['rows that are only read are not compared', NOTHING, [[followTask], [acceptEnd, lookAtTask]]],
  ])('%s: caught', async (name, before, scripts) => {
    const scenario = { before, scripts, look: lookAtAll };
    await expectOneByOne(scenario);
    await expect(expectOneByOne(scenario, PLANTED[name])).rejects.toThrow(NOT_SO);
  });

  it('the end of a task is read in a step of its own: caught', async () => {
    const scripts = [[followByOldEnd], [acceptEnd, lookAtTask]];
    await expect(expectOneByOne({ before: NOTHING, scripts, look: lookAtAll })).rejects.toThrow(NOT_SO);
  });
});
