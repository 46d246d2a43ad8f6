import { afterAll, describe, expect, it } from 'vitest';
import type { AcceptDecision } from '../../src/stores/index.ts';
import { inThisForm, LONG, ROWS } from './form.ts';
import { GET_RUN_SET, POP_THEN_RUN } from './model/broken-queues.ts';
import * as broken from './model/broken.ts';
import * as windows from './model/broken-reports.ts';
import * as apart from './model/broken-told.ts';
import { told } from './model/explore.ts';
import { exploreScenario, modelOf } from './model/model.ts';
import { differingFutures } from './model/soundness.ts';
import { SCENARIOS, worse } from './model/scenarios.ts';
import type { ScenarioName } from './model/scenarios.ts';
import type { System } from './model/system.ts';
import { REAL } from './model/system.ts';
import type { Invariant, Scenario, World } from './model/world.ts';
import { tell } from '../support/tell.ts';

/** States that each world has at least, in the short form: an exploration that visits nothing proves nothing. */
const AT_LEAST: Record<ScenarioName, number> = {
  inline: 28_000,
  inlineResends: 5_800,
  inlineDeadline: 52_000,
  inlineRenewals: 9_000,
  inlineSetBack: 5_200,
  inboxSetBack: 21_000,
  inlineDead: 16_500,
  inlineThree: 25_000,
  inlineTask: 80_000,
  inlineSameInstant: 4_000,
  inlineTerminals: 33_000,
  inlineKept: 4_200,
  inlineChanged: 60_000,
  inlineConflict: 35_000,
  inlineTransaction: 28_000,
  inbox: 11_000,
  inboxTask: 36_000,
  inboxKept: 7_300,
  inboxResends: 7_500,
  inboxTransaction: 5_500,
  mixed: 14_000,
  mixedTask: 26_000,
  mixedTerminals: 14_000,
  poison: 20_000,
  inlinePoison: 1_000,
  observedPoison: 65_000,
  told: 41_000,
  toldInbox: 33_000,
  toldTerminals: 8_600,
  toldOlder: 10_000,
  toldOperation: 42_000,
  toldJoined: 5_400,
  toldStatuses: 17_000,
  toldAsked: 22_000,
  reports: 5_000,
  reportsInbox: 4_000,
  reportsTwice: 9_400,
};

const TIMEOUT_MS = LONG ? 1_800_000 : 300_000;

/** `npm test` visits the worlds that have at most so many states, and two that are larger for the decisions that these lack. */
const SMALL = 9_000;
const WORLDS = inThisForm(
  Object.entries(SCENARIOS) as [ScenarioName, Scenario][],
  ([name]) => AT_LEAST[name] <= SMALL || name === 'inlineConflict' || name === 'mixedTerminals',
);

/** Worlds small enough to be visited in all of the forms that each of their states has; `npm test` visits the first. */
const SOUND: readonly ScenarioName[] = LONG
  ? [
      'inlineResends',
      'inlineRenewals',
      'inlineSameInstant',
      'inbox',
      'inboxTask',
      'mixed',
      'mixedTask',
      'toldJoined',
      'toldAsked',
      'reportsInbox',
    ]
  : inThisForm(['inlineSameInstant', 'inlineResends', 'inbox', 'toldJoined'], (_name, index) => index < 1);

/** All of a world, names and instants included. */
function formOf(world: World): string {
  return JSON.stringify(world, (_name, value: unknown) => (value instanceof Map ? [...value] : value));
}

/** Notes every decision that the store gave. */
function noting(seen: Set<string>): System {
  const note = (decision: AcceptDecision | undefined): void => {
    if (decision) seen.add(decision.kind === 'done' ? `done (${decision.state})` : decision.kind);
  };
  const admission = REAL.admission.map((rule): System['admission'][number] => (rows, request, now) => {
    const decision = rule(rows, request, now);
    note(decision);
    return decision;
  });
  return { ...REAL, admission };
}

