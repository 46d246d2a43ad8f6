import { afterAll, describe, expect, it } from 'vitest';
import { inThisForm, LONG } from './form.ts';
import { explore, told } from './model/explore.ts';
import { modelOf } from './model/model.ts';
import type { Protocol } from './model/world.ts';
import { SOUND } from './model/protocol.ts';
import type { PlannedName } from './model/scenarios.ts';
import { PLANNED_NAMES, planned } from './model/scenarios.ts';
import { differingFutures } from './model/soundness.ts';
import { DRIVEN } from './model/system.ts';
import * as broken from './model/broken.ts';
import type { System } from './model/system.ts';
import type { Invariant, World } from './model/world.ts';
import type { Exploration, Model } from './model/explore.ts';
import { tell } from '../support/tell.ts';

/**
 * The rules as every store but memory and SQLite runs them (admission.md §8.3 to §8.8): an operation is planned by the
 * driver's own code on a snapshot that may be old by then, and taken where what it has read is still so. Anything can
 * happen in between; a process can die there.
 */

/** States that each world has at least, in the short form. */
const AT_LEAST: Record<PlannedName, number> = {
  inline: 2000,
  inlineResends: 3000,
  inlineRenewals: 2600,
  inlineTask: 5000,
  inlineTerminals: 3500,
  inlineTransaction: 620,
  inbox: 3700,
  inboxTask: 3300,
  inboxResends: 1080,
  mixed: 2500,
  mixedTask: 2600,
  poison: 30_000,
  told: 5900,
  toldOperation: 6000,
  toldAsked: 7000,
  reports: 1,
};

const TIMEOUT_MS = LONG ? 1_800_000 : 300_000;

function worldsOf(
  name: PlannedName,
  {
    system = DRIVEN,
    protocol = SOUND,
    drains = true,
    isLong = false,
  }: {
    readonly system?: System;
    readonly protocol?: Protocol;
    readonly drains?: boolean;
    readonly isLong?: boolean;
  },
): Model<World, Invariant> {
  return modelOf({ scenario: planned(name, isLong), system, protocol, drains });
}

/** Notes the steps that others had overtaken. */
function noting(
  model: Model<World, Invariant>,
  seen: { refused: number; planned: number },
): Model<World, Invariant> {
  return {
    ...model,
    next: (world) => {
      const steps = model.next(world);
      for (const { label } of steps) {
        if (label.includes('refused')) seen.refused += 1;
        if (label.includes('plans')) seen.planned += 1;
      }
      return steps;
    },
  };
}

/** `npm test` leaves out the largest: they differ from smaller ones in one event, or one channel more. */
const LARGEST: readonly PlannedName[] = ['poison', 'toldOperation', 'toldAsked'];
const WORLDS = inThisForm(PLANNED_NAMES, (name) => !LARGEST.includes(name));
const SOUND_WORLDS = inThisForm(
  ['inlineTransaction', 'inboxResends'] as const,
  (name) => name === 'inlineTransaction',
);

describe('every state of the driver’s plans, two processes, a seller and a clock', () => {
  const visited = { states: 0, steps: 0 };

  it.each(WORLDS)(
    '%s: nothing acknowledged is lost, nothing is completed twice, every event comes to its end',
    (name) => {
      const seen = { refused: 0, planned: 0 };
      const found = explore(noting(worldsOf(name, { isLong: LONG }), seen));
      visited.states += found.states;
      visited.steps += found.steps;
      expect(found.breach && told(found.breach)).toBeUndefined();
      if (LONG) tell({ states: found.states, steps: found.steps });
      expect(found.states).toBeGreaterThanOrEqual(AT_LEAST[name]);
      expect(Math.min(seen.planned, seen.refused)).toBeGreaterThan(0);
    },
    TIMEOUT_MS,
  );

  it.each(SOUND_WORLDS)(
    '%s: worlds that count as one have the same future',
    (name) => {
      const { forms, keys, differing } = differingFutures(worldsOf(name, { drains: false }), formOf);
      expect(differing).toEqual([]);
      expect(forms).toBeGreaterThan(keys);
    },
    TIMEOUT_MS,
  );

  afterAll(() => {
    console.info(`explored ${visited.states} states, ${visited.steps} steps`);
  });
});

/** All of a world, names, instants and which rows are the very same ones included. */
function formOf(world: World): string {
  const rows = new Map<unknown, number>();
  const placeOf = (row: unknown): number => {
    const place = rows.get(row) ?? rows.size;
    rows.set(row, place);
    return place;
  };
  return JSON.stringify(world, (_name, value: unknown) =>
    value instanceof Map ? [...value].map(([key, row]) => [key, placeOf(row), row]) : value,
  );
}

const OVERLAP = 'handlers of one task never overlap under live leases';
const SAID = 'a task’s end and last status are said as they were told and handled';
const PULLED = 'a pulled report is a duplicate exactly where its window came before';
const ENDS = 'every event comes to its end';

