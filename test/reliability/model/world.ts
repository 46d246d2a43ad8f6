import type { AcceptDecision, RetryLimits, ToldClaim } from '../../../src/stores/index.ts';
import type { Breach } from './explore.ts';
import type { Entry } from '../../../src/stores/for-tests.ts';
import type { Kept } from './rows.ts';
import { NOTHING } from './rows.ts';
import { BUY, followed } from './window.ts';

/** What the exploration proves, by name. */
export type Invariant =
  | 'an acknowledged event is never lost'
  | 'an event is completed once'
  | 'handlers of one task never overlap under live leases'
  | 'no terminal 4xx before the event is safe'
  | 'the first copy is what is handled'
  | 'an older status is never applied after a newer one'
  | 'a completed event was handled'
  | 'bytes that come again use up no attempts'
  | 'only runs that it had to itself make an event DEAD by crashes'
  | 'every event comes to its end'
  | 'the end of a task is handled once, whichever channel tells it'
  | 'a status that two channels tell is handled once'
  | 'nothing of a task is handled after its end in edition 3.2'
  | 'a status that was asked for is never handled after what came since'
  | 'a task’s end and last status are said as they were told and handled'
  | 'a window is had exactly where a report of it was completed'
  | 'a report that is not done is claimed'
  | 'a pulled report is a duplicate exactly where its window came before'
  | 'a webhook says that it repeats exactly where its window came before'
  | 'every window comes, or is held';

/** An event that the seller has to tell. Its copies differ in their bytes. */
export interface ToldEvent {
  readonly name: string;
  readonly copies: number;
  /** Its handler ends its process. */
  readonly poison?: true;
  readonly task?: {
    readonly id: string;
    /** Absent: told without a time. */
    readonly instant?: number;
    readonly terminal: boolean;
    /** Present where several channels tell of the task; not by `webhook`: `Receiver.observe`. */
    readonly told?: Pick<ToldClaim, 'source' | 'status' | 'operation'>;
    /** What a terminal status says, where a second one is refused: edition 3.2. */
    readonly says?: string;
    /** A status that is not terminal, of edition 3.2. */
    readonly keepsEnd?: true;
  };
  /** It is a report of the window (`window.ts`), which its seller sends or the buyer pulls. */
  readonly report?: 'sent' | 'pulled';
}

/** How often what the environment may do can happen; everything else happens as often as it can. */
export interface Budget {
  /** Deliveries: fresh ones, and identical bytes of earlier ones. */
  readonly sends: number;
  readonly crashes: number;
  /** The clock moves by `jumpMs`. */
  readonly jumps: number;
  /** Handlers that throw. */
  readonly failures: number;
  /** Handlers that throw `PermanentError`. */
  readonly permanent: number;
  /** Handlers that go on past their deadline: 503, the lease is kept. */
  readonly deadlines: number;
  /** Calls of the store that are made again, for their answer did not arrive. */
  readonly resends: number;
  readonly renewals: number;
  /** Workers that give back what they have not begun. */
  readonly returns: number;
  /** Reports that an operator discards, or whose retention is over before they are acknowledged. */
  readonly losses: number;
}

/** A world to explore. Small ones, for all of each is visited. */
export interface Scenario {
  readonly name: string;
  readonly events: readonly ToldEvent[];
  /** Of the two processes' doors. */
  readonly modes: readonly ['inline' | 'inbox', 'inline' | 'inbox'];
  /** Whether the processes work the inbox too. */
  readonly workers: boolean;
  /** Events that a process's worker runs at once. */
  readonly runs: number;
  /** Effects outside the store, or written by `ctx.transaction`. */
  readonly effects: 'outside' | 'transaction';
  readonly onChanged: 'first-wins' | 'conflict';
  readonly retry: RetryLimits;
  readonly jumpMs: number;
  /** By so much the clock is set back too, as one of the jumps. Absent: it never is. */
  readonly backMs?: number;
  /** Deliveries and runs under way at once. */
  readonly threads: number;
  readonly budget: Budget;
}

/** A delivery that was made: the seller, or who recorded it, can send the same bytes again. */
export interface Sent {
  readonly event: number;
  readonly copy: number;
  /** Absent: an observation has none. */
  readonly nonce?: string;
}

/** How `complete`, `fail` or the transaction ended. */
export type Settled = 'done' | 'lost' | 'queued' | 'dead';

/** One line of work in a process's memory: a delivery at a door, or a worker's run. A crash ends it. */
export interface Thread {
  /** The accept's id, or the worker's token: who owns the lease. */
  readonly id: string;
  readonly process: number;
  readonly worker: boolean;
  readonly event: number;
  /** Of the body that was delivered, or that the worker was given. */
  readonly copy: number;
  /** Absent for workers, and for a waiting delivery that takes over. */
  readonly nonce?: string;
  /** Its bytes came before, as the store has told it: it has waited, and takes over. */
  readonly replay?: boolean;
  /** Its bytes came to the store before. */
  readonly again?: boolean;
  readonly at: 'looking' | 'arrived' | 'decided' | 'waiting' | 'running' | 'effected' | 'settled';
  /** Atomic steps of the admission that are done. */
  readonly step: number;
  readonly decision?: AcceptDecision | { readonly kind: 'gave-up' };
  readonly settled?: Settled;
  /** As its process was told: until then nobody else may run. Unix ms. */
  readonly until: number;
  readonly run: number;
  /** Of its lease, or, while it asks for one, that it asks for a suspect. */
  readonly suspect: boolean;
  /** What its operation on the store is planned on, which is under way since. */
  readonly seen?: Seen;
  /** Somebody waits for an answer. */
  readonly answerable: boolean;
  /** Of an observation: when its question was asked. Unix ms. */
  readonly askedAt?: number;
}

