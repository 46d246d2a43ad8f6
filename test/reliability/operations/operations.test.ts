import { describe, expect, it } from 'vitest';
import { endedWatch, rowOf, type Stored, storedIn } from '../../../src/registrations/for-tests.ts';
import type { RegistrationRow } from '../../../src/stores/index.ts';
import { LONG } from '../form.ts';
import { told } from '../model/explore.ts';
import { explore, type Scenario } from './explore.ts';
import { type Broken, type Invariant, RETENTION_MS } from './world.ts';
import { tell } from '../../support/tell.ts';

const NOTHING = { repeater: 0, poller: 0, webhook: 0, worker: 0, time: 0 } as const;
const more = LONG ? 1 : 0;

/** By name: the world, how many states it has at least in the short form, and how far operations come in it. */
const SCENARIOS = {
  'calls of a seller that takes its time': [
    { seller: 'submits', creators: 1, left: { ...NOTHING, repeater: 1 + more, webhook: 1, time: 3 } },
    2_200,
    ['calling', 'ended', 'open', 'orphaned'],
  ],
  'calls that several processes repeat': [
    { seller: 'submits', creators: 1, left: { ...NOTHING, repeater: 2 + more, time: 3 + more } },
    700,
    ['calling', 'open', 'orphaned'],
  ],
  'polls by two processes': [
    { seller: 'submits', creators: 1, left: { ...NOTHING, poller: 2, worker: 1, time: 2 + more } },
    1_200,
    ['calling', 'ended', 'open'],
  ],
  'a poll beside a webhook': [
    {
      seller: 'submits',
      creators: 1,
      left: { ...NOTHING, poller: 1 + more, webhook: 1, worker: 1, time: 1 + more },
    },
    1_400,
    ['calling', 'ended', 'open'],
  ],
  'a seller that answers at once': [
    { seller: 'completes', creators: 1, left: { ...NOTHING, repeater: 1 + more, worker: 1, time: 3 } },
    700,
    ['calling', 'ended', 'orphaned'],
  ],
  // Where it refuses it and then does the work, nothing of it is ever `refused`: that is not among its states below.
  'a seller that refuses the registration': [
    {
      seller: 'refuses the registration',
      creators: 1,
      left: { ...NOTHING, repeater: 1 + more, poller: 1, worker: more, time: 3 },
    },
    1_150,
    ['calling', 'open', 'orphaned'],
  ],
  'a seller that refuses the call': [
    { seller: 'refuses', creators: 1, left: { ...NOTHING, repeater: 1 + more, time: 3 } },
    360,
    ['calling', 'orphaned', 'refused'],
  ],
  'two operations that are answered with one task': [
    {
      seller: 'submits',
      creators: 2,
      left: { ...NOTHING, poller: more, webhook: 1, time: more },
    },
    800,
    ['calling', 'ended', 'open'],
  ],
} as const satisfies Record<string, readonly [Scenario, number, readonly string[]]>;

type ScenarioName = keyof typeof SCENARIOS;

const TIMEOUT_MS = LONG ? 1_800_000 : 120_000;

describe('every order of the steps of an operation’s life', () => {
  it.each(Object.entries(SCENARIOS))(
    '%s: nobody calls or polls beside another, and what the seller did is never forgotten',
    async (_name, [scenario, atLeast, states]) => {
      const found = await explore(scenario);
      expect(found.breach && told({ ...found.breach })).toBeUndefined();
      if (LONG) tell({ states: found.states });
      expect(found.states).toBeGreaterThanOrEqual(atLeast);
      if (!LONG) expect([...found.seen].toSorted()).toEqual(states);
    },
    TIMEOUT_MS,
  );
});

/** A variant that reads or writes operations otherwise. */
function operationsAs(change: {
  readonly read?: (stored: Stored) => Stored;
  readonly write?: (stored: Stored, before: Stored | undefined) => Stored;
}): Broken {
  const { read = (stored) => stored, write = (stored) => stored } = change;
  const as = (row: RegistrationRow, stored: Stored): RegistrationRow =>
    rowOf({ agentUrl: row.sender, operationId: row.id }, stored, row.dueAt, row.expiresAt);
  return {
    rows: (rows) => ({
      ...rows,
      get: (kind, id) => {
        const row = rows.get(kind, id);
        return row && kind === 'operation' ? as(row, read(storedIn(row))) : row;
      },
      save: (row) => {
        if (row.kind !== 'operation') return rows.save(row);
        const before = rows.get('operation', row.id);
        return rows.save(as(row, write(storedIn(row), before && storedIn(before))));
      },
    }),
  };
}

const REOPENS = operationsAs({ read: (stored) => ({ ...stored, state: 'calling' }) });

const KEEPS_ITS_KEY = operationsAs({
  write: (stored, before) => ({ ...stored, requestKey: before?.requestKey ?? stored.requestKey }),
});

const KEEPS_ARGUMENTS = operationsAs({
  write: (stored, before) => ({ ...stored, ...(before?.sealed !== undefined && { sealed: before.sealed }) }),
});

const ENDS_THE_WATCH: Broken = {
  rows: (rows, now) => ({
    ...rows,
    save: (row) => {
      rows.save(row);
      if (row.kind !== 'operation' || row.list !== 'ended') return;
      const watch = rows.get('watch', 'task-1');
      if (watch) rows.save(endedWatch(watch, now + RETENTION_MS));
    },
  }),
};

const POLLS_WITHOUT_LEASE: Broken = {
  rows: (rows, now) => ({
    ...rows,
    save: (row) => rows.save(row.kind === 'watch' && row.list === 'watched' ? { ...row, dueAt: now } : row),
  }),
};

const SEES_NO_END: Broken = { rows: (rows) => ({ ...rows, taskEnd: () => undefined }) };

const CALLS = 'calls of a seller that takes its time';
const REPEATED = 'calls that several processes repeat';
const POLLS = 'polls by two processes';
const BESIDE = 'a poll beside a webhook';

const VARIANTS: readonly (readonly [is: string, broken: Broken, shownBy: ScenarioName, breaks: Invariant])[] =
  [
    ['a settle that does not look at the state', REOPENS, CALLS, 'an operation that has ended stays so'],
    [
      'a refusal without a new request key',
      KEEPS_ITS_KEY,
      'a seller that refuses the registration',
      'a call is repeated byte for byte, and its registration is dropped once, with a new key',
    ],
    [
      'what is due is given, and not held',
      { isDueHeld: false },
      REPEATED,
      'one process calls by one request key within one lease',
    ],
    ['an unsafe end ends the watch', ENDS_THE_WATCH, BESIDE, 'what the seller did is never forgotten'],
    ['arguments are kept', KEEPS_ARGUMENTS, CALLS, 'one that is over is not due, and keeps no arguments'],
    ['a poll without a lease', POLLS_WITHOUT_LEASE, POLLS, 'one process polls a task within one lease'],
    ['a poll that does not look at the end', SEES_NO_END, POLLS, 'nobody polls after a safe end'],
  ];

describe('broken variants, caught by the same exploration with the invariant that they break', () => {
  it.each(VARIANTS)(
    '%s',
    async (_is, broken, shownBy, breaks) => {
      const { breach } = await explore(SCENARIOS[shownBy][0], broken);
      expect(breach?.invariant, breach ? told({ ...breach }) : 'not caught').toBe(breaks);
    },
    TIMEOUT_MS,
  );
});
