import type { AcceptRequest, AcceptResult, LeasedEvent } from '../../../../src/stores/index.ts';
import type { Account, Granted, Held, Span, StatusOf } from './account.ts';
import {
  ACKNOWLEDGED,
  ADMITTED,
  breach,
  checkApart,
  checkCopy,
  checkNonce,
  checkOrder,
  idOf,
  isSameTask,
  newAccount,
  TICK_MS,
} from './account.ts';

/** What was told to whom, and what follows from it. */
export interface Ledger {
  readonly accounts: ReadonlyMap<string, Account>;
  /** A delivery leaves: from now on its nonce may be used up for its event. */
  readonly sending: (request: AcceptRequest, status: StatusOf) => void;
  readonly accepted: (request: AcceptRequest, answer: AcceptResult, span: Span) => void;
  readonly leased: (event: LeasedEvent, span: Span, leaseMs: number) => void;
  /** The owner ends its lease from here on, whether or not it is told so. */
  readonly ending: (of: Owned, sentAt: number) => void;
  readonly renewed: (of: Owned, answer: 'renewed' | 'lost', span: Span) => void;
  /** A transaction committed, and its row with it. */
  readonly committed: (of: Owned, span: Span) => void;
  readonly ended: (of: Owned, answer: 'done' | 'queued' | 'dead' | 'lost', span: Span) => void;
  readonly died: (sender: string, key: string) => void;
  readonly discarded: (sender: string, key: string, span: Span) => void;
  /** Leases that were told, to be ended by anyone. */
  readonly leases: () => readonly Granted[];
}

export interface Owned {
  readonly sender: string;
  readonly key: string;
  readonly owner: string;
}

const text = (body: Uint8Array): string => new TextDecoder().decode(body);

