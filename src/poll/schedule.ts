// The steps of a poll over the rows of its seller, each atomic (calls.md §3.3). The poller calls them. A process that
// polls holds a lease. Its row is due again when the lease ends. That time names the poll, so a poll whose lease has
// ended changes nothing. The polls of all processes are counted in the seller's row.
import type { TaskStatus } from '../events/event.ts';
import type { JsonObject } from '../registrations/answer-json.ts';
import { seenOf, storedIn } from '../registrations/operation.ts';
import type { SellerAnswer } from '../registrations/operation.ts';
import type { SellerStep } from '../registrations/seller-step.ts';
import { endTask, replaceTask } from '../registrations/settling.ts';
import {
  endedWatch,
  livePolls,
  pauseOf,
  saveSellerRow,
  type SellerRow,
  sellerRowIn,
  type Watch,
  type WatchedTasks,
  watchIn,
  watchRow,
} from '../registrations/watch-task.ts';
import { isInLine, outOfLine, standInLine, withoutFirst } from './line.ts';
import { storedId } from '../stages/ids.ts';
import type { RegistrationRow } from '../stores/store.ts';

/** The intervals and limits of polls. Ms. */
export interface Pace {
  readonly fastMs: number;
  readonly slowMs: number;
  readonly giveUpMs: number;
  /** The time since the last webhook within which a seller counts as sending them. */
  readonly silentMs: number;
  /** The lease of a poll: after it another process makes the poll. */
  readonly leaseMs: number;
  /** The largest number of polls of one seller, of all processes. */
  readonly perSeller: number;
  /** A random number in [0, 1). */
  readonly random: () => number;
}

/** A row that this process may poll, as long as it is due at that time. */
export interface Held {
  readonly sender: string;
  readonly id: string;
  readonly dueAt: number | null;
}

/** A task that is asked about, and its latest applied status, from whichever channel. */
export interface Polled extends Watch {
  readonly told: { readonly status: string; readonly at: number } | undefined;
}

/**
 * The outcome of beginning a poll. `poll`: ask now. `ended`: the task has ended, and nobody asks any more. `later`: not
 * now. `lost`: another process has it.
 */
export type Begun =
  | { readonly kind: 'poll'; readonly watch: Polled; readonly held: Held }
  | { readonly kind: 'ended' | 'later' | 'lost' };

/** The outcome of a poll. */
export type PollEnd =
  /** The seller has answered. `isEnd`: the task is over, and no channel has to tell it again. */
  | {
      readonly kind: 'answered';
      readonly isEnd: boolean;
      readonly status: TaskStatus | undefined;
      readonly dataHash: string | undefined;
      readonly isChange: boolean;
      readonly hintMs: number | undefined;
    }
  /**
   * The poll failed. `isBusy`: the seller asks for a pause, in which none of its tasks is polled. Without `pauseMs` it
   * lasts `fastMs`.
   */
  | {
      readonly kind: 'failed';
      readonly isBusy?: boolean;
      readonly pauseMs?: number | undefined;
      readonly isUnknown?: boolean;
    }
  /** The seller can say no more: the task is unresolved, unless another channel has told its end. */
  | { readonly kind: 'unresolved' }
  /** The question did not end: another process may ask at once. */
  | { readonly kind: 'stopped' };

/** The share of the latest poll in `SellerRow.tookMs`. */
const NEWEST_SHARE = 0.3;
/** The longest time between two polls of a task that fails. Ms. */
const LONGEST_BACKOFF_MS = 1_800_000;
/** The share by which a time between two polls is lengthened or shortened at random. */
const JITTER = 0.1;

const spread = (ms: number, { random }: Pace): number =>
  Math.max(1, Math.round(ms * (1 - JITTER + 2 * JITTER * random())));

/** The interval of a task: slow if webhooks were registered and the seller sends them. */
function intervalMs({ hasWebhooks }: Watch, { heardAt }: SellerRow, now: number, pace: Pace): number {
  const isHeard = heardAt !== undefined && now - heardAt < pace.silentMs;
  return hasWebhooks && isHeard ? pace.slowMs : pace.fastMs;
}

/** Begins a poll of a row that was due. */
export function beginPoll(
  { rows: store, hashes, retentionMs }: WatchedTasks,
  of: Held,
  pace: Pace,
): Promise<Begun> {
  return store.run(of.sender, (rows, now) => begun({ rows, now, hashes, retentionMs }, of, pace));
}

function begun(step: SellerStep, of: Held, pace: Pace): Begun {
  const { rows, now } = step;
  const row = rows.get('watch', of.id);
  if (!row || row.dueAt === null || row.dueAt !== of.dueAt) return { kind: 'lost' };
  const seller = sellerRowIn(rows);
  const watch = watchIn(row);
  const waits = isInLine(seller, watch);
  const checked = waits ? undefined : unlessLater(step, row, seller, pace);
  if (checked) return checked;
  const pausedUntil = pauseOf(seller, now);
  if (pausedUntil > now) return later(step, of, watch, pausedUntil + pace.random() * pace.fastMs);
  const polls = livePolls(seller, now);
  if (polls.length < pace.perSeller && !seller.line?.first) return started(step, of, watch, pace);
  standInLine(step, row, seller, pace);
  if (polls.length < pace.perSeller) return firstInLine(step, of.sender, pace) ?? { kind: 'later' };
  return { kind: 'later' };
}

