// Begins and ends polls, each in one transaction on the seller's rows (calls.md §3.3). A process that polls a task has
// a lease, and the task's row is due again when the lease ends. The row's `dueAt` identifies the poll, so a poll whose
// lease has ended changes nothing. The seller's row counts the running polls of all processes.
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
  /** The time after the last webhook during which a seller counts as sending webhooks. */
  readonly silentMs: number;
  /** The lease of a poll. When it has ended, another process may repeat the poll. */
  readonly leaseMs: number;
  /** The most concurrent polls of one seller, of all processes together. */
  readonly perSeller: number;
  /** Returns a random number in [0, 1). */
  readonly random: () => number;
}

/**
 * A task's row that this process has reserved for a poll. The reservation is valid while the row's `dueAt` is
 * unchanged.
 */
export interface Held {
  readonly sender: string;
  readonly id: string;
  readonly dueAt: number | null;
}

/** A task that is polled. `told`: the latest status that any source, e.g. a webhook, has reported. */
export interface Polled extends Watch {
  readonly told: { readonly status: string; readonly at: number } | undefined;
}

/**
 * The result of beginning a poll. `poll`: the seller must be asked now. `ended`: the task has ended, and is no longer
 * polled. `later`: the poll is postponed. `lost`: another process has reserved the row.
 */
export type Begun =
  | { readonly kind: 'poll'; readonly watch: Polled; readonly held: Held }
  | { readonly kind: 'ended' | 'later' | 'lost' };

/** The outcome of a poll. */
export type PollEnd =
  /**
   * The seller has answered. `isEnd`: the answer reports the task's end, so no other source needs to report the end.
   */
  | {
      readonly kind: 'answered';
      readonly isEnd: boolean;
      readonly status: TaskStatus | undefined;
      readonly dataHash: string | undefined;
      readonly isChange: boolean;
      readonly hintMs: number | undefined;
    }
  /**
   * The poll failed. `isBusy`: the seller asks for a pause, during which none of its tasks is polled. Without `pauseMs`
   * the pause lasts `fastMs`.
   */
  | {
      readonly kind: 'failed';
      readonly isBusy?: boolean;
      readonly pauseMs?: number | undefined;
      readonly isUnknown?: boolean;
    }
  /**
   * The seller can say no more about the task. The task becomes `unresolved`, unless another source has reported its
   * end.
   */
  | { readonly kind: 'unresolved' }
  /** The request was interrupted because this process stops. Another process may repeat the request immediately. */
  | { readonly kind: 'stopped' };

/** The weight of the latest poll's duration in the moving average `SellerRow.tookMs`. */
const NEWEST_SHARE = 0.3;
/** The longest time between two polls of a task if its polls fail. Ms. */
const LONGEST_BACKOFF_MS = 1_800_000;
/** The share by which the wait between two polls is at most lengthened or shortened, at random. */
const JITTER = 0.1;

const spread = (ms: number, { random }: Pace): number =>
  Math.max(1, Math.round(ms * (1 - JITTER + 2 * JITTER * random())));

/**
 * Returns the time between two polls of a task: `slowMs` if its call requested webhooks and the seller sends them,
 * otherwise `fastMs`. Ms.
 */
function intervalMs({ hasWebhooks }: Watch, { heardAt }: SellerRow, now: number, pace: Pace): number {
  const isHeard = heardAt !== undefined && now - heardAt < pace.silentMs;
  return hasWebhooks && isHeard ? pace.slowMs : pace.fastMs;
}

/** Begins a poll of a task whose row was due, unless the task has ended or has to wait. */
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

/** Returns the result for a task that must not be polled now; undefined if the seller must be asked. */
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
  // The end of the task was reported by an acknowledged event (`safe`), so no poll is needed. A newer status may still
  // replace that end, so the row is checked again.
  if (end === 'safe') return later(step, row, watch, now + everyMs);
  if (watch.isScheduled || watch.since + everyMs <= now) return undefined;
  return later(step, row, { ...watch, isScheduled: true }, watch.since + everyMs);
}

/** Begins the poll: stores its lease in the rows of the task and of the seller. */
function started({ rows, now }: SellerStep, row: Held, watch: Watch, pace: Pace): Begun {
  const { sender, id } = row;
  const until = Math.ceil(now + pace.leaseMs);
  // Another process may have reserved the row in this millisecond. Its reservation must not be valid for this lease.
  const held = { sender, id, dueAt: until === row.dueAt ? until + 1 : until };
  const is = outOfLine(watch);
  const seller = sellerRowIn(rows);
  rows.save(watchRow(held, is, 'watched', held));
  saveSellerRow(rows, sender, { ...seller, polls: [...livePolls(seller, now), [id, held.dueAt]] });
  return { kind: 'poll', watch: { ...is, told: rows.lastTold(id) }, held };
}

