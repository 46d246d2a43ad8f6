// Checks the stream (record) of each media buy when it is due: finds missing reports, and makes the most urgent call
// (owed.md §4). `reconciler.start` runs the loop.
import type { RegistrationRow, RegistrationRows } from '../stores/store.ts';
import { type BuyStream, buyStreamIn, isRegistered, streamRow } from '../registrations/streams.ts';
import { type Place, takePlace } from '../registrations/places.ts';
import { MAX_TEXT, printableText } from '../codec/printable.ts';
import { DAY_MS, type Frequency, windowPeriod } from '../windows/calendar.ts';
import type { Runs } from '../windows/runs.ts';
import { clockIn, hasReports } from '../windows/stream.ts';
import { ask, MOST_ASKS, pull, type Todo } from './ask-seller.ts';
import { type Held, heldRow, type ReconcilerContext } from './context.ts';
import { dueLoop, LEAST_MS } from './due-loop.ts';
import { closed, openFor, type OpenFor, withEnd } from './closing.ts';
import { compareAtEnd } from './compare-totals.ts';
import {
  endAtOf,
  finalDueAt,
  hasEnded,
  isIdle,
  isOver,
  type Owing,
  owing,
  type Tolerance,
} from './evaluate.ts';
import { askable, nextTry, stillMissed } from './missed.ts';
import { type PullCall, pullCall } from './pull.ts';
import { endedBuy, type Snapped, tellImpairments } from './tell-states.ts';

/** The longest time between two checks of a media buy. Ms. */
const MOST_WAIT_MS = DAY_MS;
/** The time until the next check, if the event of a due report is not handled yet. Ms. */
const PENDING_MS = 60_000;
/**
 * The time until the next check while an event is DEAD, or while handlers are not informed of the end of an
 * impairment. Ms.
 */
const HELD_MS = 3_600_000;

/**
 * Makes a function that checks due media buys until the signal aborts, and resolves when the running checks have ended.
 */
export const reconcileLoop = (context: ReconcilerContext): ((stopping: AbortSignal) => Promise<void>) =>
  dueLoop(context, {
    kind: 'stream',
    look: (row, stopping, called) => reconcileOne(context, row, stopping, called),
    failed: 'The account of a media buy could not be brought up to date: it is tried again.',
  });

const NOTHING: Todo = { kind: 'nothing' };

/**
 * The result of a check: the call to the seller that is needed, and the media buy's record before and after the check.
 */
interface Begun {
  readonly todo: Todo;
  readonly before?: BuyStream;
  readonly stream?: BuyStream;
  /** The impairments that ended because their media buy ended. */
  readonly ended?: Snapped<BuyStream> | undefined;
}

/**
 * Checks the stream (record) of one media buy, and makes the most urgent call. A further call is left to the next
 * check.
 */
async function reconcileOne(
  context: ReconcilerContext,
  held: Held,
  stopping: AbortSignal,
  called: () => void,
): Promise<void> {
  if (stopping.aborted) return;
  const { todo, before, stream, ended } = await context.rows.run(held.sender, (rows, now) =>
    begun(context, rows, held, now),
  );
  if (before) announceClock(context, held, before);
  if (stream && isFinalMissed(stream, before)) announceAbsent(context, held, stream);
  if (stream && ended) {
    const { sender, id } = held;
    await tellImpairments(context, { sender, id, mediaBuyId: stream.mediaBuyId }, ended, stopping);
  }
  if (todo.kind === 'ask') await ask(context, held, todo, stopping);
  if (todo.kind === 'pull') await pull(context, held, todo, stopping);
  if (todo.kind === 'totals') await compareAtEnd(context, held, todo, stopping);
  if (todo.kind !== 'nothing') called();
}

/**
 * Updates a media buy's stream (its record) in one transaction: finds which reports have arrived, and chooses the call
 * to the seller.
 */