export function createLedger(): Ledger {
  const accounts = new Map<string, Account>();

  /** By sender, key id and nonce: keys that it was sent with, and spans in which it let an event through. */
  const nonces = new Map<string, { readonly keys: Set<string>; readonly passed: Map<string, Span> }>();

  function accountOf(sender: string, key: string): Account {
    const account = accounts.get(idOf(sender, key));
    if (!account) throw new Error(`${key} of ${sender} was never sent, and is told of`);
    return account;
  }

  function nonceOf({
    sender,
    nonce,
  }: AcceptRequest): { keys: Set<string>; passed: Map<string, Span> } | undefined {
    if (!nonce) return undefined;
    const name = `${sender} ${nonce.keyid} ${nonce.nonce}`;
    const known = nonces.get(name) ?? { keys: new Set<string>(), passed: new Map<string, Span>() };
    nonces.set(name, known);
    return known;
  }

  function granted(of: Granted, leaseMs: number): void {
    const account = accountOf(of.sender, of.key);
    // The same accept again is told of the same lease.
    if (account.leases.some(({ owner, run }) => owner === of.owner && run === of.run)) return;
    const lease: Held = {
      ...of,
      surelyUntil: of.sentAt + leaseMs - TICK_MS,
    };
    for (const other of accounts.values()) {
      if (other === account || isSameTask(account, other)) checkApart(lease, other);
      checkOrder(account, other, lease);
    }
    if (account.discardedSeq < of.sentSeq)
      breach('one owner completes', `${of.key} was discarded, and leased`);
    account.leases.push(lease);
    checkCopy(account, of.body);
  }

  function accepted(request: AcceptRequest, answer: AcceptResult, span: Span): void {
    const { event, sender } = request;
    if (!event) return;
    const account = accountOf(sender, event.key);
    checkNonce(request, answer, span, nonceOf(request));
    if (answer.kind === 'won') {
      const body = text(answer.body ?? event.body);
      granted({ ...span, sender, key: event.key, ...answer.lease, body }, request.leaseMs);
      if (!answer.changed) checkCopy(account, text(event.body));
    }
    if (answer.kind === 'done' && answer.died) account.deaths += 1;
    if (ADMITTED.has(answer.kind)) account.admitted = true;
    checkCap(account, request);
    const safe = ACKNOWLEDGED[request.mode].has(answer.kind);
    const replayed = answer.kind === 'replayed' && nonceOf(request)?.keys.size === 1;
    if (safe || replayed) account.acknowledged ??= answer.kind;
  }

  const admittedOf = (sender: string): number =>
    [...accounts.values()].filter((each) => each.sender === sender && each.admitted).length;

  /** What is under way may exceed a cap; what is sent when it is known to be reached is not let in. */
  function checkCap({ admitted, admittedBefore, key }: Account, { limits }: AcceptRequest): void {
    if (admitted && admittedBefore >= limits.maxRecordsPerSender) {
      breach('caps hold', `${key} came after ${admittedBefore}, where ${limits.maxRecordsPerSender} may be`);
    }
  }

  function newest(of: Owned, before: number): Held | undefined {
    const known = accountOf(of.sender, of.key).leases.filter(({ heardSeq }) => heardSeq < before);
    return known.toSorted((a, b) => b.run - a.run)[0];
  }

  /** Told yes, an owner held the lease: nobody had a newer one of its event, or of its task, before it asked. */
  function checkOwner(of: Owned, said: string, { sentSeq }: Span): void {
    const account = accountOf(of.sender, of.key);
    const { leases, completedBy } = account;
    const own = leases.filter(({ owner }) => owner === of.owner);
    const what = `${of.owner} was told ${said} of ${of.key}`;
    if (own.length === 0) breach('an owner of old changes nothing', `${what}, and never had it`);
    const last = newest(of, sentSeq);
    if (last && own.every(({ run }) => run < last.run)) {
      breach('an owner of old changes nothing', `${what}, which ${last.owner} had`);
    }
    // Told before, it is told again.
    if (said !== 'renewed' && (said !== 'done' || completedBy.has(of.owner))) return;
    const taker = [...accounts.values()]
      .filter((other) => other !== account && isSameTask(account, other))
      .flatMap((other) => other.leases)
      .find((lease) => lease.heardSeq < sentSeq && own.every(({ heardSeq }) => heardSeq < lease.sentSeq));
    if (taker) breach('an owner of old changes nothing', `${what}, whose task ${taker.owner} had since`);
  }

  return {
    accounts,
    sending: (request, status) => {
      const { event, sender } = request;
      if (!event) return;
      const id = idOf(sender, event.key);
      if (!accounts.has(id)) accounts.set(id, newAccount(sender, event.key, status, admittedOf(sender)));
      nonceOf(request)?.keys.add(event.key);
    },
    accepted,
    leased: ({ sender, key, lease, body }, span, leaseMs) => {
      granted({ ...span, sender, key, ...lease, body: text(body) }, leaseMs);
    },
    ending: (of, sentAt) => {
      for (const lease of accountOf(of.sender, of.key).leases) {
        if (lease.owner === of.owner) lease.surelyUntil = Math.min(lease.surelyUntil, sentAt);
      }
    },
    renewed: (of, answer, span) => {
      if (answer === 'renewed') checkOwner(of, answer, span);
    },
    committed: (of, { sentSeq }) => {
      const account = accountOf(of.sender, of.key);
      account.commits += 1;
      // After its own completion too: what is done has no lease to commit under.
      if (account.commits > 1 || account.completedSeq < sentSeq) {
        breach('one owner completes', `${of.owner} committed ${of.key}, which was done`);
      }
    },
    ended: (of, answer, span) => {
      if (answer === 'lost') return;
      checkOwner(of, answer, span);
      const account = accountOf(of.sender, of.key);
      if (answer === 'dead') account.deaths += 1;
      if (answer !== 'queued') account.acknowledged ??= answer;
      if (answer !== 'done') return;
      account.completedBy.add(of.owner);
      account.completedSeq = Math.min(account.completedSeq, span.heardSeq);
      if (account.completedBy.size > 1 || account.discardedSeq < Infinity) {
        breach('one owner completes', `${[...account.completedBy].join(' and ')} completed ${of.key}`);
      }
    },
    died: (sender, key) => {
      accountOf(sender, key).deaths += 1;
    },
    discarded: (sender, key, { heardSeq }) => {
      const account = accountOf(sender, key);
      if (account.discardedSeq < Infinity || account.completedBy.size > 0) {
        breach('one owner completes', `${key} was discarded after its end`);
      }
      account.discardedSeq = heardSeq;
      account.acknowledged ??= 'discarded';
    },
    leases: () => [...accounts.values()].flatMap(({ leases }) => leases),
  };
}