const later = ({ rows }: SellerStep, of: Held, watch: Watch, at: number): Begun => {
  rows.save(watchRow(of, watch, 'watched', { dueAt: Math.ceil(at) }));
  return { kind: 'later' };
};

/** The outcome for a task that is not to be asked about now; undefined if it is. */
function unlessLater(
  step: SellerStep,
  row: RegistrationRow,
  seller: SellerRow,
  pace: Pace,
): Begun | undefined {
  const { rows, now } = step;
  const end = rows.taskEnd(row.id);
  if (end === 'done') {
    endTask(step, row);
    return { kind: 'ended' };
  }
  const watch = outOfLine(watchIn(row));
  const everyMs = spread(intervalMs(watch, seller, now, pace), pace);
  // Nobody has to tell its end again, unless something newer is applied before it.
  if (end === 'safe') return later(step, row, watch, now + everyMs);
  if (watch.isScheduled || watch.since + everyMs <= now) return undefined;
  return later(step, row, { ...watch, isScheduled: true }, watch.since + everyMs);
}

/** Begins the poll, which has a place of its seller. */
function started({ rows, now }: SellerStep, { sender, id }: Held, watch: Watch, pace: Pace): Begun {
  const held = { sender, id, dueAt: Math.ceil(now + pace.leaseMs) };
  const is = outOfLine(watch);
  const seller = sellerRowIn(rows);
  rows.save(watchRow(held, is, 'watched', held));
  saveSellerRow(rows, sender, { ...seller, polls: [...livePolls(seller, now), [id, held.dueAt]] });
  return { kind: 'poll', watch: { ...is, told: rows.lastTold(id) }, held };
}

/** The largest number of tasks that one step takes out of a line: each is read by itself. */
const MOST_PASSED = 32;

/** Takes tasks out of the line of a seller that has free places, until one is to be polled. @returns its poll. */
function firstInLine(step: SellerStep, sender: string, pace: Pace): Begun | undefined {
  const { rows, now } = step;
  for (let left = MOST_PASSED; left > 0; left -= 1) {
    const seller = sellerRowIn(rows);
    const { line } = seller;
    if (line?.first === undefined) return undefined;
    const row = rows.get('watch', line.first);
    const watch = row && watchIn(row);
    saveSellerRow(rows, sender, { ...seller, line: withoutFirst(line, watch) });
    // It has ended, or now waits for something else.
    if (!watch || row.dueAt === null || !isInLine(seller, watch)) continue;
    if (rows.taskEnd(row.id) === undefined) return started(step, row, watch, pace);
    // Its end has been told, so it is looked at by itself.
    later(step, row, outOfLine(watch), now);
  }
  return undefined;
}

/**
 * The standing of a task after a poll. `unresolved`: it has not ended and is no longer polled. `lost`: the poll was no
 * longer this process's.
 */
export type PollKept = 'kept' | 'unresolved' | 'lost';

/**
 * Ends the poll of a task whose call is over, and gives its operation to the task that has replaced it.
 * @returns false if the operation has another task by now, the poll is another process's, or `giveUpMs` is over.
 */
export function moveTask(
  { rows: store, hashes, retentionMs }: WatchedTasks,
  held: Held,
  to: SellerAnswer,
  pace: Pick<Pace, 'giveUpMs'>,
): Promise<boolean> {
  return store.run(held.sender, (rows, now) => {
    const row = rows.get('watch', held.id);
    if (row?.dueAt !== held.dueAt || isGivenUp(watchIn(row), 'answered', now, pace)) return false;
    return replaceTask({ rows, now, hashes, retentionMs }, row, to);
  });
}

/** The outcome of the end of a poll, and the poll that has begun in its place. */
export interface PlaceFreed {
  readonly kept: PollKept;
  readonly next: Begun | undefined;
}

/**
 * Ends a poll, and gives up a task that has not ended for `giveUpMs`. `goesOn`: true if this process polls the task
 * that waits for the place; else any process may.
 */
export function endPoll(
  { rows: store, hashes, retentionMs }: WatchedTasks,
  held: Held,
  end: PollEnd,
  { goesOn, ...pace }: Pace & { readonly goesOn: boolean },
): Promise<PlaceFreed> {
  return store.run(held.sender, (rows, now) => {
    const step = { rows, now, hashes, retentionMs };
    const seller = sellerRowIn(rows);
    const row = rows.get('watch', held.id);
    // A seller that was forgotten meanwhile has no polls.
    if (seller.polls) saveSellerRow(rows, held.sender, afterPoll(seller, held, end, { now, pace }));
    const kept = row?.dueAt === held.dueAt ? ended(step, row, end, { seller, pace }) : 'lost';
    return { kept, next: nextPoll(step, held, pace, goesOn) };
  });
}

