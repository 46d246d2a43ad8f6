import type {
  AcceptDecision,
  AcceptRequest,
  CompleteRequest,
  CompleteResult,
  FailRequest,
  FailResult,
  LeaseDueRequest,
  LeaseDueResult,
  PeekResult,
  RegistrationRows,
  RenewRequest,
} from '../../../src/stores/index.ts';
import {
  accept,
  complete,
  fail,
  heldBy,
  inboxOf,
  leaseOne,
  peek,
  planned,
  type QueueRows,
  renew,
} from '../../../src/stores/for-tests.ts';

/** One atomic operation of the store. */
export type Atomic<Request, Result> = (rows: QueueRows, request: Request, now: number) => Result;

/** What a delivery does with a decision: run the handler, wait for another one's, or answer this status. */
export type Consequence = 'run' | 'wait' | 200 | 401 | 409 | 429 | 503;

/**
 * Store and pipeline as the explorer drives them. The real one below is the rules themselves; a broken one replaces a
 * member or two.
 */
export interface System {
  /** One after the other until one decides, and the process can die between them. The real one is a single step. */
  readonly admission: readonly Atomic<AcceptRequest, AcceptDecision | undefined>[];
  readonly complete: Atomic<CompleteRequest, CompleteResult>;
  readonly fail: Atomic<FailRequest, FailResult>;
  readonly renew: Atomic<RenewRequest, 'renewed' | 'lost'>;
  readonly peek: Atomic<{ readonly sender: string; readonly key: string }, PeekResult>;
  readonly lease: Atomic<LeaseDueRequest, LeaseDueResult>;
  /** What plans over rows of registrations are told of a task; absent: it is not looked at. */
  readonly said?: Atomic<{ readonly sender: string; readonly id: string }, Said>;
  /** The reconciler's, of an event whose seller may have given up (owed.md §3.5). */
  readonly acknowledge: Atomic<{ readonly sender: string; readonly key: string }, void>;
  /** The handler's writes and the completion; undefined: rolled back, the lease is lost. */
  readonly transaction: Atomic<CompleteRequest, 'done' | undefined>;
  readonly consequence: (decision: AcceptDecision, mode: AcceptRequest['mode']) => Consequence;
  /** Whether the lease is given back when the handler's deadline passes. */
  readonly releasesAtDeadline: boolean;
  /** Whether a process's worker and its deliveries have one place for a suspect together. */
  readonly sharesPlace: boolean;
  /** Whether a suspect's place is kept while its accept, whose answer was lost, is sent again. */
  readonly keepsPlace: boolean;
  /** Whether the inbox answers before it stores. */
  readonly answersFirst: boolean;
}

export interface Said {
  readonly end: ReturnType<RegistrationRows['taskEnd']>;
  readonly last: ReturnType<RegistrationRows['lastTold']>;
}

/** By the plan of a run. */
export function said(
  rows: QueueRows,
  { sender, id }: { readonly sender: string; readonly id: string },
  now: number,
): Said {
  const table = { ...rows, registration: () => undefined, saveRegistration: () => {} };
  const plan = (run: RegistrationRows): Said => ({ end: run.taskEnd(id), last: run.lastTold(id) });
  return planned(table, sender, plan, now).value();
}

/** By the plan of a run, too. */
function acknowledge(
  rows: QueueRows,
  { sender, key }: { readonly sender: string; readonly key: string },
  now: number,
): void {
  planned(rows, sender, (run) => run.acknowledge(key), now).value();
}

/** admission.md §2.1 (`admit`, `dispatch`), §3.10 and §3.11. */
const CONSEQUENCES: Record<AcceptDecision['kind'], Consequence> = {
  won: 'run',
  queued: 200,
  done: 200,
  stale: 200,
  'in-flight': 'wait',
  'task-busy': 'wait',
  'backing-off': 503,
  conflict: 409,
  'already-final': 409,
  'final-unsafe': 503,
  burned: 401,
  replayed: 401,
  'rate-abuse': 429,
  'over-cap': 429,
};

export function consequence({ kind }: AcceptDecision, mode: AcceptRequest['mode']): Consequence {
  const inline = CONSEQUENCES[kind];
  return inline === 'wait' && mode === 'inbox' ? 200 : inline;
}

/** The rules give their inbox as promises; over rows that are at hand its steps are over when the call returns. */
export function leaseDue(rows: QueueRows, request: LeaseDueRequest, now: number): LeaseDueResult {
  let result: unknown;
  const atOnce = async <T>(step: (rows: QueueRows, now: number) => T): Promise<T> => {
    const given = step(rows, now);
    result = given;
    return given;
  };
  void inboxOf(atOnce).lease(request);
  return result as LeaseDueResult;
}

/** The driver's: one that is due is planned by itself. */
export function leaseFound(rows: QueueRows, request: LeaseDueRequest, now: number): LeaseDueResult {
  const found = request.alone ? rows.dueSuspect(now) : rows.due(now);
  const { event, dead } = found ? leaseOne(rows, found, request, now) : {};
  return { events: event ? [event] : [], died: dead ? [dead] : [] };
}

export function transaction(rows: QueueRows, request: CompleteRequest, now: number): 'done' | undefined {
  if (!heldBy(rows, request, now)) return undefined;
  return complete(rows, request, now) === 'done' ? 'done' : undefined;
}

/** The rules of src/stores/rules, which memory and SQLite run as they are. */
export const REAL: System = {
  admission: [accept],
  complete,
  fail,
  renew,
  peek: (rows, { sender, key }, now) => peek(rows, sender, key, now),
  lease: leaseDue,
  said,
  acknowledge,
  transaction,
  consequence,
  releasesAtDeadline: false,
  sharesPlace: true,
  keepsPlace: true,
  answersFirst: false,
};

/** The rules as the driver runs them. */
export const DRIVEN: System = { ...REAL, lease: leaseFound };
