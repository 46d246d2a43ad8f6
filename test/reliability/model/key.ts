import { dueAt } from '../../../src/stores/kernel/park.ts';
import type { RecordRow } from '../../../src/stores/kernel/rows.ts';
import type { Play } from './play.ts';
import type { Account, Thread, World } from './world.ts';

/**
 * A world without its names: instants count from now, what has passed has passed, ids are told by the thread that
 * has them (nobody can use any other again), processes and nonces by what refers to them. Two worlds with one key
 * differ in nothing that can ever be seen.
 */
export function keyOfWorld({ scenario }: Play, world: World): string {
  const left = (instant: number): number => Math.max(0, instant - world.now);
  const threads = world.threads
    .map((thread) => ({ thread, is: ownPart(thread, left) }))
    .sort((a, b) => (a.is < b.is ? -1 : 1));
  const place = new Map(threads.map(({ thread }, at) => [thread.id, at]));
  const nameOf = (id: string | null): string => (id === null ? '' : String(place.get(id) ?? '-'));
  const alike = scenario.modes[0] === scenario.modes[1];
  const processes = threads.map(({ thread }) => thread.process);
  return [
    threads.map(({ is }) => is).join(' '),
    // Two processes of the same kind: the one that comes first is the first one.
    (alike ? processes.map((process) => processes.indexOf(process)) : processes).join(''),
    noncesPart(world, nameOf),
    recordsPart(world, nameOf, left),
    [...world.kept.tasks.values()]
      .map(({ id, holder, mark, markTerminal }) => `${id},${holder},${mark},${Number(markTerminal)}`)
      .join(' '),
    world.accounts.map((account) => accountPart(account, nameOf)).join(' '),
    Object.values(world.budget).join(''),
    world.breach?.invariant ?? '',
  ].join('\n');
}

type Left = (instant: number) => number;
type NameOf = (id: string | null) => string;

/** All of a thread but its names. */
function ownPart(thread: Thread, left: Left): string {
  const { at, event, copy, step, decision, settled, until, fence, worker, answerable, nonce } = thread;
  const flags = [worker, answerable, nonce !== undefined].map(Number).join('');
  return `${at},${event},${copy},${step},${decisionPart(decision)},${settled ?? ''},${left(until)},${fence},${flags}`;
}

/** What of a decision has consequences. */
function decisionPart(decision: Thread['decision']): string {
  if (decision?.kind === 'won') return `won${decision.body?.join('') ?? ''}`;
  return decision?.kind ?? '';
}

function noncesPart({ sent, kept, threads }: World, nameOf: NameOf): string {
  const parts = sent.map(({ event, copy, nonce }) => {
    const row = kept.nonces.get(nonce);
    const users = threads.filter((thread) => thread.nonce === nonce).map(({ id }) => nameOf(id));
    return `${event},${copy},${row ? `${row.key}${nameOf(row.acceptId)}` : ''},${users.sort().join('')}`;
  });
  return parts.sort().join(' ');
}

function recordsPart({ kept }: World, nameOf: NameOf, left: Left): string {
  const records = [...kept.records.values()];
  // Of what is due, the earliest goes first, however long ago that was.
  const queue = [...records].sort((a, b) => (dueAt(a) ?? Infinity) - (dueAt(b) ?? Infinity));
  const order = queue.map(({ key }) => key).join('');
  return [order, ...records.map((record) => recordPart(record, nameOf, left))].join(' ');
}

function recordPart(record: RecordRow, nameOf: NameOf, left: Left): string {
  const { key, state, claim, claimedBy, owner, fence, attempts, crashes, acked, rawHash } = record;
  return [
    key,
    state,
    claim,
    nameOf(claimedBy),
    nameOf(owner),
    fence,
    state === 'leased' ? left(record.leaseUntil) : 0,
    attempts,
    crashes,
    Number(acked),
    left(record.notBefore),
    record.parkedUntil === 0 ? '' : left(record.parkedUntil),
    rawHash,
    record.bodyBytes,
  ].join(',');
}

function accountPart(account: Account, nameOf: NameOf): string {
  const { acknowledged, completedBy, effects, leases, failed, returned, permanent, first } = account;
  const owners = completedBy.map(nameOf).join('');
  return [Number(acknowledged), owners, effects, leases, failed, returned, Number(permanent), first].join(
    ',',
  );
}