describe('every state of the rules, two processes, a seller and a clock', () => {
  const seen = new Set<string>();
  const visited = { states: 0, steps: 0, worlds: 0 };

  it.each(WORLDS)(
    '%s: nothing acknowledged is lost, nothing is completed twice, every event comes to its end',
    (name, scenario) => {
      const found = exploreScenario(LONG ? worse(scenario) : scenario, noting(seen));
      visited.states += found.states;
      visited.steps += found.steps;
      visited.worlds += 1;
      expect(found.breach && told(found.breach)).toBeUndefined();
      if (LONG) tell({ states: found.states, steps: found.steps });
      expect(found.states).toBeGreaterThanOrEqual(AT_LEAST[name]);
    },
    TIMEOUT_MS,
  );

  it('they meet every decision of an accept but those of caps and of unreadable bodies', () => {
    const decisions = [
      'won',
      'queued',
      'in-flight',
      'task-busy',
      'backing-off',
      'stale',
      // Of one world alone, which `npm test` has.
      ...(ROWS ? [] : ['conflict']),
      'replayed',
      'already-final',
      'final-unsafe',
    ];
    const ends = ['done (applied)', 'done (stale)', 'done (dead)'];
    expect([...seen].sort()).toEqual([...decisions, ...ends].sort());
  });

  it.each(SOUND)(
    '%s: worlds that count as one have the same future',
    (name) => {
      const model = modelOf({ scenario: SCENARIOS[name], system: REAL, drains: false });
      const { forms, keys, differing } = differingFutures(model, formOf);
      expect(differing).toEqual([]);
      expect(forms).toBeGreaterThan(keys);
    },
    TIMEOUT_MS,
  );

  afterAll(() => {
    const { states, steps, worlds } = visited;
    console.info(`explored ${worlds} worlds: ${states} states, ${steps} steps`);
  });
});

/** A deliberately broken variant, the world that shows it, what it breaks, the steps of a shortest counterexample. */
type Variant = readonly [is: string, system: System, shownBy: ScenarioName, breaks: Invariant, steps: number];

const LOST = 'an acknowledged event is never lost';
const TWICE = 'an event is completed once';
const OVERLAP = 'handlers of one task never overlap under live leases';
const GIVEN_UP = 'no terminal 4xx before the event is safe';

const CHARGED = 'only runs that it had to itself make an event DEAD by crashes';
const OLDER = 'an older status is never applied after a newer one';
const SAID = 'a task’s end and last status are said as they were told and handled';
const HAD = 'a window is had exactly where a report of it was completed';
const PULLED = 'a pulled report is a duplicate exactly where its window came before';
const ENDED = 'the end of a task is handled once, whichever channel tells it';

