import type { AcceptRequest, AcceptResult } from '../../../../src/stores/index.ts';

/** What an order of calls can break. Each is judged by what was told, never by what the store holds. */
export type Invariant =
  | 'no two live leases of one event or task'
  | 'one owner completes'
  | 'an owner of old changes nothing'
  | 'an acknowledged event is never lost'
  | 'every event comes to its end'
  | 'the first copy is handled'
  | 'an older status is never applied after a newer one'
  | 'a nonce serves one event'
  | 'caps hold';

/** @throws Error that names the invariant: fast-check finds the shortest way to it. */
export function breach(invariant: Invariant, detail: string): never {
  throw new Error(`${invariant}: ${detail}`);
}

/** A call's times: between them the store decided. `seq` orders what this process saw, `at` is the store's clock, ms. */
export interface Span {
  readonly sentSeq: number;
  readonly heardSeq: number;
  readonly sentAt: number;
  readonly heardAt: number;
}

/** A lease that somebody was told of. */
export interface Granted extends Span {
  readonly sender: string;
  readonly key: string;
  readonly owner: string;
  readonly run: number;
  readonly chargedAttempts: number;
  readonly body: string;
}

/** What is known of a lease: nobody else has one before `surelyUntil`. Store's clock, ms. */
export interface Held extends Granted {
  surelyUntil: number;
}

/** A task's status: which one a key is never changes, so the ledger knows it of both copies. */
export interface StatusOf {
  readonly taskId: string | undefined;
  readonly instant: string | undefined;
  readonly terminal: boolean;
}

/** Everything known of one event. */
export interface Account {
  readonly sender: string;
  readonly key: string;
  readonly status: StatusOf;
  readonly leases: Held[];
  /** Owners that were told `done`. */
  readonly completedBy: Set<string>;
  /** Since when everybody knows that it is completed. */
  completedSeq: number;
  firstCopy: string | undefined;
  /** Its seller was told that it need not come again: by what. */
  acknowledged: string | undefined;
  admitted: boolean;
  /** How many others of its sender were known to be admitted when it was sent first. */
  readonly admittedBefore: number;
  /** When it was known to be discarded. */
  discardedSeq: number;
  /** Transactions that committed. */
  commits: number;
  deaths: number;
}

/** Clocks of two processes of one machine may be read in another order than they tick. Ms. */
export const TICK_MS = 5;

export const idOf = (sender: string, key: string): string => `${sender} ${key}`;

export function isNewer(one: StatusOf, other: StatusOf): boolean {
  if (one.instant === undefined || other.instant === undefined || one.taskId !== other.taskId) return false;
  if (one.instant === other.instant) return one.terminal && !other.terminal;
  return one.instant > other.instant;
}

export const ADMITTED: ReadonlySet<AcceptResult['kind']> = new Set([
  'queued',
  'won',
  'task-busy',
  'in-flight',
  'done',
]);

/** Answers after which the seller is told 2xx. */
export const ACKNOWLEDGED: Readonly<Record<'inline' | 'inbox', ReadonlySet<AcceptResult['kind']>>> = {
  inline: new Set(['done', 'stale']),
  inbox: new Set(['queued', 'in-flight', 'done', 'stale']),
};

/** Answers to an accept that a nonce was good for, and is used up by. */
const PASSED: ReadonlySet<AcceptResult['kind']> = new Set([
  'won',
  'queued',
  'done',
  'in-flight',
  'task-busy',
  'stale',
  'conflict',
]);

export function newAccount(sender: string, key: string, status: StatusOf, admittedBefore: number): Account {
  return {
    sender,
    key,
    status,
    leases: [],
    completedBy: new Set(),
    completedSeq: Infinity,
    firstCopy: undefined,
    acknowledged: undefined,
    admitted: false,
    admittedBefore,
    discardedSeq: Infinity,
    commits: 0,
    deaths: 0,
  };
}

export function isSameTask(one: Account, other: Account): boolean {
  const { taskId } = one.status;
  return taskId !== undefined && taskId === other.status.taskId && one.sender === other.sender;
}

/** At the later of two grants both leases hold for sure. */
export function checkApart(lease: Held, { leases }: Account): void {
  for (const other of leases) {
    const both = Math.max(lease.heardAt, other.heardAt);
    if (both >= Math.min(lease.surelyUntil, other.surelyUntil)) continue;
    const names = `${lease.owner} (${lease.key}) and ${other.owner} (${other.key})`;
    breach('no two live leases of one event or task', `${names} hold leases at once`);
  }
}

/** Asked for after a newer status of its task was known to be applied. */
export function checkOrder(account: Account, other: Account, { sentSeq }: Held): void {
  if (other === account || !isSameTask(account, other)) return;
  if (other.completedSeq > sentSeq || !isNewer(other.status, account.status)) return;
  breach('an older status is never applied after a newer one', `${account.key} after ${other.key}`);
}

export function checkCopy(account: Account, body: string): void {
  account.firstCopy ??= body;
  if (account.firstCopy !== body) {
    breach('the first copy is handled', `${account.key} was ${account.firstCopy}, and is ${body}`);
  }
}

/** A nonce that passed for one event does not for another, as long as it lives. */
export function checkNonce(
  { nonce, event }: AcceptRequest,
  { kind }: AcceptResult,
  span: Span,
  known: { readonly passed: Map<string, Span> } | undefined,
): void {
  if (!nonce || !event || !known || !PASSED.has(kind)) return;
  const livesMs = nonce.expiresAtMs - nonce.nowMs - TICK_MS;
  for (const [key, other] of known.passed) {
    const spread = Math.max(span.heardAt, other.heardAt) - Math.min(span.sentAt, other.sentAt);
    if (key !== event.key && spread < livesMs) {
      breach('a nonce serves one event', `${nonce.nonce} passed for ${key} and ${event.key}`);
    }
  }
  known.passed.set(event.key, span);
}