function begun(context: ReconcilerContext, rows: RegistrationRows, held: Held, now: number): Begun {
  const row = heldRow(rows, 'stream', held);
  if (row?.dueAt == null) return { todo: NOTHING };
  const known = buyStreamIn(row);
  if (!isRegistered(known)) {
    rows.save({ ...row, dueAt: null });
    return { todo: NOTHING };
  }
  const owed = owing(known, (key) => rows.eventState(key), now, context.tolerance);
  for (const key of owed.unsafe) rows.acknowledge(key);
  const stream = withEnd(cleaned(known, owed), { now, tolerance: context.tolerance });
  const isOpenFor = openFor(stream, owed, {
    now,
    hasOurs: context.totals !== undefined,
    isAsked: isToBeAsked(stream, owed, now) && (stream.asks ?? 0) < MOST_ASKS,
  });
  const place: Place = { sender: held.sender, id: held.id, until: row.dueAt };
  const wanted = wantedOf(stream, owed, isOpenFor, now);
  if (wanted) {
    const waitMs = takePlace(rows, now, place, context.perSeller);
    const dueAt = waitMs === 0 ? row.dueAt : Math.ceil(now + waitMs);
    rows.save(streamRow(row, stream, 'open', { dueAt }));
    return { todo: waitMs === 0 ? todoOf(wanted, { stream, place, now }) : NOTHING, before: known, stream };
  }
  return {
    todo: NOTHING,
    before: known,
    stream,
    ended: rested(context, rows, row, { stream, owed, isOpenFor, now }),
  };
}

/**
 * Closes the stream (the record) of a media buy that needs no call, or sets the time of its next check.
 * @returns the impairments that ended because the media buy ended; undefined if there are none to tell.
 */
function rested(
  context: ReconcilerContext,
  rows: RegistrationRows,
  row: RegistrationRow,
  {
    stream,
    owed,
    isOpenFor,
    now,
  }: {
    readonly stream: BuyStream;
    readonly owed: Owing;
    readonly isOpenFor: OpenFor | undefined;
    readonly now: number;
  },
): Snapped<BuyStream> | undefined {
  if (isOpenFor !== undefined) {
    rows.save(waiting(row, stream, owed, { now, tolerance: context.tolerance, isOpenFor }));
    return isOpenFor === 'state' ? endedBuy(rows, stream, now) : undefined;
  }
  const kept = closed(stream, now);
  rows.save(streamRow(row, kept, 'closed', { expiresAt: Math.ceil(kept.closedAt + context.keepMs) }));
  return undefined;
}

/**
 * True if this check is the first one to find that the `final` report is absent; the caller then raises an alarm. False
 * for a media buy that ended before it was registered, because its report cannot have come here.
 */
const isFinalMissed = (stream: BuyStream, before: BuyStream | undefined): boolean =>
  stream.final === 'absent' && before?.final === undefined && endAtOf(stream) > stream.since;

function todoOf(
  wanted: Wanted,
  { stream, place, now }: { readonly stream: BuyStream; readonly place: Place; readonly now: number },
): Todo {
  if (wanted === 'ask') return { kind: 'ask', stream, place, askedAt: now };
  if (wanted === 'totals') return { kind: 'totals', stream, place, now };
  return { kind: 'pull', stream, place, call: wanted };
}

/**
 * Raises the alarm that a media buy has ended without a `final` report (owed.md §7.3). The alarm is raised only once,
 * because the check has stored `final: 'absent'`.
 */
function announceAbsent({ parts }: ReconcilerContext, { sender }: Held, { mediaBuyId }: BuyStream): void {
  parts.raiseAlarm({
    code: 'final_absent',
    sender,
    mediaBuyId,
    message: `Media buy ${printableText(mediaBuyId, MAX_TEXT)} has ended, and its final report did not come. What it owed is accounted for without it; tell the seller.`,
  });
}

/**
 * Raises the alarm that reports have shown another time zone than the declared one (owed.md §2.2). The alarm is raised
 * only once, because the check has stored `isAnnounced`.
 */
function announceClock(
  { parts }: ReconcilerContext,
  { sender }: Held,
  { clock, mediaBuyId }: BuyStream,
): void {
  if (clock.source !== 'reports' || clock.isAnnounced) return;
  parts.raiseAlarm({
    code: 'misconfigured',
    sender,
    mediaBuyId,
    message: `Reports of media buy ${printableText(mediaBuyId, MAX_TEXT)} fit days of UTC, and not of ${clock.declared}, the timeZone of schedule: UTC counts from now on. Ask the seller for the product's timezone, and correct schedule.`,
  });
}

