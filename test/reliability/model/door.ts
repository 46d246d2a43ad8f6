import type { AcceptDecision } from '../../../src/stores/index.ts';
import { answered } from './answers.ts';
import { startSteps } from './handler.ts';
import type { Play, Steps } from './play.ts';
import { acceptRequest, doer, given, heldUntil, keyOf, modeOf, onStore } from './play.ts';
import { judgedReport } from './reports.ts';
import type { Thread, World } from './world.ts';
import { SELLER, accountOf, spend, withAccount, withThread, withoutThread } from './world.ts';

/** What a delivery can do next; the first step is the ordinary one. */
export const DOOR: Record<
  'arrived' | 'decided' | 'waiting',
  (play: Play, world: World, thread: Thread) => Steps
> = { arrived, decided, waiting };

function arrived(play: Play, world: World, thread: Thread): Steps {
  const { admission, answersFirst } = play.system;
  const key = keyOf(play, thread.event);
  if (answersFirst && thread.answerable && modeOf(play, thread) === 'inbox') {
    const after = withThread(answered(play, world, thread, 200), { ...thread, answerable: false });
    return [{ label: `${doer(thread)} answers 200 for ${key}`, state: after }];
  }
  const admit = admission[thread.step];
  if (!admit) throw new RangeError('an admission ends with a decision');
  const request = acceptRequest(play, world, thread);
  const { after, result } = onStore(world, (rows, now) => admit(rows, request, now));
  const noted = judgedReport(play, world, noteFirstCopy(play, world, after, thread), { thread, result });
  if (!result) {
    const state = withThread(noted, { ...thread, step: thread.step + 1 });
    return [{ label: `${doer(thread)}: step ${thread.step + 1} of the accept of ${key}`, state }];
  }
  const burned = world.kept.nonces.get(thread.nonce ?? '');
  const again = burned !== undefined && burned.acceptId !== thread.id;
  const state = withDecision(play, noted, { ...thread, ...(again && { again }) }, result);
  return [{ label: `${doer(thread)}: accept(${key}) → ${said(result)}`, state }];
}

function said(decision: AcceptDecision): string {
  if (decision.kind === 'won') return `won, run ${decision.lease.run}`;
  return decision.kind === 'done' ? `done (${decision.state})` : decision.kind;
}

function noteFirstCopy(play: Play, before: World, after: World, { event, copy, askedAt }: Thread): World {
  const key = keyOf(play, event);
  const isNew = !before.kept.records.has(key) && after.kept.records.has(key);
  if (!isNew) return after;
  return withAccount(after, event, { first: copy, ...(askedAt !== undefined && { askedAt }) });
}

function withDecision(play: Play, world: World, thread: Thread, decision: AcceptDecision): World {
  const waits = play.system.consequence(decision, modeOf(play, thread)) === 'wait';
  if (isSuspect(decision)) return askedAlone(play, world, thread, decision);
  const suspectNow = thread.suspect && decision.kind === 'won';
  const decided: Thread = {
    ...thread,
    decision,
    suspect: suspectNow,
    at: waits ? 'waiting' : 'decided',
    step: 0,
  };
  // The same lease, told again, lasts no longer for it.
  if (decision.kind !== 'won' || decision.lease.run === thread.run) return withThread(world, decided);
  const { leases, attempts } = accountOf(world, thread.event);
  const { run, suspect = false } = decision.lease;
  const leased = { ...decided, run, suspect, until: heldUntil(world) };
  // The first run is one, in whatever way it comes.
  const isCounted = !thread.again || leases === 0;
  const counted = { leases: leases + 1, attempts: attempts + Number(isCounted) };
  return withThread(withAccount(world, thread.event, counted), leased);
}

function isSuspect(decision: Thread['decision']): boolean {
  return decision?.kind === 'in-flight' && decision.suspect === true;
}

