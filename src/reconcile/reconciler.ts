import type { RegistrationRow, RegistrationRows } from '../stores/store.ts';
import { type BuyStream, buyStreamIn, isRegistered, streamRow } from '../registrations/streams.ts';
import { MAX_TEXT, printableText } from '../codec/printable.ts';
import { DAY_MS, type Frequency, windowPeriod } from '../windows/calendar.ts';
import type { Runs } from '../windows/runs.ts';
import { clockIn, hasReports } from '../windows/stream.ts';
import { ask, MOST_ASKS, pull, type Todo } from './ask-seller.ts';
import type { Held, ReconcilerContext } from './context.ts';
import { dueLoop, LEAST_MS } from './due-loop.ts';
import { isIdle, isOver, type Owing, owing } from './evaluate.ts';
import { askable, nextTry, stillMissed } from './missed.ts';
import { type Place, takePlace } from './places.ts';
import { type PullCall, pullCall } from './pull.ts';

/*
 * Looks at each stream when it is due: notes what has come, and makes the one call that it needs first (owed.md §4).
 */

/** A stream is looked at once a day, whatever it waits for. Ms. */
const MOST_WAIT_MS = DAY_MS;
/** An event that is about to be handled is looked after again. Ms. */
const PENDING_MS = 60_000;
/** Whether a DEAD event was redriven or discarded. Ms. */
const HELD_MS = 3_600_000;
/** A stream that owes nothing more is kept so long. Ms. */
export const KEEP_MS: number = 400 * DAY_MS;

/** Looks at streams that are due, in this process, until the signal aborts; resolves when the running ones have ended. */
export const reconcileLoop = (context: ReconcilerContext): ((stopping: AbortSignal) => Promise<void>) =>
  dueLoop(context, {
    kind: 'stream',
    look: (row, stopping, called) => reconcileOne(context, row, stopping, called),
    failed: 'The account of a media buy could not be brought up to date: it is tried again.',
  });

const NOTHING: Todo = { kind: 'nothing' };

/** What a step came to: the call that it wants, and the stream as it was before. */
interface Begun {
  readonly todo: Todo;
  readonly before?: BuyStream;
}

/** Looks at one stream, and makes the one call that it needs first. The next look makes the next one. */
async function reconcileOne(
  context: ReconcilerContext,
  held: Held,
  stopping: AbortSignal,
  called: () => void,
): Promise<void> {
  if (stopping.aborted) return;
  const { todo, before } = await context.rows.run(held.sender, (rows, now) =>
    begun(context, rows, held, now),
  );
  if (before) announceClock(context, held, before);
  if (todo.kind === 'ask') await ask(context, held, todo, stopping);
  if (todo.kind === 'pull') await pull(context, held, todo, stopping);
  if (todo.kind !== 'nothing') called();
}

/** One step: what has come is noted, and what is missing is chosen. */
function begun(context: ReconcilerContext, rows: RegistrationRows, held: Held, now: number): Begun {
  const row = rows.get('stream', held.id);
  if (row?.dueAt == null || row.dueAt !== held.dueAt) return { todo: NOTHING };
  const known = buyStreamIn(row);
  if (!isRegistered(known)) {
    rows.save({ ...row, dueAt: null });
    return { todo: NOTHING };
  }
  const owed = owing(known, (key) => rows.eventState(key), now, context.tolerance);
  for (const key of owed.unsafe) rows.acknowledge(key);
  const stream = cleaned(known, owed);
  const place: Place = { sender: held.sender, id: held.id, until: row.dueAt };
  const wanted = wantedOf(stream, owed, now);
  if (wanted) {
    const waitMs = takePlace(rows, now, place, context.perSeller);
    if (waitMs === 0) {
      rows.save(streamRow(row, stream, 'open', { dueAt: row.dueAt }));
      const todo: Todo =
        wanted === 'ask' ? { kind: 'ask', stream, place } : { kind: 'pull', stream, place, call: wanted };
      return { todo, before: known };
    }
    rows.save(streamRow(row, stream, 'open', { dueAt: Math.ceil(now + waitMs) }));
    return { todo: NOTHING, before: known };
  }
  rows.save(waiting(row, stream, owed, now));
  return { todo: NOTHING, before: known };
}

/** Raises the alarm that reports have set the clock of a stream (owed.md §2.2): once, for the step has noted it. */
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

/** Without claims of events that are gone, and tries for windows that have come. The alarm about its clock is raised after the step. */
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

/** The call that comes first: what the buy is, before what it has not reported (owed.md §4.1). */
function wantedOf(stream: BuyStream, owed: Owing, now: number): 'ask' | PullCall | undefined {
  if (isToBeAsked(stream, owed, now)) {
    if ((stream.askAt ?? 0) <= now) return 'ask';
    if ((stream.asks ?? 0) < MOST_ASKS) return undefined;
  }
  for (const { frequency, missing } of owed.windows) {
    const [run] = askable(stream, frequency, missing, now);
    if (run) return pullCall(stream, frequency, run);
  }
  return undefined;
}

/**
 * It was never asked about; it was changed since; a window is missing that had not ended then; its flight is over now; or it owes
 * nothing and may go on, which is asked once a day.
 */
function isToBeAsked(stream: BuyStream, owed: Owing, now: number): boolean {
  const { askedAt, changedAt = -Infinity } = stream;
  // Of a buy without reports nothing is asked by itself (owed.md §1.1).
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

/** Until when a stream waits, or that it is closed. */
function waiting(row: RegistrationRow, stream: BuyStream, owed: Owing, now: number): RegistrationRow {
  const isOpen =
    owed.isPending || owed.held.length > 0 || owed.windows.some(({ missing }) => missing.length > 0);
  if (isOver(stream, now) && !isIdle(stream, now) && owed.nextAt === Infinity && !isOpen) {
    return streamRow(row, stream, 'closed', { expiresAt: now + KEEP_MS });
  }
  const times = [
    owed.nextAt,
    nextTry(stream),
    stream.askAt ?? Infinity,
    owed.isPending ? now + PENDING_MS : Infinity,
    owed.held.length > 0 ? now + HELD_MS : Infinity,
  ];
  // What was to be done before now waits for something else, which is among them too.
  const next = Math.min(...times.filter((at) => at > now), now + MOST_WAIT_MS);
  return streamRow(row, stream, 'open', { dueAt: Math.ceil(Math.max(next, now + LEAST_MS)) });
}
