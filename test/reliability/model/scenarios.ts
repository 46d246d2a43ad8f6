import { LONGEST_LEASE_MS, LONGEST_WAIT_MS, operationRowId } from '../../../src/stores/for-tests.ts';
import type { Budget, Scenario, ToldEvent } from './world.ts';

const NONE: Budget = {
  sends: 0,
  crashes: 0,
  jumps: 0,
  failures: 0,
  permanent: 0,
  deadlines: 0,
  resends: 0,
  renewals: 0,
  returns: 0,
  losses: 0,
};

const A = { name: 'A', copies: 1 } as const;
const WORKING = { name: 'working', copies: 1, task: { id: 't', instant: 1, terminal: false } } as const;
const COMPLETED = { name: 'completed', copies: 1, task: { id: 't', instant: 2, terminal: true } } as const;

const SOLD = {
  name: 'sold',
  copies: 1,
  task: { id: 't', instant: 1, terminal: true, says: 'sold' },
} as const;
const UNSOLD = {
  name: 'unsold',
  copies: 1,
  task: { id: 't', instant: 2, terminal: true, says: 'unsold' },
} as const;
/** Newer than either. */
const STILL = {
  name: 'still working',
  copies: 1,
  task: { id: 't', instant: 3, terminal: false, keepsEnd: true },
} as const;
/** Of one task, in no order: an instant ahead of the clock that was set back sets no mark. */
const ONE = { name: 'one', copies: 1, task: { id: 't', terminal: false } } as const;
const OTHER = { ...ONE, name: 'other' } as const;
const POISON = { name: 'poison', copies: 1, poison: true } as const;

const OPERATION = operationRowId('o');

type Task = NonNullable<ToldEvent['task']>;

/** A status of task t, by one of several channels. */
function tells(
  source: NonNullable<Task['told']>['source'],
  status: 'working' | 'input' | 'completed',
  more: Partial<Pick<Task, 'id' | 'instant'>> & { readonly operation?: string } = {},
): ToldEvent {
  const { id = 't', instant, operation } = more;
  return {
    name: [source, status, id, instant].join(' ').trim(),
    copies: 1,
    task: {
      id,
      ...(instant !== undefined && { instant }),
      terminal: status === 'completed',
      told: { source, status, ...(operation !== undefined && { operation }) },
    },
  };
}

const POLL = tells('poll', 'completed');

/** More than a lease. */
const OVER_A_LEASE_MS = 8_001;
/** More than half of one: it can be renewed in between. */
const HALF_A_LEASE_MS = 5_000;

/** A lease that was shortened to the longest is over after a jump. */
const SET_BACK = {
  jumpMs: LONGEST_LEASE_MS + 1,
  backMs: 100 * LONGEST_WAIT_MS,
  events: [ONE, OTHER],
} as const;

const INLINE: Scenario = {
  name: 'inline',
  events: [A],
  modes: ['inline', 'inline'],
  workers: false,
  runs: 1,
  effects: 'outside',
  onChanged: 'first-wins',
  retry: { attempts: 3, crashes: 2 },
  jumpMs: OVER_A_LEASE_MS,
  threads: 2,
  budget: { ...NONE, sends: 3, crashes: 2, jumps: 2, failures: 1 },
};

const INBOX: Scenario = {
  ...INLINE,
  modes: ['inbox', 'inbox'],
  workers: true,
  budget: { ...NONE, sends: 2, crashes: 2, jumps: 2, failures: 1, returns: 1 },
};

/** A worker runs what was observed, in both modes. */
const TOLD: Scenario = {
  ...INLINE,
  workers: true,
  budget: { ...NONE, sends: 3, crashes: 1, jumps: 1, failures: 1 },
};

/** Of three events: one misfortune is what the short form has the time for. */
const FAILING: Scenario = { ...TOLD, budget: { ...NONE, sends: 3, failures: 1 } };
const LATE: Scenario = { ...TOLD, budget: { ...NONE, sends: 3, jumps: 1 } };

const REPORT = { name: 'report', copies: 1, report: 'sent' } as const;
const PULLS = [
  { name: 'pull 1', copies: 1, report: 'pulled' },
  { name: 'pull 2', copies: 1, report: 'pulled' },
] as const;

/** A worker runs what was pulled, in both modes. */
const REPORTS: Scenario = {
  ...TOLD,
  budget: { ...NONE, sends: 2, crashes: 1, failures: 1, permanent: 1, losses: 1 },
};

