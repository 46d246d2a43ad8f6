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
  RenewRequest,
} from '../../../src/stores/contract.ts';
import { accept } from '../../../src/stores/kernel/accept.ts';
import { inboxOf } from '../../../src/stores/kernel/inbox.ts';
import type { Rows } from '../../../src/stores/kernel/rows.ts';
import { complete, fail, heldBy, peek, renew } from '../../../src/stores/kernel/settle.ts';

/** One atomic operation of the store. */
export type Atomic<Request, Result> = (rows: Rows, request: Request, now: number) => Result;

/** What a delivery does with a decision: run the handler, wait for another one's, or answer this status. */
export type Consequence = 'run' | 'wait' | 200 | 401 | 409 | 429;

/**
 * Store and corridor as the explorer drives them. The real one below is the kernel itself; a broken one replaces a
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
  /** The handler's writes and the completion; undefined: rolled back, the lease is lost. */
  readonly transaction: Atomic<CompleteRequest, 'done' | undefined>;
  readonly consequence: (decision: AcceptDecision, mode: AcceptRequest['mode']) => Consequence;
  /** Whether the lease is given back when the handler's deadline passes. */
  readonly releasesAtDeadline: boolean;
  /** Whether the inbox answers before it stores. */
  readonly answersFirst: boolean;
}

/** admission.md §2.1 (`admit`, `dispatch`), §3.10 and §3.11. */
const CONSEQUENCES: Record<AcceptDecision['kind'], Consequence> = {
  won: 'run',
  queued: 200,
  done: 200,
  stale: 200,
  'in-flight': 'wait',
  'task-busy': 'wait',
  conflict: 409,
  burned: 401,
  replayed: 401,
  'rate-abuse': 429,
  'over-cap': 429,
};

export function consequence({ kind }: AcceptDecision, mode: AcceptRequest['mode']): Consequence {
  const inline = CONSEQUENCES[kind];
  return inline === 'wait' && mode === 'inbox' ? 200 : inline;
}

/** The kernel gives its inbox as promises; over rows that are at hand its steps are over when the call returns. */
export function leaseDue(rows: Rows, request: LeaseDueRequest, now: number): LeaseDueResult {
  let result: unknown;
  const atOnce = async <T>(step: (rows: Rows, now: number) => T): Promise<T> => {
    const given = step(rows, now);
    result = given;
    return given;
  };
  void inboxOf(atOnce).lease(request);
  return result as LeaseDueResult;
}

export function transaction(rows: Rows, request: CompleteRequest, now: number): 'done' | undefined {
  if (!heldBy(rows, request, now)) return undefined;
  return complete(rows, request, now) === 'done' ? 'done' : undefined;
}

/** The rules of src/stores/kernel, which memory and SQLite run as they are. */
export const REAL: System = {
  admission: [accept],
  complete,
  fail,
  renew,
  peek: (rows, { sender, key }, now) => peek(rows, sender, key, now),
  lease: leaseDue,
  transaction,
  consequence,
  releasesAtDeadline: false,
  answersFirst: false,
};