/** A condition taken out, the world that shows it, what it breaks, the steps of a shortest counterexample. */
type Fault = readonly [
  is: string,
  protocol: Partial<Protocol>,
  shownBy: PlannedName,
  breaks: Invariant,
  steps: number,
];

const FAULTS: readonly Fault[] = [
  ['a plan is taken without its condition', { compares: () => false }, 'inline', OVERLAP, 8],
  ['the same, with workers', { compares: () => false }, 'inbox', OVERLAP, 12],
  [
    'a fast insert beside a slow plan: what has to be absent is not compared',
    { compares: ({ version }) => version !== undefined },
    'inline',
    OVERLAP,
    8,
  ],
  [
    'the same, beside a worker’s plan',
    { compares: ({ version }) => version !== undefined },
    'inbox',
    OVERLAP,
    16,
  ],
  ['two plans on one snapshot', { takesSiblings: true }, 'inline', OVERLAP, 8],
  ['two workers’ plans on one snapshot', { takesSiblings: true }, 'inboxTask', OVERLAP, 12],
  [
    'a known task is taken without its version',
    { compares: ({ id, version }) => id.kind !== 'task' || version === undefined },
    'inlineTask',
    'an older status is never applied after a newer one',
    15,
  ],
  ['the same, by an accept', { compares: ({ id }) => id.kind !== 'task' }, 'inlineTask', OVERLAP, 8],
  ['the same, by another channel', { compares: ({ id }) => id.kind !== 'task' }, 'told', SAID, 10],
  [
    'the same, of the operation that the task is of',
    { compares: ({ id }) => id.kind !== 'task' },
    'toldOperation',
    SAID,
    10,
  ],
  [
    'an account is taken without its version',
    { compares: ({ id }) => id.kind !== 'stream' },
    'reports',
    PULLED,
    6,
  ],
  [
    'a report that claims the window is taken without its version',
    { compares: ({ id }, isWritten) => id.kind !== 'record' || isWritten },
    'reports',
    'a webhook says that it repeats exactly where its window came before',
    7,
  ],
  ['a lease from an old clock', { refusesOld: false }, 'inlineRenewals', OVERLAP, 12],
];

/** The counterexample, where there is one. */
function caught(found: Exploration<Invariant>): string {
  return found.breach ? told(found.breach) : 'not caught';
}

describe('a condition that is taken out is caught, with the invariant that it breaks', () => {
  it.each(inThisForm(FAULTS, () => true))('%s', (_is, protocol, shownBy, breaks, steps) => {
    const found = explore(worldsOf(shownBy, { protocol: { ...SOUND, ...protocol }, drains: false }));
    expect(found.breach?.invariant, caught(found)).toBe(breaks);
    expect(found.breach?.trace, caught(found)).toHaveLength(steps);
  });

  it('a record that is parked between a plan and its commit, and does not say so on the task', () => {
    const found = explore(worldsOf('inboxTask', { protocol: { ...SOUND, parksOnTask: false } }));
    expect(found.breach?.invariant, caught(found)).toBe(ENDS);
    expect(caught(found)).toContain('completed is queued, acknowledged');
  });

  it('a counterexample is told step by step', () => {
    const found = explore(
      worldsOf('inline', { protocol: { ...SOUND, compares: () => false }, drains: false }),
    );
    expect(caught(found).split('\n')).toEqual([
      `${OVERLAP}: handlers of A and A run at once`,
      '   1. the seller sends A (nonce 1) to process 1: delivery #1',
      '   2. process 1, delivery #1 plans on what it sees',
      '   3. the seller sends A (nonce 2) to process 1: delivery #2',
      '   4. process 1, delivery #2 plans on what it sees',
      '   5. process 1, delivery #1: accept(A) → won, run 1',
      '   6. process 1, delivery #1: the handler of A starts',
      '   7. process 1, delivery #2: accept(A) → won, run 1',
      '   8. process 1, delivery #2: the handler of A starts',
    ]);
  });
});

/** Variants of the rules themselves that are broken with every operation one step (`model.test.ts`), here too. */
const BROKEN_RULES: readonly (readonly [
  is: string,
  system: System,
  shownBy: PlannedName,
  breaks: Invariant,
])[] = [
  [
    'a known nonce is replayed, safe or not',
    broken.REPLAYED_UNLESS_NEW,
    'inline',
    'no terminal 4xx before the event is safe',
  ],
  [
    '2xx for an inline duplicate in flight',
    broken.ACKNOWLEDGED_IN_FLIGHT,
    'inline',
    'an acknowledged event is never lost',
  ],
  ['completion without owner check', broken.COMPLETION_WITHOUT_OWNER, 'inline', 'an event is completed once'],
];

it.each(inThisForm(BROKEN_RULES, () => true))(
  'broken rules are caught by the driver’s plans too: %s',
  (_is, system, shownBy, breaks) => {
    const found = explore(worldsOf(shownBy, { system, drains: false }));
    expect(found.breach?.invariant, caught(found)).toBe(breaks);
  },
);