const VARIANTS: readonly Variant[] = [
  ['the nonce is burned before the claim', broken.BURNED_BEFORE_THE_CLAIM, 'inline', GIVEN_UP, 5],
  ['a known nonce is replayed, safe or not', broken.REPLAYED_UNLESS_NEW, 'inline', GIVEN_UP, 5],
  ['409 before the first outcome is safe', broken.FINAL_BEFORE_SAFE, 'inlineTerminals', GIVEN_UP, 5],
  [
    'bytes that come again count as a retry',
    broken.REPLAYS_COUNT,
    'inline',
    'bytes that come again use up no attempts',
    5,
  ],
  ['2xx for an inline duplicate in flight', broken.ACKNOWLEDGED_IN_FLIGHT, 'inline', LOST, 6],
  ['2xx before the insert', broken.ACKNOWLEDGED_BEFORE_INSERT, 'inbox', LOST, 3],
  ['2xx for what an inline door left, not made safe', broken.SAID_SAFE_ONLY, 'mixed', LOST, 6],
  ['pop, then run', POP_THEN_RUN, 'inboxResends', LOST, 5],
  ['the task’s mark moves at the lease', broken.MARKED_AT_THE_LEASE, 'inlineTask', LOST, 5],
  [
    'a transaction without a look at the lease',
    broken.TRANSACTION_WITHOUT_LEASE,
    'inlineTransaction',
    TWICE,
    9,
  ],
  ['completion without owner check', broken.COMPLETION_WITHOUT_OWNER, 'inline', TWICE, 11],
  ['the same, with a worker', broken.COMPLETION_WITHOUT_OWNER, 'inbox', TWICE, 12],
  ['a transaction that commits twice', broken.TRANSACTION_WITHOUT_LEASE, 'inboxTransaction', TWICE, 10],
  ['get, run, set', GET_RUN_SET, 'inline', OVERLAP, 6],
  ['a lease that others can have', broken.LEASE_NOT_EXCLUSIVE, 'inline', OVERLAP, 6],
  ['a lease without owner check', broken.LEASE_WITHOUT_OWNER, 'inline', OVERLAP, 12],
  ['the lease released at the deadline', broken.RELEASED_AT_THE_DEADLINE, 'inlineDeadline', OVERLAP, 7],
  ['a lease that a clock set back has left is over', broken.FAR_LEASE_IS_OVER, 'inlineSetBack', OVERLAP, 7],
  ['a task that nobody holds', broken.TASK_NOT_HELD, 'inlineTask', OVERLAP, 6],
  ['a crash of events that ran together is charged to each', broken.CHARGED_TOGETHER, 'poison', CHARGED, 6],
  ['a worker’s suspect beside one of a delivery', broken.PLACE_OF_ITS_OWN, 'observedPoison', CHARGED, 17],
  ['a completion of who has lost its task', broken.LATE_FOR_THE_TASK, 'inlineTask', OLDER, 11],
  [
    'the last copy is handled',
    broken.LAST_COPY_HANDLED,
    'inlineChanged',
    'the first copy is what is handled',
    6,
  ],
  ['a task’s end is not kept', apart.END_NOT_KEPT, 'told', ENDED, 11],
  [
    'the same in edition 3.2',
    apart.END_NOT_KEPT,
    'inboxKept',
    'nothing of a task is handled after its end in edition 3.2',
    13,
  ],
  ['the first end is not made safe', apart.FIRST_NOT_MADE_SAFE, 'told', LOST, 5],
  ['an observation is dropped while the first end is unsafe', apart.DROPPED_WHILE_UNSAFE, 'told', LOST, 5],
  ['the operation is not told', apart.OPERATION_NOT_TOLD, 'toldOperation', ENDED, 11],
  ['task and operation are not joined', apart.NOT_JOINED, 'toldJoined', ENDED, 16],
  ['an end is as old as its first copy', apart.AS_OLD_AS_THE_FIRST, 'toldOlder', LOST, 12],
  [
    'a task’s status is not kept',
    apart.STATUS_NOT_KEPT,
    'toldStatuses',
    'a status that two channels tell is handled once',
    11,
  ],
  [
    'the time of the question is not told',
    apart.TIME_OF_QUESTION_NOT_TOLD,
    'toldAsked',
    'a status that was asked for is never handled after what came since',
    13,
  ],
  ['an end that is not safe is said to be', apart.SAID_SAFE_UNACKED, 'told', SAID, 2],
  ['an end that is stale by now is said to be one', apart.SAID_ENDED_WHEN_STALE, 'toldOlder', SAID, 9],
  ['that an end was applied is not noted', apart.APPLIED_NOT_NOTED, 'told', SAID, 5],
  ['which status was applied last is not noted', apart.LAST_NOT_NOTED, 'toldStatuses', SAID, 13],
  ['a window is marked beside the step that completes its report', windows.MARKED_BESIDE, 'reports', HAD, 5],
  [
    'a window is claimed beside the step that inserts its report',
    windows.CLAIMED_BESIDE,
    'reports',
    'a report that is not done is claimed',
    2,
  ],
  [
    'whether a window came is looked at before the step of its pull',
    windows.LOOKED_AT_BEFORE,
    'reports',
    PULLED,
    6,
  ],
  ['a report that is not done has its window', windows.UNSAFE_IS_HAD, 'reports', HAD, 2],
  ['a handler that throws is as good as one that does not', windows.FAILED_IS_HAD, 'reports', HAD, 4],
  ['the claim of a report that is gone counts', windows.GONE_STANDS, 'reports', PULLED, 5],
  ['the window of a DEAD report is missing', windows.DEAD_IS_MISSING, 'reports', PULLED, 6],
  [
    'a webhook is not told that its window came before',
    windows.NOT_TOLD,
    'reports',
    'a webhook says that it repeats exactly where its window came before',
    4,
  ],
];