/** The worlds by what they are about. */
export type ScenarioName =
  | 'inline'
  | 'inlineResends'
  | 'inlineDeadline'
  | 'inlineRenewals'
  | 'inlineSetBack'
  | 'inboxSetBack'
  | 'inlineDead'
  | 'inlineThree'
  | 'inlineTask'
  | 'inlineSameInstant'
  | 'inlineTerminals'
  | 'inlineKept'
  | 'inlineChanged'
  | 'inlineConflict'
  | 'inlineTransaction'
  | 'inbox'
  | 'inboxTask'
  | 'inboxKept'
  | 'inboxResends'
  | 'inboxTransaction'
  | 'mixed'
  | 'mixedTask'
  | 'mixedTerminals'
  | 'poison'
  | 'inlinePoison'
  | 'observedPoison'
  | 'told'
  | 'toldInbox'
  | 'toldTerminals'
  | 'toldOlder'
  | 'toldOperation'
  | 'toldJoined'
  | 'toldStatuses'
  | 'toldAsked'
  | 'reports'
  | 'reportsInbox'
  | 'reportsTwice';

/** Worlds that are visited whole, each with the misfortunes that it is about. */
export const SCENARIOS: Record<ScenarioName, Scenario> = {
  inline: INLINE,
  inlineResends: {
    ...INLINE,
    name: 'inline, answers of the store lost',
    budget: { ...NONE, sends: 2, crashes: 1, jumps: 1, failures: 1, resends: 2 },
  },
  inlineDeadline: {
    ...INLINE,
    name: 'inline, handlers that go on past their deadline',
    budget: { ...NONE, sends: 3, crashes: 1, jumps: 2, failures: 1, deadlines: 1 },
  },
  inlineRenewals: {
    ...INLINE,
    name: 'inline, leases renewed',
    jumpMs: HALF_A_LEASE_MS,
    budget: { ...NONE, sends: 2, crashes: 1, jumps: 4, deadlines: 1, renewals: 2 },
  },
  inlineSetBack: {
    ...INLINE,
    name: 'inline, the clock is set back by more than the longest wait',
    ...SET_BACK,
    budget: { ...NONE, sends: 2, crashes: 1, jumps: 2 },
  },
  inboxSetBack: {
    ...INBOX,
    name: 'inbox, the clock is set back by more than the longest wait',
    ...SET_BACK,
    budget: { ...NONE, sends: 2, crashes: 1, jumps: 2 },
  },
  inlineDead: {
    ...INLINE,
    name: 'inline, runs used up',
    retry: { attempts: 2, crashes: 1 },
    budget: { ...NONE, sends: 3, crashes: 1, jumps: 1, failures: 2, permanent: 1 },
  },
  inlineTask: {
    ...INLINE,
    name: 'inline, two statuses of a task',
    events: [WORKING, COMPLETED],
    budget: { ...NONE, sends: 3, crashes: 1, jumps: 1, failures: 1 },
  },
  inlineSameInstant: {
    ...INLINE,
    name: 'inline, two statuses of a task at one instant',
    events: [{ ...WORKING, task: { ...WORKING.task, instant: 2 } }, COMPLETED],
    budget: { ...NONE, sends: 2, crashes: 1, jumps: 1, failures: 1 },
  },
  inlineTerminals: {
    ...INLINE,
    name: 'inline, two outcomes of a task in edition 3.2',
    events: [SOLD, UNSOLD],
    budget: { ...NONE, sends: 3, crashes: 1, jumps: 1, failures: 1 },
  },
  inlineKept: {
    ...INLINE,
    name: 'inline, an end and a newer status of a task in edition 3.2',
    events: [SOLD, STILL],
    budget: { ...NONE, sends: 2, crashes: 1, jumps: 1, failures: 1 },
  },
  inlineThree: {
    ...INLINE,
    name: 'inline, three deliveries at once',
    threads: 3,
    budget: { ...NONE, sends: 3, crashes: 1, jumps: 1, failures: 1 },
  },
  inlineChanged: {
    ...INLINE,
    name: 'inline, a changed payload',
    events: [{ ...A, copies: 2 }],
    budget: { ...NONE, sends: 3, crashes: 1, jumps: 1, failures: 1 },
  },
  inlineConflict: {
    ...INLINE,
    name: 'inline, a changed payload in edition 3.2',
    events: [{ ...A, copies: 2 }],
    onChanged: 'conflict',
    budget: { ...NONE, sends: 3, crashes: 1, jumps: 1, failures: 1 },
  },
  inlineTransaction: {
    ...INLINE,
    name: 'inline, effects in a transaction',
    effects: 'transaction',
    budget: { ...NONE, sends: 3, crashes: 1, jumps: 2, failures: 1, deadlines: 1 },
  },
  inbox: { ...INBOX, name: 'inbox' },
  inboxTask: {
    ...INBOX,
    name: 'inbox, two statuses of a task',
    events: [WORKING, COMPLETED],
    budget: { ...NONE, sends: 2, crashes: 1, jumps: 2, failures: 1 },
  },
  inboxKept: {
    ...INBOX,
    name: 'inbox, an end and a newer status of a task in edition 3.2',
    events: [SOLD, STILL],
    budget: { ...NONE, sends: 2, crashes: 1, jumps: 1, failures: 1 },
  },
  inboxResends: {
    ...INBOX,
    name: 'inbox, answers of the store lost',
    budget: { ...NONE, sends: 2, crashes: 1, jumps: 1, failures: 1, resends: 1 },
  },
  inboxTransaction: {
    ...INBOX,
    name: 'inbox, effects in a transaction',
    effects: 'transaction',
  },
  mixed: {
    ...INBOX,
    name: 'an inline door and an inbox on one store',
    modes: ['inline', 'inbox'],
    budget: { ...NONE, sends: 2, crashes: 1, jumps: 2, failures: 1 },
  },
  mixedTask: {
    ...INBOX,
    name: 'an inline door and an inbox, two statuses of a task',
    modes: ['inline', 'inbox'],
    events: [WORKING, COMPLETED],
    budget: { ...NONE, sends: 2, crashes: 1, jumps: 1, failures: 1 },
  },
  mixedTerminals: {
    ...INBOX,
    name: 'an inline door and an inbox, two outcomes of a task in edition 3.2',
    modes: ['inline', 'inbox'],
    events: [SOLD, UNSOLD],
    budget: { ...NONE, sends: 2, crashes: 1, jumps: 1, failures: 1 },
  },
  poison: {
    ...INBOX,
    name: 'inbox, an event whose handler ends its process, and one that is leased with it',
    events: [A, POISON],
    runs: 2,
    retry: { attempts: 20, crashes: 1 },
    budget: { ...NONE, sends: 2, crashes: 1, jumps: 2 },
  },
  inlinePoison: {
    ...INLINE,
    name: 'inline, an event whose handler ends its process, and one that comes with it',
    events: [A, POISON],
    retry: { attempts: 20, crashes: 1 },
    budget: { ...NONE, sends: 3, jumps: 2 },
  },
  observedPoison: {
    ...TOLD,
    name: 'inline, an event whose handler ends its process, and an observation that a worker runs beside it',
    events: [tells('poll', 'working'), POISON],
    retry: { attempts: 20, crashes: 1 },
    budget: { ...NONE, sends: 3, crashes: 1, jumps: 2 },
  },
  told: {
    ...TOLD,
    name: 'inline, an end that a webhook and a poll tell',
    events: [tells('webhook', 'completed', { instant: 1 }), POLL],
  },
  toldInbox: {
    ...TOLD,
    name: 'inbox, an end that a webhook and a poll tell',
    modes: ['inbox', 'inbox'],
    events: [tells('webhook', 'completed', { instant: 1 }), POLL],
  },
  toldTerminals: {
    ...FAILING,
    name: 'inline, two ends by webhooks and one by a poll',
    events: [
      tells('webhook', 'completed', { instant: 1 }),
      tells('webhook', 'completed', { instant: 2 }),
      POLL,
    ],
  },
  toldOlder: {
    ...FAILING,
    name: 'inline, an end that a poll tells too, and a webhook that is newer than that of the end',
    events: [
      tells('webhook', 'completed', { instant: 1 }),
      tells('webhook', 'working', { instant: 2 }),
      POLL,
    ],
  },
  toldOperation: {
    ...TOLD,
    name: 'inline, an end that an answer tells by its operation, and a webhook by its task too',
    events: [
      tells('response', 'completed', { id: OPERATION }),
      tells('webhook', 'completed', { instant: 1, operation: OPERATION }),
    ],
  },
  toldJoined: {
    ...FAILING,
    name: 'inline, an end that an answer tells, a webhook, and a poll that names the task alone',
    events: [
      tells('response', 'completed', { id: OPERATION }),
      tells('webhook', 'completed', { instant: 1, operation: OPERATION }),
      POLL,
    ],
  },
  toldStatuses: {
    ...LATE,
    name: 'inline, a status that a webhook and a poll tell, and an end',
    events: [tells('webhook', 'working', { instant: 1 }), tells('poll', 'working', { instant: 1 }), POLL],
  },
  toldAsked: {
    ...LATE,
    name: 'inline, statuses that were asked for, and one of a webhook',
    events: [tells('webhook', 'input', { instant: 1 }), tells('poll', 'working'), tells('poll', 'input')],
  },
  reports: {
    ...REPORTS,
    name: 'inline, a window that a webhook and pulls bring',
    events: [REPORT, ...PULLS],
  },
  reportsInbox: {
    ...REPORTS,
    name: 'inbox, a window that a webhook and pulls bring',
    modes: ['inbox', 'inbox'],
    events: [REPORT, ...PULLS],
  },
  reportsTwice: {
    ...REPORTS,
    name: 'inline, a window that two webhooks and pulls bring',
    events: [REPORT, { ...REPORT, name: 'report again' }, ...PULLS],
    budget: { ...NONE, sends: 3, losses: 1 },
  },
};