/** What truly happened to an event, whatever the store keeps of it. */
export interface Account {
  /** Its sender was, or may have been, told that it need not come again: 2xx, or 401 `replayed`. */
  readonly acknowledged: boolean;
  /** Its sender was told that another terminal status of its task is kept. */
  readonly refused: boolean;
  /** An operator has discarded it. */
  readonly discarded: boolean;
  /** Leases that `complete` told `done`. */
  readonly completedBy: readonly string[];
  /** Effects outside: whether there was one. In a transaction: how many were committed. */
  readonly effects: number;
  readonly leases: number;
  /** Of them the first, those by deliveries with a fresh nonce, and by workers. */
  readonly attempts: number;
  readonly failed: number;
  readonly returned: number;
  /** Processes that ended while it ran there as their one suspect, or was leased to. */
  readonly crashedAlone: number;
  readonly permanent: boolean;
  /** The copy that was stored first. */
  readonly first?: number;
  /** Of one that several channels tell: when it was completed, and when what was stored was asked for. Unix ms. */
  readonly completedAt?: number;
  readonly askedAt?: number;
}

/** How what was planned is taken. The sound one compares every row that the plan has read, and the clock. */
export interface Protocol {
  /** Whether the version of a row that was read has to be what it was. */
  readonly compares: (entry: Entry, isWritten: boolean) => boolean;
  /** Whether a plan made on a clock over 1 s old is made again. */
  readonly refusesOld: boolean;
  /** Whether plans made on one snapshot are all taken. */
  readonly takesSiblings: boolean;
  /** Whether parking writes the task's row. */
  readonly parksOnTask: boolean;
}

/** Rows and clock at one moment. */
export interface Seen {
  readonly kept: Kept;
  readonly now: number;
}

/** Through which a step looks at the store, where an operation is a plan and a commit; no part of a state. */
export interface View {
  readonly protocol?: Protocol;
  /** Undefined: nothing is planned yet. */
  readonly seen?: Seen;
  /** `unseen`: the step has to look first. */
  readonly outcome?: 'unseen' | 'refused' | 'taken';
}

/** A state of the exploration; never changed, only followed by others. */
export interface World {
  /** The store's clock. Unix ms. */
  readonly now: number;
  readonly kept: Kept;
  readonly threads: readonly Thread[];
  /** How often each of the two processes has died. */
  readonly deaths: readonly [number, number];
  readonly sent: readonly Sent[];
  readonly accounts: readonly Account[];
  readonly budget: Budget;
  /** Numbers for new ids. */
  readonly next: number;
  /** What the commit before was planned on. */
  readonly planned?: Kept;
  readonly view?: View;
  /** What a step did that must not be done. */
  readonly breach?: Breach<Invariant>;
}

export const SELLER = 'https://seller.example/mcp';
export const LEASE_MS = 8_000;
export const BACKOFF_MS = 4_000;
export const RETENTION_MS = 86_400_000;

/** A media buy was registered, whose reports come. */
const FOLLOWING: Kept = { ...NOTHING, streams: new Map([[BUY, followed(SELLER)]]) };

const UNTOUCHED: Account = {
  acknowledged: false,
  refused: false,
  discarded: false,
  completedBy: [],
  effects: 0,
  leases: 0,
  attempts: 0,
  failed: 0,
  returned: 0,
  crashedAlone: 0,
  permanent: false,
};

export function worldOf({ events, budget }: Scenario): World {
  return {
    // Over 0 also where it is set back.
    now: 1_000_000_000,
    kept: events.some(({ report }) => report) ? FOLLOWING : NOTHING,
    threads: [],
    deaths: [0, 0],
    sent: [],
    accounts: events.map(() => UNTOUCHED),
    budget,
    next: 1,
  };
}

/** A process that died and comes again is another one. */
export function processOf({ deaths }: Pick<World, 'deaths'>, process: number): string {
  return `${process}.${deaths[process === 0 ? 0 : 1]}`;
}

export function eventOf({ events }: Scenario, index: number): ToldEvent {
  const event = events[index];
  if (!event) throw new RangeError(`no event ${index}`);
  return event;
}

export function accountOf({ accounts }: World, event: number): Account {
  const account = accounts[event];
  if (!account) throw new RangeError(`no event ${event}`);
  return account;
}

export function withAccount(world: World, event: number, change: Partial<Account>): World {
  const accounts = world.accounts.map((account, at) => (at === event ? { ...account, ...change } : account));
  return { ...world, accounts };
}

/** `thread` as it is now, in its place. */
export function withThread(world: World, thread: Thread): World {
  return { ...world, threads: world.threads.map((other) => (other.id === thread.id ? thread : other)) };
}

export function withoutThread(world: World, { id }: Thread): World {
  return { ...world, threads: world.threads.filter((other) => other.id !== id) };
}

export function spend(world: World, name: keyof Budget): World {
  return { ...world, budget: { ...world.budget, [name]: world.budget[name] - 1 } };
}

export function breached(world: World, invariant: Invariant, detail: string): World {
  return world.breach ? world : { ...world, breach: { invariant, detail } };
}