/** Gives the place to the first in line. */
function nextPoll(step: SellerStep, { sender }: Held, pace: Pace, goesOn: boolean): Begun | undefined {
  const { rows, now } = step;
  const seller = sellerRowIn(rows);
  if (livePolls(seller, now).length >= pace.perSeller || pauseOf(seller, now) > now) return undefined;
  if (goesOn) return firstInLine(step, sender, pace);
  const first = seller.line?.first === undefined ? undefined : rows.get('watch', seller.line.first);
  if (first && first.dueAt !== null) rows.save({ ...first, dueAt: Math.ceil(now) });
  return undefined;
}

function ended(
  step: SellerStep,
  row: RegistrationRow,
  end: PollEnd,
  { seller, pace }: { readonly seller: SellerRow; readonly pace: Pace },
): PollKept {
  const { rows, now } = step;
  const watch = watchIn(row);
  const told = rows.taskEnd(row.id);
  if (told === 'done') {
    endTask(step, row);
  } else if (end.kind === 'answered' && end.isEnd) {
    rows.save(endedWatch(row, now + step.retentionMs));
  } else if (told === undefined && isGivenUp(watch, end.kind, now, pace)) {
    rows.save(watchRow(row, watch, 'unresolved'));
    return 'unresolved';
  } else {
    rows.save(next(row, watch, end, { now, pace, everyMs: intervalMs(watch, seller, now, pace) }));
  }
  return 'kept';
}

function isGivenUp(
  { since, begunAt = since }: Watch,
  kind: PollEnd['kind'],
  now: number,
  { giveUpMs }: Pick<Pace, 'giveUpMs'>,
): boolean {
  return kind === 'unresolved' || (kind !== 'stopped' && now - begunAt >= giveUpMs);
}

/** The `context` of the call. A webhook repeats it, but the answer to a question need not. */
export function contextOf(
  { rows: store, hashes }: WatchedTasks,
  { operationId }: Watch,
  { sender }: Held,
): Promise<JsonObject | undefined> {
  return store.run(sender, (rows) => {
    const row = rows.get('operation', storedId(operationId, hashes));
    return row && seenOf(row, storedIn(row)).context;
  });
}

/** The state of a seller after a poll. */
function afterPoll(
  seller: SellerRow,
  held: Held,
  end: PollEnd,
  { now, pace }: { readonly now: number; readonly pace: Pace },
): SellerRow {
  const polls = livePolls(seller, now).filter(([id, until]) => id !== held.id || until !== held.dueAt);
  const tookMs = tookBy(seller, now - ((held.dueAt ?? now) - pace.leaseMs));
  const pausedUntil =
    end.kind === 'failed' && end.isBusy
      ? // The longer pause counts: the one it asks for now, or the one before.
        Math.max(seller.pausedUntil ?? 0, Math.ceil(now + (end.pauseMs ?? pace.fastMs)))
      : undefined;
  return { ...seller, polls, tookMs, ...(pausedUntil !== undefined && { pausedUntil }) };
}

const tookBy = ({ tookMs }: SellerRow, lastMs: number): number =>
  Math.max(1, Math.round(tookMs === undefined ? lastMs : tookMs + NEWEST_SHARE * (lastMs - tookMs)));

/**
 * The wait after failures, doubled with each. It is longer than after an answer without news, which is asked again
 * after the interval itself.
 */
const backoffMs = (everyMs: number, failures: number): number =>
  Math.max(everyMs, Math.min(everyMs * 2 ** Math.min(failures, 20), LONGEST_BACKOFF_MS));

interface Timing {
  readonly now: number;
  readonly pace: Pace;
  /** The time between two polls that are answered, ms. */
  readonly everyMs: number;
}

/** The row of a task that has not ended. */
function next(
  row: RegistrationRow,
  watch: Watch,
  end: PollEnd,
  { now, pace, everyMs }: Timing,
): RegistrationRow {
  // Jitter never makes a wait shorter than the seller asks for.
  const dueIn = (ms: number, atLeastMs = 0): { readonly dueAt: number } => ({
    dueAt: Math.ceil(now + Math.max(spread(ms, pace), atLeastMs)),
  });
  switch (end.kind) {
    case 'unresolved':
      return watchRow(row, watch, 'watched', dueIn(everyMs));
    case 'stopped':
      return watchRow(row, { ...watch, isScheduled: true }, 'watched', { dueAt: Math.ceil(now) });
    case 'failed': {
      const failures = watch.failures + 1;
      const is: Watch = { ...watch, isScheduled: true, failures, ...(end.isUnknown && { isUnknown: true }) };
      return watchRow(row, is, 'watched', dueIn(backoffMs(everyMs, failures), end.pauseMs));
    }
    case 'answered': {
      const { isUnknown: _known, dataHash: _before, ...rest } = watch;
      const is: Watch = {
        ...rest,
        isScheduled: true,
        ...(end.status !== undefined && { status: end.status }),
        answeredAt: now,
        ...(end.dataHash !== undefined && { dataHash: end.dataHash }),
        changes: watch.changes + (end.isChange ? 1 : 0),
        failures: 0,
      };
      return watchRow(row, is, 'watched', dueIn(everyMs, end.hintMs));
    }
  }
}
