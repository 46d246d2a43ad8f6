import { answered } from './answers.ts';
import type { Step } from './explore.ts';
import type { Play, Steps } from './play.ts';
import { completeRequest, copyOf, doer, failRequest, heldUntil, keyOf, onStore } from './play.ts';
import { conflict } from './told.ts';
import type { Settled, Thread, World } from './world.ts';
import {
  LEASE_MS,
  accountOf,
  breached,
  eventOf,
  processOf,
  spend,
  withAccount,
  withThread,
  withoutThread,
} from './world.ts';

/** What a handler that runs, or its settling, can do next; the first step is the ordinary one. */
export const HANDLER: Record<
  'running' | 'effected' | 'settled',
  (play: Play, world: World, thread: Thread) => Steps
> = {
  running: (play, world, thread) => [workStep(play, world, thread), ...misfortunes(play, world, thread)],
  effected: (play, world, thread) => [completeStep(play, world, thread), ...misfortunes(play, world, thread)],
  settled: (play, world, thread) => [leaveStep(play, world, thread), ...repeatSteps(play, world, thread)],
};

export function startSteps(play: Play, world: World, thread: Thread): Steps {
  const { decision, event } = thread;
  const given = decision?.kind === 'won' && decision.body ? copyOf(decision.body) : thread.copy;
  const { first } = accountOf(world, event);
  const running = withThread(world, { ...thread, at: 'running' });
  const detail = `the handler of ${keyOf(play, event)} got copy ${given}, stored first was copy ${first}`;
  const state =
    first === undefined || given === first
      ? running
      : breached(running, 'the first copy is what is handled', detail);
  return [{ label: `${doer(thread)}: the handler of ${keyOf(play, event)} starts`, state }];
}

/** All that a process had in its memory is gone; the store and what senders were told stay. */
export function died(play: Play, world: World, process: number): World {
  const left = world.threads.filter((thread) => thread.process !== process);
  let charged = world;
  const suspects = world.threads.filter(
    (thread) => thread.process === process && hasSuspectLease(play, world, thread),
  );
  const [suspect] = suspects;
  // Of two neither was alone.
  if (suspect && suspects.length === 1) {
    const { crashedAlone } = accountOf(world, suspect.event);
    charged = withAccount(world, suspect.event, { crashedAlone: crashedAlone + 1 });
  }
  const [first, second] = world.deaths;
  const deaths = process === 0 ? ([first + 1, second] as const) : ([first, second + 1] as const);
  const processes = new Set(world.kept.processes);
  processes.delete(processOf(world, process));
  processes.add(processOf({ deaths }, process));
  return { ...charged, threads: left, deaths, kept: { ...world.kept, processes } };
}

/**
 * A handler that runs as its process's one suspect, or is about to: from the store's lease on, for as long as the store
 * has that. Whether its process was told of the lease does not matter: it has kept its place for it since it asked.
 */
function hasSuspectLease(play: Play, { kept }: World, thread: Thread): boolean {
  if (!thread.suspect || thread.at === 'looking') return false;
  if (thread.at === 'running' || thread.at === 'effected') return true;
  const record = kept.records.get(keyOf(play, thread.event));
  return record?.state === 'leased' && record.owner === thread.id;
}

/** The effect itself; in a transaction the completion goes with it. */
function workStep(play: Play, world: World, thread: Thread): Step<World> {
  const key = keyOf(play, thread.event);
  const { effects } = accountOf(world, thread.event);
  if (eventOf(play.scenario, thread.event).poison) {
    const label = `${doer(thread)}: the handler of ${key} ends its process`;
    return { label, state: died(play, world, thread.process) };
  }
  if (play.scenario.effects === 'outside') {
    const done = withAccount(world, thread.event, { effects: 1 });
    return {
      label: `${doer(thread)}: the effect of ${key} happens`,
      state: withThread(done, { ...thread, at: 'effected' }),
    };
  }
  const request = completeRequest(play, thread);
  const { after, result } = onStore(world, (rows, now) => play.system.transaction(rows, request, now));
  const label = `${doer(thread)}: the transaction of ${key} → ${result ? 'committed' : 'rolled back'}`;
  if (!result) return { label, state: settled(world, thread, 'lost') };
  const written = withAccount(after, thread.event, { effects: effects + 1 });
  return { label, state: settled(completed(play, written, thread), thread, 'done') };
}

function completeStep(play: Play, world: World, thread: Thread): Step<World> {
  const request = completeRequest(play, thread);
  const { after, result } = onStore(world, (rows, now) => play.system.complete(rows, request, now));
  const counted = result === 'done' ? completed(play, after, thread) : after;
  const label = `${doer(thread)}: complete(${keyOf(play, thread.event)}) → ${result}`;
  return { label, state: settled(counted, thread, result) };
}

