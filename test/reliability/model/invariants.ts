import type { RecordRow } from '../../../src/stores/for-tests.ts';
import type { Breach } from './explore.ts';
import type { Play } from './play.ts';
import { keyOf } from './play.ts';
import type { Invariant, Thread, World } from './world.ts';
import { accountedWrongly } from './reports.ts';
import { saidWrongly, tellsOf } from './told.ts';
import { accountOf, eventOf } from './world.ts';

export type Broken = Breach<Invariant> | undefined;

/** What must hold in every state. */
export function standing(play: Play, world: World): Broken {
  if (world.breach) return world.breach;
  for (let event = 0; event < play.scenario.events.length; event += 1) {
    const broken =
      charged(play, world, event) ??
      lost(play, world, event) ??
      twice(play, world, event) ??
      replayed(play, world, event);
    if (broken) return broken;
  }
  return overlap(play, world) ?? saidWrongly(play, world) ?? accountedWrongly(play, world);
}

const RUNNING: ReadonlySet<Thread['at']> = new Set<Thread['at']>(['running', 'effected']);

/** Handlers that run, each within the time that its process was given. */
function overlap(play: Play, { threads, now }: World): Broken {
  const running = threads.filter(({ at, until }) => RUNNING.has(at) && until > now);
  for (const [at, one] of running.entries()) {
    const other = running.slice(at + 1).find((other) => isSameTask(play, one, other));
    if (!other) continue;
    const both = `${keyOf(play, one.event)} and ${keyOf(play, other.event)}`;
    return {
      invariant: 'handlers of one task never overlap under live leases',
      detail: `handlers of ${both} run at once`,
    };
  }
  return undefined;
}

function isSameTask({ scenario }: Play, one: Thread, other: Thread): boolean {
  if (one.event === other.event) return true;
  const task = eventOf(scenario, one.event).task?.id;
  return task !== undefined && task === eventOf(scenario, other.event).task?.id;
}

/** Told that it need not come again, an event is finished, or will be without its sender. */
function lost(play: Play, world: World, event: number): Broken {
  if (!accountOf(world, event).acknowledged) return undefined;
  const record = world.kept.records.get(keyOf(play, event));
  if (record && isFinished(play, world, event, record)) return undefined;
  const unfinished = record?.state === 'queued' || record?.state === 'leased';
  if (unfinished && record.acked && play.scenario.workers) return undefined;
  // A process that has it in its memory may still end it well; where it cannot, a later state shows it.
  if (world.threads.some((thread) => thread.event === event)) return undefined;
  return {
    invariant: 'an acknowledged event is never lost',
    detail: `${keyOf(play, event)} was acknowledged, its record is ${record?.state ?? 'not there'}, and nobody will handle it`,
  };
}

/** Applied, or stale or DEAD as the rules say (admission.md §4.4 and §5.3): judged by what happened, not by the record. */
export function isFinished(play: Play, world: World, event: number, { state }: RecordRow): boolean {
  switch (state) {
    case 'applied':
      return accountOf(world, event).completedBy.length > 0;
    case 'stale':
      return (
        isOutdated(play, world, event) ||
        isToldBefore(play, world, event) ||
        accountOf(world, event).discarded
      );
    case 'dead':
      return isUsedUp(play, world, event);
    case 'queued':
    case 'leased':
      return false;
  }
}

/** A newer status of the task was applied, or a terminal one of the same instant while this one is none. */
function isOutdated({ scenario }: Play, world: World, event: number): boolean {
  const { task } = eventOf(scenario, event);
  return scenario.events.some((other, at) => {
    if (!task || other.task?.id !== task.id || accountOf(world, at).completedBy.length === 0) return false;
    const { instant, terminal } = other.task;
    if (instant === undefined || task.instant === undefined) return false;
    return instant > task.instant || (instant === task.instant && terminal && !task.terminal);
  });
}

/** Another channel has told of it, or, of what is not terminal, of what came after it; and that one is handled, or will be. */
function isToldBefore(play: Play, world: World, event: number): boolean {
  return play.scenario.events.some((_, at) => {
    if (at === event || !tellsOf(play, world, at, event)) return false;
    const record = world.kept.records.get(keyOf(play, at));
    if (!record || record.state === 'stale') return false;
    return (record.acked && play.scenario.workers) || isFinished(play, world, at, record);
  });
}

function isUsedUp({ scenario }: Play, world: World, event: number): boolean {
  const { leases, returned, crashedAlone, permanent } = accountOf(world, event);
  const { retry } = scenario;
  return permanent || leases - returned >= retry.attempts || crashedAlone >= retry.crashes;
}

function charged(play: Play, world: World, event: number): Broken {
  const key = keyOf(play, event);
  const record = world.kept.records.get(key);
  if (record?.state !== 'dead' || isUsedUp(play, world, event)) return undefined;
  const { leases, crashedAlone } = accountOf(world, event);
  return {
    invariant: 'only runs that it had to itself make an event DEAD by crashes',
    detail: `${key} is DEAD after ${leases} leases; ${crashedAlone} of them ended with a process that ran it as its suspect`,
  };
}

/** Who has recorded a delivery must not be able to end its event: only fresh deliveries and workers raise attempts. */
function replayed(play: Play, world: World, event: number): Broken {
  const { attempts } = accountOf(world, event);
  const counted = world.kept.records.get(keyOf(play, event))?.attempts ?? 0;
  if (counted <= attempts) return undefined;
  return {
    invariant: 'bytes that come again use up no attempts',
    detail: `${keyOf(play, event)} has ${counted} attempts, of ${attempts} first runs, fresh deliveries and runs of workers`,
  };
}

function twice(play: Play, world: World, event: number): Broken {
  const { completedBy, effects } = accountOf(world, event);
  const key = keyOf(play, event);
  if (completedBy.length > 1) {
    const detail = `${completedBy.length} owners were told that they completed ${key}`;
    return { invariant: 'an event is completed once', detail };
  }
  if (effects > 1) {
    return {
      invariant: 'an event is completed once',
      detail: `${key}'s transaction committed ${effects} times`,
    };
  }
  if (completedBy.length === 1 && effects === 0) {
    return { invariant: 'a completed event was handled', detail: `${key} was completed without its effect` };
  }
  return undefined;
}