/** The most tasks that one transaction takes out of a queue, because the row of each task is read separately. */
const MOST_PASSED = 32;

/**
 * Takes tasks out of the seller's queue until one has to be polled, and begins its poll. @returns that poll; undefined
 * if there is none.
 */
function firstInLine(step: SellerStep, sender: string, pace: Pace): Begun | undefined {
  const { rows, now } = step;
  for (let left = MOST_PASSED; left > 0; left -= 1) {
    const seller = sellerRowIn(rows);
    const { line } = seller;
    if (line?.first === undefined) return undefined;
    const row = rows.get('watch', line.first);
    const watch = row && watchIn(row);
    saveSellerRow(rows, sender, { ...seller, line: withoutFirst(line, watch) });
    // Skips a task that has ended, or is no longer in the queue.
    if (!watch || row.dueAt === null || !isInLine(seller, watch)) continue;
    if (rows.taskEnd(row.id) === undefined) return started(step, row, watch, pace);
    // The end of this task has been reported, so the task is not polled. Its row becomes due, and `beginPoll` then
    // deals with the end.
    later(step, row, outOfLine(watch), now);
  }
  return undefined;
}

/**
 * The effect of a poll on its task. `unresolved`: no end of the task is known, and the task is no longer polled.
 * `lost`: another process has reserved the task's row.
 */
export type PollKept = 'kept' | 'unresolved' | 'lost';

/**
 * Stops polling a task that another task has replaced, and polls that other task for the same operation.
 * @returns false if the operation has another task by now, another process has reserved the row, or `giveUpMs` is over.
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

/** The result of ending a poll. `next`: the poll of the seller's next waiting task, which begins in its place. */
export interface PlaceFreed {
  readonly kept: PollKept;
  readonly next: Begun | undefined;
}

/**
 * Ends a poll and stores its outcome. Gives up a task that has not ended within `giveUpMs`. `goesOn`: true if this
 * process polls the seller's next waiting task; otherwise any process may.
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
    // If the seller was deleted meanwhile, its row has no `polls`, and must not be written again.
    if (seller.polls) saveSellerRow(rows, held.sender, afterPoll(seller, held, end, { now, pace }));
    const kept = row?.dueAt === held.dueAt ? ended(step, row, end, { seller, pace }) : 'lost';
    return { kept, next: nextPoll(step, held, pace, goesOn) };
  });
}

/**
 * If the seller may be asked now, begins the poll of the first task in its queue. If `goesOn` is false, makes that task
 * due instead, so that any process polls the task.
 */
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

/**
 * Returns the `context` of the call that began the task. A webhook repeats the `context`, but an answer to a poll need
 * not.
 */
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

/** Returns the seller's row after a poll: without that poll, and with the pause that the seller asked for. */
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
      ? // The later end applies: that of the pause that the seller asks for now, or that of an earlier pause.
        Math.max(seller.pausedUntil ?? 0, Math.ceil(now + (end.pauseMs ?? pace.fastMs)))
      : undefined;
  return { ...seller, polls, tookMs, ...(pausedUntil !== undefined && { pausedUntil }) };
}

const tookBy = ({ tookMs }: SellerRow, lastMs: number): number =>
  Math.max(1, Math.round(tookMs === undefined ? lastMs : tookMs + NEWEST_SHARE * (lastMs - tookMs)));

/**
 * Returns the wait after failed polls, which doubles with each failure. It is never shorter than `everyMs`, the usual
 * interval. Ms.
 */
const backoffMs = (everyMs: number, failures: number): number =>
  Math.max(everyMs, Math.min(everyMs * 2 ** Math.min(failures, 20), LONGEST_BACKOFF_MS));

interface Timing {
  readonly now: number;
  readonly pace: Pace;
  /** The usual time between two polls of the task, ms. */
  readonly everyMs: number;
}

/** Returns the row of a task that has not ended, with the time of its next poll. */
function next(
  row: RegistrationRow,
  watch: Watch,
  end: PollEnd,
  { now, pace, everyMs }: Timing,
): RegistrationRow {
  // The random part never makes a wait shorter than the seller asks for.
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
