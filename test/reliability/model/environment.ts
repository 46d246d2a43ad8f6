import type { Play, Steps } from './play.ts';
import { copyOf, given, heldUntil, isObservation, keyOf, onStore, doer } from './play.ts';
import { hasPlace } from './door.ts';
import { died, startSteps } from './handler.ts';
import type { Sent, Thread, World } from './world.ts';
import {
  LEASE_MS,
  RETENTION_MS,
  SELLER,
  accountOf,
  eventOf,
  processOf,
  spend,
  withAccount,
  withoutThread,
} from './world.ts';

/** The processes that something can happen to. Two of the same kind that are both idle are one and the same. */
function processesOf({ scenario }: Play, { threads, kept }: World): readonly number[] {
  const alike = scenario.modes[0] === scenario.modes[1];
  const isAnybodys =
    threads.length === 0 && ![...kept.records.values()].some(({ state }) => state === 'leased');
  return alike && isAnybodys ? [0] : [0, 1];
}

/** The seller, or somebody who recorded it: a fresh delivery of an event, or the bytes of an earlier one. */
export function sendSteps(play: Play, world: World): Steps {
  if (world.budget.sends === 0 || world.threads.length >= play.scenario.threads) return [];
  const paid = spend(world, 'sends');
  return processesOf(play, world).flatMap((process) => [
    ...play.scenario.events.flatMap((told, event) =>
      isSentAnew(play, world, event)
        ? Array.from({ length: told.copies }, (_, copy) => sendFresh(play, paid, { event, copy }, process))
        : [],
    ),
    ...world.sent
      .filter(({ event }) => eventOf(play.scenario, event).report !== 'pulled')
      .map((sent) => sendAgain(play, paid, sent, process)),
  ]);
}

/** An observation comes anew once. Each pull has a key of its own, the first one first. */
function isSentAnew({ scenario }: Play, { sent }: World, event: number): boolean {
  const told = eventOf(scenario, event);
  if (!isObservation(told)) return true;
  const isSent = (at: number): boolean => sent.some((one) => one.event === at);
  const isNext = scenario.events.every(
    ({ report }, at) => at >= event || report !== 'pulled' || told.report !== 'pulled' || isSent(at),
  );
  return isNext && !isSent(event);
}

/** A new one: bytes that can come again have another. */
function newNonce({ sent }: World): string {
  const numbers = sent.map(({ nonce = '' }) => Number(nonce.slice(NONCE.length)));
  return `${NONCE}${1 + Math.max(sent.length, ...numbers)}`;
}

const NONCE = 'nonce ';

export function sendFresh(
  play: Play,
  world: World,
  { event, copy }: Pick<Sent, 'event' | 'copy'>,
  process: number,
): Steps[number] {
  const isAsked = isObservation(eventOf(play.scenario, event));
  const sent: Sent = { event, copy, ...(!isAsked && { nonce: newNonce(world) }) };
  const state = arrival({ ...world, sent: [...world.sent, sent] }, sent, process);
  const what = isAsked
    ? `process ${process + 1} observes ${keyOf(play, event)}`
    : `the seller sends ${told(play, sent)} to process ${process + 1}`;
  return { label: `${what}: ${lastId(state)}`, state };
}

export function sendAgain(play: Play, world: World, sent: Sent, process: number): Steps[number] {
  const state = arrival(world, sent, process);
  const what = sent.nonce === undefined ? 'the same observation' : 'the same bytes';
  const label = `${what} of ${told(play, sent)} come again, to process ${process + 1}: ${lastId(state)}`;
  return { label, state };
}

function lastId({ threads }: World): string {
  return `delivery ${threads.at(-1)?.id}`;
}

function told(play: Play, { event, copy, nonce }: Sent): string {
  return `${keyOf(play, event)}${copy === 0 ? '' : ', changed'}${nonce === undefined ? '' : ` (${nonce})`}`;
}

function arrival(world: World, { event, copy, nonce }: Sent, process: number): World {
  const thread: Thread = {
    id: `#${world.next}`,
    process,
    worker: false,
    event,
    copy,
    ...(nonce === undefined ? { askedAt: world.now } : { nonce }),
    at: 'arrived',
    step: 0,
    until: 0,
    run: -1,
    suspect: false,
    answerable: true,
  };
  return { ...world, threads: [...world.threads, thread], next: world.next + 1 };
}

/** An idle worker asks for work. */
export function workSteps(play: Play, world: World): Steps {
  const { workers, threads, runs } = play.scenario;
  if (!workers || world.threads.length >= threads) return [];
  return processesOf(play, world).flatMap((process) => {
    const running = world.threads.filter((thread) => thread.worker && thread.process === process);
    if (running.length >= runs || running.some(({ suspect }) => suspect)) return [];
    const asks = running.length === 0 && mayAskAlone(play, world, process) ? [false, true] : [false];
    return asks.flatMap((alone) => askSteps(play, world, process, alone));
  });
}

/** A worker runs a suspect beside nothing else, in the one place of its process (admission.md §4.6). */
function mayAskAlone(play: Play, world: World, process: number): boolean {
  if (!play.system.sharesPlace) return true;
  return !world.threads.some(
    (thread) =>
      thread.process === process && (hasPlace(play, thread) || (thread.run >= 0 && RUNS.has(thread.at))),
  );
}