/** Its process keeps its one place for a suspect for it, and it asks again, without its nonce; else it is answered 503. */
function askedAlone(play: Play, world: World, thread: Thread, decision: AcceptDecision): World {
  if (isTaken(play, world, thread)) return withThread(world, { ...thread, decision, at: 'decided', step: 0 });
  const { nonce: _bound, ...bare } = thread;
  const replay = 'replay' in decision && decision.replay;
  const again = { id: `#${world.next}`, at: 'arrived', step: 0, suspect: true } as const;
  const asking: Thread = { ...bare, ...(replay && { replay }), ...again };
  const left = withoutThread(world, thread);
  return { ...left, next: world.next + 1, threads: [...left.threads, asking] };
}

/** The answer of the store did not arrive: its client sends the same request again. */
function resendSteps(world: World, thread: Thread): Steps {
  if (world.budget.resends === 0) return [];
  const { decision: _lost, ...again } = thread;
  const state = withThread(spend(world, 'resends'), { ...again, at: 'arrived', step: 0 });
  return [{ label: `${doer(thread)}: the store's answer is lost, the accept is sent again`, state }];
}

function decided(play: Play, world: World, thread: Thread): Steps {
  const { decision } = thread;
  if (!decision || decision.kind === 'gave-up') throw new RangeError('decided without a decision');
  const next = isSuspect(decision) ? 503 : play.system.consequence(decision, modeOf(play, thread));
  if (next === 'run') {
    const starts =
      thread.suspect && isTaken(play, world, thread)
        ? [handBack(play, world, thread)]
        : startSteps(play, world, thread);
    return [...starts, ...resendSteps(world, thread)];
  }
  if (next === 'wait') throw new RangeError('a waiting delivery is not decided');
  const state = withoutThread(answered(play, world, thread, next), thread);
  const label = `${doer(thread)} answers ${next} (${decision.kind}) for ${keyOf(play, thread.event)}`;
  return [{ label, state }, ...resendSteps(world, thread)];
}

/** Whether its process runs another suspect already, or has kept the place for one (admission.md §4.6). */
function isTaken(play: Play, { threads }: World, { id, process }: Thread): boolean {
  return threads.some((other) => other.id !== id && other.process === process && hasPlace(play, other));
}

/** Whether it runs in its process's one place for a suspect, or asks for a suspect's lease, for which that is kept. */
export function hasPlace({ system }: Play, { suspect, at, run }: Thread): boolean {
  const isAskedAgain = at === 'arrived' && run >= 0;
  return suspect && at !== 'waiting' && at !== 'settled' && (system.keepsPlace || !isAskedAgain);
}

function handBack(play: Play, world: World, thread: Thread): Steps[number] {
  const { after, label } = given(play, world, thread);
  return { label: `${label}: 503`, state: withoutThread(answered(play, after, thread, 503), thread) };
}

/** admission.md §3.11: 200 when it is finished, taken over when it is free, else 503. */
function waiting(play: Play, world: World, thread: Thread): Steps {
  const key = keyOf(play, thread.event);
  const { result: seen } = onStore(world, (rows, now) =>
    play.system.peek(rows, { sender: SELLER, key }, now),
  );
  const label = `${doer(thread)} waits for ${key}: peek → ${seen}`;
  const giveUp = {
    label: `${doer(thread)} has waited long enough for ${key}: 503`,
    state: withoutThread(answered(play, world, thread, 503), thread),
  };
  const rest = [giveUp, ...resendSteps(world, thread)];
  if (seen === 'busy') return rest;
  if (seen === 'free' || seen === 'absent') {
    // The nonce is bound already: another accept of the same event, without it.
    const { nonce: _bound, decision: first, ...bare } = thread;
    const replay = first !== undefined && 'replay' in first && first.replay;
    const begin = {
      id: `#${world.next}`,
      at: 'arrived',
      step: 0,
      run: -1,
      suspect: false,
      until: 0,
    } as const;
    const takeover: Thread = { ...bare, ...(replay && { replay }), ...begin };
    const swapped = { ...withoutThread(world, thread), next: world.next + 1 };
    return [{ label, state: { ...swapped, threads: [...swapped.threads, takeover] } }, ...rest];
  }
  const decision = { kind: 'done', state: seen, changed: false, died: false } as const;
  return [{ label, state: withThread(world, { ...thread, at: 'decided', decision }) }, ...rest];
}