/** Into the ledger: who was told that the event is completed. */
function completed(play: Play, world: World, { event, id }: Thread): World {
  const { completedBy } = accountOf(world, event);
  if (completedBy.includes(id)) return world;
  const { task, name } = eventOf(play.scenario, event);
  const after = withAccount(world, event, {
    completedBy: [...completedBy, id],
    ...(task?.told && { completedAt: world.now }),
  });
  const { invariant, other } = conflict(play, world, event) ?? {};
  if (!invariant) return after;
  return breached(after, invariant, `${name} was completed after ${other}`);
}

function settled(world: World, thread: Thread, how: Settled): World {
  // Nobody waits for an answer and no call can come again: the run is over.
  if (!thread.answerable && world.budget.resends === 0) return withoutThread(world, thread);
  return withThread(world, { ...thread, at: 'settled', settled: how });
}

/** Throwing, overrunning, and a look at the lease meanwhile. */
function misfortunes(play: Play, world: World, thread: Thread): Steps {
  return [
    ...failSteps(play, world, thread, 'failures'),
    ...failSteps(play, world, thread, 'permanent'),
    ...deadlineSteps(play, world, thread),
    ...renewSteps(play, world, thread),
  ];
}

function failSteps(play: Play, world: World, thread: Thread, name: 'failures' | 'permanent'): Steps {
  if (world.budget[name] === 0) return [];
  const permanent = name === 'permanent';
  const request = failRequest(play, thread, { permanent });
  const { after, result } = onStore(spend(world, name), (rows, now) => play.system.fail(rows, request, now));
  const { failed } = accountOf(world, thread.event);
  const noted =
    result === 'lost'
      ? after
      : withAccount(after, thread.event, { failed: failed + 1, ...(permanent && { permanent }) });
  const label = `${doer(thread)}: the handler throws${permanent ? ' PermanentError' : ''}, fail(${keyOf(play, thread.event)}) → ${result}`;
  return [{ label, state: settled(noted, thread, result) }];
}

function deadlineSteps(play: Play, world: World, thread: Thread): Steps {
  if (world.budget.deadlines === 0 || !thread.answerable) return [];
  const told = answered(play, spend(world, 'deadlines'), thread, 503);
  const over = withThread(told, { ...thread, answerable: false });
  const label = `${doer(thread)}: the deadline of ${keyOf(play, thread.event)} passes, 503; its handler goes on`;
  if (!play.system.releasesAtDeadline) return [{ label, state: over }];
  const request = failRequest(play, thread);
  const { after } = onStore(over, (rows, now) => play.system.fail(rows, request, now));
  return [{ label: `${label}, its lease is given back`, state: after }];
}

function renewSteps(play: Play, world: World, thread: Thread): Steps {
  if (world.budget.renewals === 0) return [];
  const request = { ...completeRequest(play, thread), leaseMs: LEASE_MS };
  const { after, result } = onStore(spend(world, 'renewals'), (rows, now) =>
    play.system.renew(rows, request, now),
  );
  const label = `${doer(thread)}: renew(${keyOf(play, thread.event)}) → ${result}`;
  if (result === 'lost') return [{ label, state: settled(after, thread, 'lost') }];
  return [{ label, state: withThread(after, { ...thread, until: heldUntil(world) }) }];
}

const ANSWERS: Record<Settled, 200 | 503> = { done: 200, dead: 200, queued: 503, lost: 503 };

function leaveStep(play: Play, world: World, thread: Thread): Step<World> {
  const status = ANSWERS[thread.settled ?? 'lost'];
  const state = withoutThread(answered(play, world, thread, status), thread);
  const what = thread.answerable ? `answers ${status} (${thread.settled})` : 'is done with its run';
  return { label: `${doer(thread)} ${what} for ${keyOf(play, thread.event)}`, state };
}

/** The store's answer to `complete` or `fail` did not arrive: the same call again, by its owner. */
function repeatSteps(play: Play, world: World, thread: Thread): Steps {
  const { settled: how } = thread;
  if (world.budget.resends === 0 || how === undefined || how === 'lost') return [];
  const call = how === 'done' ? 'complete' : 'fail';
  const { after, result } = onStore(spend(world, 'resends'), (rows, now) =>
    how === 'done'
      ? play.system.complete(rows, completeRequest(play, thread), now)
      : play.system.fail(rows, failRequest(play, thread), now),
  );
  const counted = result === 'done' ? completed(play, after, thread) : after;
  const label = `${doer(thread)}: the answer is lost, ${call}(${keyOf(play, thread.event)}) again → ${result}`;
  return [{ label, state: withThread(counted, { ...thread, settled: result }) }];
}