/** Of what each of them breaks `npm test` has another variant, whose counterexample is not behind so many states. */
const FAR: ReadonlySet<string> = new Set([
  'a lease without owner check',
  'a worker’s suspect beside one of a delivery',
  'a completion of who has lost its task',
  'a task’s end is not kept',
  'the operation is not told',
  'which status was applied last is not noted',
]);

/** Some would be seen by that before they break what they are about. */
const unsaid = ({ said: _said, ...system }: System): System => system;

describe('broken variants, caught by the same exploration with the invariant that they break', () => {
  it.each(inThisForm(VARIANTS, ([is]) => !FAR.has(is)))('%s', (_is, system, shownBy, breaks, steps) => {
    const shown = breaks === SAID ? system : unsaid(system);
    const { breach } = exploreScenario(SCENARIOS[shownBy], shown, { drains: false });
    const counterexample = breach ? told(breach) : 'not caught';
    expect(breach?.invariant, counterexample).toBe(breaks);
    expect(breach?.trace, counterexample).toHaveLength(steps);
  });

  // Behind more states than `npm run test:rows` has the time for.
  it.each(LONG ? [broken.PLACE_GIVEN_UP] : [])(
    'the place for a suspect is given up where an answer is lost',
    (system) => {
      const { observedPoison } = SCENARIOS;
      const scenario = { ...observedPoison, budget: { ...observedPoison.budget, resends: 1 } };
      const { breach } = exploreScenario(scenario, unsaid(system), { drains: false });
      const counterexample = breach ? told(breach) : 'not caught';
      expect(breach?.invariant, counterexample).toBe(CHARGED);
      expect(breach?.trace, counterexample).toHaveLength(18);
    },
    TIMEOUT_MS,
  );

  it('a parked record that is not told when its task is free', () => {
    const { breach } = exploreScenario(SCENARIOS.inboxTask, broken.PARKED_FOR_GOOD);
    const counterexample = breach ? told(breach) : 'not caught';
    expect(breach?.invariant, counterexample).toBe('every event comes to its end');
    expect(counterexample).toMatch(/(completed|working) is queued, acknowledged/);
  });

  it('a report that is not made safe when its seller has given up', () => {
    const { breach } = exploreScenario(SCENARIOS.reports, windows.NOT_MADE_SAFE);
    expect(breach?.invariant, breach ? told(breach) : 'not caught').toBe('every window comes, or is held');
  });

  it('a first end that stays the first where it is never handled', () => {
    const { breach } = exploreScenario(SCENARIOS.toldTerminals, unsaid(apart.FIRST_STAYS));
    expect(breach?.invariant, breach ? told(breach) : 'not caught').toBe(OLDER);
  });

  it('a counterexample is told step by step', () => {
    const { breach } = exploreScenario(SCENARIOS.inline, broken.BURNED_BEFORE_THE_CLAIM, { drains: false });
    expect(breach && told(breach).split('\n')).toEqual([
      'no terminal 4xx before the event is safe: A was answered 401 replayed, but its record is not there',
      '   1. the seller sends A (nonce 1) to process 1: delivery #1',
      '   2. process 1, delivery #1: step 1 of the accept of A',
      '   3. the same bytes of A (nonce 1) come again, to process 1: delivery #2',
      '   4. process 1, delivery #2: accept(A) → replayed',
      '   5. process 1, delivery #2 answers 401 (replayed) for A',
    ]);
  });
});
