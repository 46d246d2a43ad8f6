// The steps of a poll, each an atomic change of the seller's rows (calls.md §3.3). The poller calls them. A process
// that polls a task has a lease, and the task's row is due again when the lease ends. That time identifies the poll, so
// a poll whose lease has ended changes nothing. The seller's row counts the polls of all processes.
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
  /** The time after the last webhook for which a seller is taken to send webhooks. */
  readonly silentMs: number;
  /** The lease of a poll. After it another process repeats the poll. */
  readonly leaseMs: number;
  /** The most concurrent polls of one seller, of all processes together. */
  readonly perSeller: number;
  /** A random number in [0, 1). */
  readonly random: () => number;
}

/** A row that this process may poll. The reservation is valid as long as the row's `dueAt` is unchanged. */
export interface Held {
  readonly sender: string;
  readonly id: string;
  readonly dueAt: number | null;
}

/** A task that is polled, and the newest status that any channel has reported. */
export interface Polled extends Watch {
  readonly told: { readonly status: string; readonly at: number } | undefined;
}

/**
 * The result of beginning a poll. `poll`: the seller must be asked now. `ended`: the task has ended, and is no longer
 * polled. `later`: the poll is postponed. `lost`: another process has the row.
 */
export type Begun =
  | { readonly kind: 'poll'; readonly watch: Polled; readonly held: Held }
  | { readonly kind: 'ended' | 'later' | 'lost' };

/** The outcome of a poll. */
export type PollEnd =
  /** The seller has answered. `isEnd`: the task is over, and no other channel needs to report that. */
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
  /** The seller can say no more about the task. It becomes unresolved, unless another channel has reported its end. */
  | { readonly kind: 'unresolved' }
  /** The request was interrupted, so another process may repeat it at once. */
  | { readonly kind: 'stopped' };

/** The weight of the latest poll in the average `SellerRow.tookMs`. */
const NEWEST_SHARE = 0.3;
/** The longest time between two polls of a task if its polls fail. Ms. */
const LONGEST_BACKOFF_MS = 1_800_000;
/** The share by which the time between two polls is randomly lengthened or shortened. */
const JITTER = 0.1;

const spread = (ms: number, { random }: Pace): number =>
  Math.max(1, Math.round(ms * (1 - JITTER + 2 * JITTER * random())));

/** Returns the interval of a task: the slow one if webhooks were registered and the seller sends them. */
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

/** Returns the result for a task that must not be polled now; undefined if it must. */
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
  // No channel needs to report the end again, unless something newer is applied before it.
  if (end === 'safe') return later(step, row, watch, now + everyMs);
  if (watch.isScheduled || watch.since + everyMs <= now) return undefined;
  return later(step, row, { ...watch, isScheduled: true }, watch.since + everyMs);
}

/** Begins the poll, which occupies a call slot of the seller. */
function started({ rows, now }: SellerStep, { sender, id }: Held, watch: Watch, pace: Pace): Begun {
  const held = { sender, id, dueAt: Math.ceil(now + pace.leaseMs) };
  const is = outOfLine(watch);
  const seller = sellerRowIn(rows);
  rows.save(watchRow(held, is, 'watched', held));
  saveSellerRow(rows, sender, { ...seller, polls: [...livePolls(seller, now), [id, held.dueAt]] });
  return { kind: 'poll', watch: { ...is, told: rows.lastTold(id) }, held };
}

/** The most tasks that one step takes out of a queue, because each row is read separately. */
const MOST_PASSED = 32;

/** If a seller has a free call slot, takes tasks out of its queue until one has to be polled. @returns that poll. */
function firstInLine(step: SellerStep, sender: string, pace: Pace): Begun | undefined {
  const { rows, now } = step;
  for (let left = MOST_PASSED; left > 0; left -= 1) {
    const seller = sellerRowIn(rows);
    const { line } = seller;
    if (line?.first === undefined) return undefined;
    const row = rows.get('watch', line.first);
    const watch = row && watchIn(row);
    saveSellerRow(rows, sender, { ...seller, line: withoutFirst(line, watch) });
    // The task has ended, or is waiting for something else now.
    if (!watch || row.dueAt === null || !isInLine(seller, watch)) continue;
    if (rows.taskEnd(row.id) === undefined) return started(step, row, watch, pace);
    // Its end has been reported, so it becomes due and is checked separately.
    later(step, row, outOfLine(watch), now);
  }
  return undefined;
}

/**
 * The state of a task after a poll. `unresolved`: it has not ended and is no longer polled. `lost`: this process no
 * longer had the row.
 */
export type PollKept = 'kept' | 'unresolved' | 'lost';

/**
 * Ends the polling of a task whose call is over, and assigns its operation to the task that has replaced it.
 * @returns false if the operation has another task by now, another process has the row, or `giveUpMs` is over.
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

/** The result of ending a poll, and the next poll, which has begun in the same call slot. */
export interface PlaceFreed {
  readonly kept: PollKept;
  readonly next: Begun | undefined;
}

/**
 * Ends a poll. It gives up a task that has not ended within `giveUpMs`. `goesOn`: true if this process polls the next
 * task in the queue; otherwise any process may.
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

/** Gives the call slot to the first task in the queue. */
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

/** Returns the `context` of the call. A webhook repeats it, but the answer to a poll need not. */
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

/** Returns the row of a seller after a poll. */
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
      ? // The later end applies: that of the pause it asks for now, or that of an earlier pause.
        Math.max(seller.pausedUntil ?? 0, Math.ceil(now + (end.pauseMs ?? pace.fastMs)))
      : undefined;
  return { ...seller, polls, tookMs, ...(pausedUntil !== undefined && { pausedUntil }) };
}

const tookBy = ({ tookMs }: SellerRow, lastMs: number): number =>
  Math.max(1, Math.round(tookMs === undefined ? lastMs : tookMs + NEWEST_SHARE * (lastMs - tookMs)));

/**
 * Returns the wait after failures, which doubles with each. It is never shorter than the interval, after which a poll
 * without news is repeated.
 */
const backoffMs = (everyMs: number, failures: number): number =>
  Math.max(everyMs, Math.min(everyMs * 2 ** Math.min(failures, 20), LONGEST_BACKOFF_MS));

interface Timing {
  readonly now: number;
  readonly pace: Pace;
  /** The time between two polls that are answered, ms. */
  readonly everyMs: number;
}

/** Returns the row of a task that has not ended. */
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