/**
 * Returns the media buy's record without claims (links to events) that no longer count, and without failed requests for
 * reports that are no longer missing. If reports have shown another time zone, `isAnnounced` is set, so that the alarm
 * about it is raised only once.
 */
function cleaned(stream: BuyStream, owed: Owing): BuyStream {
  const gone = new Set(owed.gone);
  const missingOf = (frequency: Frequency): Runs =>
    owed.windows.find((one) => one.frequency === frequency)?.missing ?? [];
  return {
    ...stream,
    clock: stream.clock.source === 'reports' ? { ...stream.clock, isAnnounced: true } : stream.clock,
    claims: stream.claims.filter((claim) => !gone.has(claim)),
    missed: stillMissed(stream, missingOf),
  };
}

type Wanted = 'ask' | 'totals' | PullCall;

/**
 * Returns the most urgent call: first for the media buy's state, then for missing reports (owed.md §4.1), last for its
 * totals. Undefined: no call is needed now.
 */
function wantedOf(
  stream: BuyStream,
  owed: Owing,
  isOpenFor: OpenFor | undefined,
  now: number,
): Wanted | undefined {
  if (isToBeAsked(stream, owed, now)) {
    if ((stream.askAt ?? 0) <= now) return 'ask';
    if ((stream.asks ?? 0) < MOST_ASKS) return undefined;
  }
  for (const { frequency, missing } of owed.windows) {
    const [run] = askable(stream, frequency, missing, now);
    if (run) return pullCall(stream, frequency, run);
  }
  return isOpenFor === 'totals' && (stream.totals?.nextAt ?? 0) <= now ? 'totals' : undefined;
}

/**
 * True if the seller must be asked about a media buy:
 *
 * - The seller was never asked, or the media buy was changed since.
 * - A window is missing that had not ended at the last request.
 * - The flight (booked period) has ended since.
 * - The media buy owes nothing but may go on, and the last request was a day ago.
 */
function isToBeAsked(stream: BuyStream, owed: Owing, now: number): boolean {
  const { askedAt, changedAt = -Infinity } = stream;
  // If no reports are requested, the seller is only asked after a change of the media buy (owed.md §1.1).
  if (!hasReports(stream)) return changedAt > (askedAt ?? -Infinity);
  if (askedAt === undefined || changedAt > askedAt) return true;
  if (isOver(stream, now) && !isOver(stream, askedAt)) return true;
  if (isIdle(stream, now) && now - askedAt >= DAY_MS) return true;
  const clock = clockIn(stream);
  return owed.windows.some(({ frequency, missing }) => {
    const end = missing.at(-1)?.[1];
    return end !== undefined && windowPeriod(frequency, clock, end - 1).end > askedAt;
  });
}

interface Wait {
  readonly now: number;
  readonly tolerance: Tolerance;
  readonly isOpenFor: OpenFor;
}

/** Returns the row of a media buy that stays open, with the time of its next check as `dueAt`. */
function waiting(
  row: RegistrationRow,
  stream: BuyStream,
  owed: Owing,
  { now, tolerance, isOpenFor }: Wait,
): RegistrationRow {
  const times = [
    owed.nextAt,
    owed.claimedUntil,
    nextTry(stream),
    stream.askAt ?? Infinity,
    stream.totals?.nextAt ?? Infinity,
    hasEnded(stream, now) && stream.final === undefined ? finalDueAt(stream, tolerance) : Infinity,
    owed.isPending ? now + PENDING_MS : Infinity,
    owed.held.length > 0 || isOpenFor === 'state' ? now + HELD_MS : Infinity,
  ];
  // Times that have passed are ignored, because this check has already considered them.
  const next = Math.min(...times.filter((at) => at > now), now + MOST_WAIT_MS);
  return streamRow(row, stream, 'open', { dueAt: Math.ceil(Math.max(next, now + LEAST_MS)) });
}
