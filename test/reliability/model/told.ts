import type { RecordRow } from '../../../src/stores/for-tests.ts';
import type { Breach } from './explore.ts';
import type { Play } from './play.ts';
import { keyOf } from './play.ts';
import { draftOf } from './rows.ts';
import type { Said } from './system.ts';
import type { Invariant, ToldEvent, World } from './world.ts';
import { SELLER, accountOf, eventOf } from './world.ts';

/*
 * Events of one task by several channels (admission.md §5.9), judged by what was told and what was handled.
 */

type Task = NonNullable<ToldEvent['task']>;

/** Of one task, or one of the two names the operation that the other one is of. */
function isSame(one: Task, other: Task): boolean {
  if (one.id === other.id) return true;
  const operation = one.told?.operation;
  return operation === other.id || other.told?.operation === one.id;
}

/** The same, or an end that names the ids of both was in the store before the second of them. */
function areJoined(play: Play, { kept }: World, one: Task, other: Task): boolean {
  if (isSame(one, other)) return true;
  const tasks = [...kept.records.keys()].map(
    (key) => play.scenario.events.find(({ name }) => name === key)?.task,
  );
  const second = Math.max(tasks.indexOf(one), tasks.indexOf(other));
  return tasks
    .slice(0, Math.max(0, second))
    .some((task) => task?.terminal && isSame(task, one) && isSame(task, other));
}

/** Of two webhooks the edition says what they are to each other. */
function areOtherChannels(one: Task, other: Task): boolean {
  if (!one.told || !other.told) return false;
  return one.told.source !== 'webhook' || other.told.source !== 'webhook';
}

function isSameStatus(one: Task, other: Task): boolean {
  return one.told?.status === other.told?.status && one.instant === other.instant;
}

/** What must not be handled beside what was: the event is about to be completed. */
export function conflict(
  play: Play,
  world: World,
  event: number,
): { readonly invariant: Invariant; readonly other: string } | undefined {
  const { task } = eventOf(play.scenario, event);
  if (!task) return undefined;
  for (const [at, { task: other, name }] of play.scenario.events.entries()) {
    if (at === event || !other || accountOf(world, at).completedBy.length === 0) continue;
    const invariant = between(play, world, task, other) ?? overtaken(task, other, world, { event, at });
    if (invariant) return { invariant, other: name };
  }
  return undefined;
}

/** @param other was handled before. */
function between(play: Play, world: World, task: Task, other: Task): Invariant | undefined {
  if (areOtherChannels(task, other) && areJoined(play, world, task, other)) {
    if (task.terminal && other.terminal)
      return 'the end of a task is handled once, whichever channel tells it';
    if (task.instant !== undefined && isSameStatus(task, other))
      return 'a status that two channels tell is handled once';
  }
  if (isPastEnd(task, other)) return 'nothing of a task is handled after its end in edition 3.2';
  if (!isOlder(task, other) || isToldLater(play, world, task, other)) return undefined;
  return 'an older status is never applied after a newer one';
}

const isPastEnd = (task: Task, other: Task): boolean =>
  task.keepsEnd === true && other.terminal && task.id === other.id;

function isOlder(task: Task, other: Task): boolean {
  if (task.id !== other.id || task.instant === undefined || other.instant === undefined) return false;
  return task.instant < other.instant;
}

/** An end that another channel has told too, without a time or at a later one, is as new as that. */
function isToldLater(play: Play, { kept }: World, end: Task, other: Task): boolean {
  if (!end.terminal || other.terminal) return false;
  return play.scenario.events.some(({ task }, at) => {
    if (!task?.terminal || !areOtherChannels(task, end) || !isSame(task, end)) return false;
    const isNewer =
      task.instant === undefined || (other.instant !== undefined && task.instant > other.instant);
    return isNewer && kept.records.has(keyOf(play, at));
  });
}

function overtaken(
  task: Task,
  other: Task,
  world: World,
  { event, at }: { readonly event: number; readonly at: number },
): Invariant | undefined {
  const { askedAt } = accountOf(world, event);
  const { completedAt } = accountOf(world, at);
  if (task.id !== other.id || task.terminal || task.instant !== undefined) return undefined;
  if (askedAt === undefined || completedAt === undefined) return undefined;
  return completedAt > askedAt
    ? 'a status that was asked for is never handled after what came since'
    : undefined;
}