/** Worlds in which an operation is a plan and a commit: more can come in between, so that each has less misfortune. */
export type PlannedName =
  | 'inline'
  | 'inlineResends'
  | 'inlineRenewals'
  | 'inlineTask'
  | 'inlineTerminals'
  | 'inlineTransaction'
  | 'inbox'
  | 'inboxTask'
  | 'inboxResends'
  | 'mixed'
  | 'mixedTask'
  | 'poison'
  | 'told'
  | 'toldOperation'
  | 'toldAsked'
  | 'reports';

/** Of the short form, and what the long one has more. */
type PlannedBudget = readonly [budget: Partial<Budget>, more: Partial<Budget>];

const PLANNED: Record<PlannedName, PlannedBudget> = {
  inline: [{ sends: 2, crashes: 1, jumps: 1, failures: 1 }, { sends: 3 }],
  inlineResends: [{ sends: 2, crashes: 1, jumps: 1, resends: 1 }, { resends: 2 }],
  inlineRenewals: [{ sends: 2, jumps: 2, renewals: 1 }, { crashes: 1 }],
  inlineTask: [{ sends: 2, jumps: 1, failures: 1 }, { crashes: 1 }],
  inlineTerminals: [{ sends: 2, jumps: 1, failures: 1 }, { crashes: 1 }],
  inlineTransaction: [
    { sends: 2, crashes: 1, jumps: 1 },
    { sends: 3, failures: 1 },
  ],
  inbox: [
    { sends: 2, crashes: 1, jumps: 1 },
    { failures: 1, returns: 1 },
  ],
  inboxTask: [{ sends: 2, jumps: 1 }, { crashes: 1 }],
  inboxResends: [{ sends: 2, resends: 1 }, { jumps: 1 }],
  mixed: [{ sends: 2, jumps: 1 }, { crashes: 1 }],
  mixedTask: [{ sends: 2 }, { jumps: 1, crashes: 1 }],
  poison: [{ sends: 2, jumps: 2 }, { crashes: 1 }],
  told: [{ sends: 3, failures: 1 }, { crashes: 1 }],
  toldOperation: [{ sends: 3, failures: 1 }, { crashes: 1 }],
  toldAsked: [{ sends: 2, jumps: 1 }, { sends: 3 }],
  reports: [
    { sends: 2, losses: 1 },
    { failures: 1, crashes: 1 },
  ],
};

export const PLANNED_NAMES = Object.keys(PLANNED) as readonly PlannedName[];

/** @param isLong the long form of it. */
export function planned(name: PlannedName, isLong: boolean): Scenario {
  const scenario = SCENARIOS[name];
  const [budget, more] = PLANNED[name];
  return { ...scenario, budget: { ...NONE, ...budget, ...(isLong && more) } };
}

/** In the long form they have over two million states. */
const LATE_STATUSES: ReadonlySet<Scenario> = new Set([SCENARIOS.toldStatuses, SCENARIOS.toldAsked]);

/**
 * The same world with more misfortune, for the long form. One whose clock is set back, of four events, or of statuses that two
 * channels tell late gets one more crash alone: with one more jump too, they took over ten minutes of processor time, or are too
 * large.
 */
export function worse(scenario: Scenario): Scenario {
  const { crashes, jumps, resends } = scenario.budget;
  const isLarge = scenario.backMs !== undefined || scenario.events.length > 3 || LATE_STATUSES.has(scenario);
  const more = isLarge ? {} : { jumps: jumps + 1, resends: resends + 1 };
  const budget = { ...scenario.budget, crashes: crashes + 1, ...more };
  return { ...scenario, budget };
}
