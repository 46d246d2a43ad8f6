import type { Play, Steps } from './play.ts';
import { copyOf, failRequest, keyOf, onStore, doer } from './play.ts';
import { startSteps } from './handler.ts';
import type { Sent, Thread, World } from './world.ts';
import { LEASE_MS, RETENTION_MS, SELLER, accountOf, spend, withAccount, withoutThread } from './world.ts';

/** The processes that something can happen to. Two of the same kind that are both idle are one and the same. */
function processesOf({ scenario }: Play, { threads }: World): readonly number[] {
  const alike = scenario.modes[0] === scenario.modes[1];
  return alike && threads.length === 0 ? [0] : [0, 1];
}

/** The seller, or whoever recorded it: a fresh delivery of an event, or the bytes of an earlier one. */
export function sendSteps(play: Play, world: World): Steps {
  if (world.budget.sends === 0 || world.threads.length >= play.scenario.threads) return [];
  const paid = spend(world, 'sends');
  return processesOf(play, world).flatMap((process) => [
    ...play.scenario.events.flatMap(({ copies }, event) =>
      Array.from({ length: copies }, (_, copy) => sendFresh(play, paid, { event, copy }, process)),
    ),
    ...world.sent.map((sent) => sendAgain(play, paid, sent, process)),
  ]);
}

export function sendFresh(
  play: Play,
  world: World,
  { event, copy }: Pick<Sent, 'event' | 'copy'>,
  process: number,
): Steps[number] {
  const sent: Sent = { event, copy, nonce: `nonce ${world.sent.length + 1}` };
  const state = arrival({ ...world, sent: [...world.sent, sent] }, sent, process);
  return { label: `the seller sends ${told(play, sent)} to process ${process + 1}: ${lastId(state)}`, state };
}

export function sendAgain(play: Play, world: World, sent: Sent, process: number): Steps[number] {
  const state = arrival(world, sent, process);
  const label = `the same bytes of ${told(play, sent)} come again, to process ${process + 1}: ${lastId(state)}`;
  return { label, state };
}

function lastId({ threads }: World): string {
  return `delivery ${threads.at(-1)?.id}`;
}

function told(play: Play, { event, copy, nonce }: Sent): string {
  return `${keyOf(play, event)}${copy === 0 ? '' : ', changed'} (${nonce})`;
}

function arrival(world: World, { event, copy, nonce }: Sent, process: number): World {
  const thread: Thread = {
    id: `#${world.next}`,
    process,
    worker: false,
    event,
    copy,
    nonce,
    at: 'arrived',
    step: 0,
    until: 0,
    fence: -1,
    answerable: true,
  };
  return { ...world, threads: [...world.threads, thread], next: world.next + 1 };
}

/** An idle worker asks for work. */
export function workSteps(play: Play, world: World): Steps {
  const { workers, threads } = play.scenario;
  if (!workers || world.threads.length >= threads) return [];
  const idle = processesOf(play, world).filter(
    (process) => !world.threads.some((thread) => thread.worker && thread.process === process),
  );
  return idle.flatMap((process) => leaseSteps(play, world, process));
}

function leaseSteps(play: Play, world: World, process: number): Steps {
  const owner = `#${world.next}`;
  const request = {
    owner,
    max: 1,
    leaseMs: LEASE_MS,
    retry: play.scenario.retry,
    retentionMs: RETENTION_MS,
    senders: [SELLER],
  };
  const { after, result } = onStore(world, (rows, now) => play.system.lease(rows, request, now));
  const [leased] = result.events;
  const got = leased ? `${leased.key}, attempt ${leased.lease.attempt}, run ${owner}` : 'nothing';
  const label = `process ${process + 1}'s worker: lease() → ${got}`;
  if (!leased) {
    const swept = after.kept.records !== world.kept.records || after.kept.tasks !== world.kept.tasks;
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
    until: world.now + LEASE_MS,
    fence: leased.lease.fence,
    answerable: false,
  };
  const { leases } = accountOf(world, event);
  const counted = withAccount(after, event, { leases: leases + 1 });
  return [{ label, state: { ...counted, threads: [...counted.threads, thread], next: world.next + 1 } }];
}

/** A worker's lease before its handler: it starts, or the worker stops and gives it back. */
export function leasedSteps(play: Play, world: World, thread: Thread): Steps {
  const starts = startSteps(play, world, thread);
  if (world.budget.returns === 0) return starts;
  const request = failRequest(play, thread, { unstarted: true });
  const { after, result } = onStore(spend(world, 'returns'), (rows, now) =>
    play.system.fail(rows, request, now),
  );
  const { returned } = accountOf(world, thread.event);
  const noted = result === 'lost' ? after : withAccount(after, thread.event, { returned: returned + 1 });
  const label = `${doer(thread)} stops and gives ${keyOf(play, thread.event)} back → ${result}`;
  return [...starts, { label, state: withoutThread(noted, thread) }];
}

/** All that a process had in its memory is gone; the store and what senders were told stay. */
export function crashSteps(world: World): Steps {
  if (world.budget.crashes === 0) return [];
  return [0, 1].flatMap((process) => {
    const left = world.threads.filter((thread) => thread.process !== process);
    if (left.length === world.threads.length) return [];
    return [{ label: `process ${process + 1} dies`, state: { ...spend(world, 'crashes'), threads: left } }];
  });
}

/** Time passes, whoever is in the middle of something: owners outlive their leases. */
export function jumpSteps({ scenario }: Play, world: World): Steps {
  if (world.budget.jumps === 0 || !isTimed(world)) return [];
  const label = `the clock moves by ${scenario.jumpMs} ms`;
  return [{ label, state: later(spend(world, 'jumps'), scenario.jumpMs) }];
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