/**
 * Whether what `at` tells makes `event` one that need not be handled: both are ends, or the same status; or it ended what
 * the other one is of, or was handled since that was asked for.
 */
export function tellsOf(play: Play, world: World, at: number, event: number): boolean {
  const { task } = eventOf(play.scenario, event);
  const { task: other } = eventOf(play.scenario, at);
  if (!task || !other || !areJoined(play, world, task, other)) return false;
  if (isPastEnd(task, other)) return true;
  if (areOtherChannels(task, other) && other.terminal) return true;
  if (task.terminal || other.terminal) return false;
  if (task.instant !== undefined) return areOtherChannels(task, other) && isSameStatus(task, other);
  const { completedAt = -1 } = accountOf(world, at);
  return (
    other.told?.status === task.told?.status || completedAt > (accountOf(world, event).askedAt ?? Infinity)
  );
}

/** What becomes of an event that several channels may tell. */
interface Known {
  readonly task: Task;
  readonly record: RecordRow | undefined;
  readonly isHandled: boolean;
  readonly completedAt: number | undefined;
}

function knownOf(play: Play, world: World): readonly Known[] {
  return play.scenario.events.flatMap(({ task }, at) => {
    if (!task?.told) return [];
    const { completedBy, completedAt } = accountOf(world, at);
    const record = world.kept.records.get(keyOf(play, at));
    return [{ task, record, isHandled: completedBy.length > 0, completedAt }];
  });
}

const OPEN: ReadonlySet<string | undefined> = new Set(['queued', 'leased']);

/** Whether what is said of an end is so of one of the ends that were told: a world has one task, and one operation. */
const IS_END: Record<NonNullable<Said['end']>, (end: Known) => boolean> = {
  done: ({ record, isHandled }) => isHandled || record?.state === 'dead',
  safe: ({ record }) => OPEN.has(record?.state) && record?.acked === true,
  unsafe: ({ record }) => OPEN.has(record?.state) && record?.acked === false,
};

/** What a plan over rows of registrations is told of each task and operation (`taskEnd`, `lastTold`). */
export function saidWrongly(play: Play, world: World): Breach<Invariant> | undefined {
  const { said: saying } = play.system;
  if (!saying) return undefined;
  const known = knownOf(play, world);
  const ids = new Set(known.flatMap(({ task }) => [task.id, task.told?.operation ?? task.id]));
  for (const id of ids) {
    const { rows } = draftOf(world.kept);
    const said = saying(rows, { sender: SELLER, id }, world.now);
    const wrong = wrongEnd(known, id, said) ?? wrongLast(known, id, said);
    if (wrong === undefined) continue;
    const invariant = 'a task’s end and last status are said as they were told and handled';
    return { invariant, detail: `of ${id} ${wrong}` };
  }
  return undefined;
}

function wrongEnd(known: readonly Known[], id: string, { end }: Said): string | undefined {
  const ends = known.filter(({ task }) => task.terminal);
  const own = ends.filter(({ task }) => task.id === id || task.told?.operation === id);
  if (end !== undefined && !ends.some(IS_END[end])) return `is said that its end is ${end}`;
  if (end !== 'done' && own.some(({ isHandled }) => isHandled))
    return `is said ${end}, and its end was handled`;
  const isTold = own.some(({ task, record }) => task.id === id && OPEN.has(record?.state));
  return end === undefined && isTold ? 'is said that it has no end, which was told' : undefined;
}

function wrongLast(known: readonly Known[], id: string, { last }: Said): string | undefined {
  const handled = known.filter(({ task, isHandled }) => task.id === id && isHandled);
  const at = Math.max(...handled.map(({ completedAt = 0 }) => completedAt));
  const statuses = handled
    .filter(({ completedAt }) => completedAt === at)
    .map(({ task }) => task.told?.status);
  if (handled.length === 0 ? !last : last?.at === at && statuses.includes(last.status)) return undefined;
  return `is said that ${last?.status} was applied last, at ${last?.at}: it was ${statuses.join(' or ')} at ${at}`;
}
