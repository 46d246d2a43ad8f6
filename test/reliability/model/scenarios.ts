import type { Budget, Scenario } from './world.ts';

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
};

const A = { name: 'A', copies: 1 } as const;
const WORKING = { name: 'working', copies: 1, task: { id: 't', instant: 1, terminal: false } } as const;
const COMPLETED = { name: 'completed', copies: 1, task: { id: 't', instant: 2, terminal: true } } as const;

/** More than a lease. */
const OVER_A_LEASE_MS = 8_001;
/** More than half of one: it can be renewed in between. */
const HALF_A_LEASE_MS = 5_000;

const INLINE: Scenario = {
  name: 'inline',
  events: [A],
  modes: ['inline', 'inline'],
  workers: false,
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

/** The worlds by what they are about. */
export type ScenarioName =
  | 'inline'
  | 'inlineResends'
  | 'inlineDeadline'
  | 'inlineRenewals'
  | 'inlineDead'
  | 'inlineThree'
  | 'inlineTask'
  | 'inlineSameInstant'
  | 'inlineChanged'
  | 'inlineConflict'
  | 'inlineTransaction'
  | 'inbox'
  | 'inboxTask'
  | 'inboxResends'
  | 'inboxTransaction'
  | 'mixed'
  | 'mixedTask';

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
};

/** The same world with more misfortune, for the long form. */
export function worse(scenario: Scenario): Scenario {
  const { crashes, jumps, resends } = scenario.budget;
  const budget = { ...scenario.budget, crashes: crashes + 1, jumps: jumps + 1, resends: resends + 1 };
  return { ...scenario, budget };
}