const RUNS: ReadonlySet<Thread['at']> = new Set(['decided', 'running', 'effected']);

function askSteps(play: Play, world: World, process: number, alone: boolean): Steps {
  const owner = `#${world.next}`;
  const next = { ...world, next: world.next + 1 };
  const worker: Asking = { process, owner, alone };
  const steps = leaseSteps(play, next, worker);
  if (!play.protocol || steps.length === 0) return steps;
  const thread = { ...IDLE, id: owner, process, suspect: alone };
  const label = `process ${process + 1}'s worker, run ${owner}, looks for ${alone ? 'a suspect' : 'work'}`;
  return [{ label, state: { ...next, threads: [...next.threads, thread] } }];
}

/** A worker that asks for work. */
interface Asking {
  readonly process: number;
  readonly owner: string;
  readonly alone: boolean;
}

const IDLE = {
  worker: true,
  event: -1,
  copy: -1,
  at: 'looking',
  step: 0,
  until: 0,
  run: -1,
  answerable: false,
} as const;

/** A worker that asks for work, where that is a plan and a commit. */
export function lookSteps(play: Play, world: World, thread: Thread): Steps {
  const idle = withoutThread(world, thread);
  const { process, id: owner, suspect: alone } = thread;
  const steps = leaseSteps(play, idle, { process, owner, alone });
  // Others were faster.
  return steps.length > 0 ? steps : [{ label: `${doer(thread)} finds nothing`, state: taken(idle) }];
}

/** By a look alone. */
function taken(world: World): World {
  return world.view ? { ...world, view: { ...world.view, outcome: 'taken' } } : world;
}

function leaseSteps(play: Play, world: World, { process, owner, alone }: Asking): Steps {
  const request = {
    owner,
    max: 1,
    ...(alone && { alone }),
    leaseMs: LEASE_MS,
    process: processOf(world, process),
    retry: play.scenario.retry,
    retentionMs: RETENTION_MS,
    senders: [SELLER],
  };
  const { after, result } = onStore(world, (rows, now) => play.system.lease(rows, request, now));
  const [leased] = result.events;
  const got = leased ? `${leased.key}, run ${leased.lease.run}, lease ${owner}` : 'nothing';
  const label = `process ${process + 1}'s worker: lease(${alone ? 'alone' : ''}) → ${got}`;
  if (!leased) {
    const swept =
      after.kept.records !== world.kept.records ||
      after.kept.tasks !== world.kept.tasks ||
      (after.view?.outcome !== undefined && result.died.length > 0) ||
      after.view?.outcome === 'unseen' ||
      after.view?.outcome === 'refused';
    return swept ? [{ label, state: after }] : [];
  }
  const event = play.scenario.events.findIndex(({ name }) => name === leased.key);
  const thread: Thread = {
    id: owner,
    process,
    worker: true,
    event,
    copy: copyOf(leased.body),
    at: 'decided',
    step: 0,
    until: heldUntil(world),
    run: leased.lease.run,
    suspect: leased.lease.suspect ?? false,
    answerable: false,
  };
  const { leases, attempts } = accountOf(world, event);
  const counted = withAccount(after, event, { leases: leases + 1, attempts: attempts + 1 });
  return [{ label, state: { ...counted, threads: [...counted.threads, thread] } }];
}

/** A worker's lease before its handler: it starts, or the worker stops and gives it back. */
export function leasedSteps(play: Play, world: World, thread: Thread): Steps {
  const starts = startSteps(play, world, thread);
  if (world.budget.returns === 0) return starts;
  const { after, label } = given(play, spend(world, 'returns'), thread);
  return [...starts, { label, state: withoutThread(after, thread) }];
}

export function crashSteps(play: Play, world: World): Steps {
  if (world.budget.crashes === 0) return [];
  return [0, 1].flatMap((process) => {
    if (!world.threads.some((thread) => thread.process === process)) return [];
    return [{ label: `process ${process + 1} dies`, state: died(play, spend(world, 'crashes'), process) }];
  });
}

/** Time passes, also for those that are in the middle of something: owners outlive their leases. */
export function jumpSteps({ scenario }: Play, world: World): Steps {
  if (world.budget.jumps === 0 || !isTimed(world)) return [];
  const { jumpMs, backMs } = scenario;
  const spent = spend(world, 'jumps');
  const forward = { label: `the clock moves by ${jumpMs} ms`, state: later(spent, jumpMs) };
  return backMs === undefined
    ? [forward]
    : [forward, { label: `the clock is set back by ${backMs} ms`, state: earlier(spent, backMs) }];
}

/** The store's clock alone: a process counts what is left of its lease on its own, which is never set back. */
function earlier(world: World, ms: number): World {
  const threads = world.threads.map((thread) => ({ ...thread, until: thread.until - ms }));
  return { ...later(world, -ms), threads };
}

export function later(world: World, ms: number): World {
  return { ...world, now: world.now + ms };
}

/** Whether anything is different once time has passed. */
function isTimed({ kept, threads, now }: World): boolean {
  const records = [...kept.records.values()];
  return (
    threads.some(({ until }) => until > now) ||
    records.some(
      ({ state, leaseUntil, notBefore, parkedUntil }) =>
        (state === 'leased' && leaseUntil > now) || notBefore > now || parkedUntil > now,
    )
  );
}
