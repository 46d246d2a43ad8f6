// Reports to `onHandled`, instruments and alarms that a run has ended, or that an event is DEAD or stale
// (admission.md §2.14).
// Called by the receiver, `admit`, `settle` and the inbox, after the store has recorded that.

import type { RaiseAlarm } from '../shared/alarms.ts';
import type { SafeLogger } from '../shared/logging.ts';
import { deliveryId } from '../shared/delivery.ts';
import type { Event } from '../events/event.ts';
import type { Instruments } from '../receiver/instruments.ts';
import type { Handled } from '../config/receiver-options.ts';
import type { InboxRecord, Store } from '../stores/store.ts';
import { raiseDead } from './announce.ts';
import type { HandledRun } from './dispatch.ts';
import { idsOf, runOf } from './ids.ts';
import { readFrom, type ReadContext } from './read.ts';
import type { EventName } from './running.ts';

/** The result of a run, with the time at which the run ended. */
export interface RanTo {
  readonly state: Exclude<Handled['state'], 'stale'>;
  readonly error: string | undefined;
  /** End of the run, as `performance.now()`. */
  readonly endedAt: number;
  /** Arrival of the delivery, on the receiver's clock in Unix ms. Absent for a run of a worker. */
  readonly arrivedAt: number | undefined;
}

/**
 * Functions that report the end of an event. A function that nobody needs is absent, so that no report is built for it.
 */
export interface RunObserver {
  /** Called when a run of this process has ended and the store has recorded it. */
  readonly ran?: (run: HandledRun, to: RanTo) => void;
  /**
   * Called for a delivered event that is older than the newest status applied to its task; its handler did not run.
   */
  readonly stale?: (event: Event, deliveryId: string) => void;
}

/** Returns the members of `Handled` that describe the event. */
function factsOf(
  event: Event | undefined,
): Pick<Handled, 'url' | 'taskId' | 'operationId' | 'kind' | 'family' | 'status'> {
  if (!event) return {};
  return {
    ...(event.url !== undefined && { url: event.url }),
    ...(event.kind === 'task' && { taskId: event.taskId }),
    ...(event.operationId !== undefined && { operationId: event.operationId }),
    kind: event.kind,
    ...(event.kind === 'other' && event.family !== undefined && { family: event.family }),
    ...(event.kind === 'task' && { status: event.status }),
  };
}

/** Makes the report about an ended run of this process, after the store has recorded the end. */
function ranOf(run: HandledRun, { state, error, endedAt, arrivedAt }: RanTo): Handled {
  const { won, event, complete } = run;
  const waitedMs = won.waitedMs ?? (arrivedAt === undefined ? 0 : Math.max(0, run.beganAt - arrivedAt));
  return Object.freeze({
    sender: complete.sender,
    key: complete.key,
    deliveryId: won.deliveryId,
    ...factsOf(event),
    state,
    ...runOf(won.lease),
    waitedMs,
    durationMs: Math.max(0, endedAt - run.began),
    ...(error !== undefined && { error }),
  });
}

/** Returns the functions that pass the end of each event to `onHandled` and the instruments. */
export function observedBy({ instruments }: Pick<EndedContext, 'instruments'>): RunObserver {
  return {
    ran: (run, to) => instruments.handled?.(ranOf(run, to)),
    stale: (event, id) => instruments.handled?.(staleOf(event, id)),
  };
}

export interface EndedContext extends ReadContext {
  readonly store: Store;
  readonly raiseAlarm: RaiseAlarm;
  readonly instruments: Pick<Instruments, 'handled'>;
  readonly logger: SafeLogger;
  /** Returns the time of the receiver's clock, Unix ms. */
  readonly now: () => number;
}

/**
 * Makes the report about a delivered event that is older than the newest status applied to its task. The event's
 * handler did not run.
 */
function staleOf(event: Event, id: string): Handled {
  const { sender, idempotencyKey: key } = event;
  const facts = factsOf(event);
  return Object.freeze({
    sender,
    key,
    deliveryId: id,
    ...facts,
    state: 'stale',
    run: 0,
    chargedAttempts: 0,
    waitedMs: 0,
    durationMs: 0,
  });
}

/** Parses the stored body of an event. Undefined if the body was deleted or can no longer be parsed. */
export function storedEvent(
  { sender, body, source, url }: Pick<InboxRecord, 'sender' | 'body' | 'source' | 'url'>,
  context: ReadContext,
): Event | undefined {
  const reading = body && readFrom({ agentUrl: sender }, body, context, { source, url });
  return reading?.ok ? reading.event : undefined;
}

async function recordOf(
  { sender, key }: EventName,
  { store, logger }: EndedContext,
): Promise<InboxRecord | undefined> {
  try {
    return await store.inbox?.inspect(sender, key);
  } catch (error) {
    logger.warn({ err: error, sender, key }, 'the record of an ended event could not be read');
    return undefined;
  }
}

/**
 * Reports an event that the store ended without a run, because no runs are left or its task has a newer status. Alarm
 * and hook receive facts from the stored record. Never rejects.
 */
export async function tellEnded(
  name: EventName,
  state: 'dead' | 'stale',
  context: EndedContext,
): Promise<void> {
  const { handled } = context.instruments;
  if (state === 'stale' && !handled) return;
  const record = await recordOf(name, context);
  const event = record && storedEvent(record, context);
  const { waitedMs, ...told } = endOf(name, record, event, context);
  if (state === 'dead') raiseDead(told, 'its runs are used up', context.raiseAlarm);
  // A stale event has not failed. Its last error is from an earlier run that would have been repeated, so the error is
  // left out.
  const { lastError, ...facts } = told;
  const why = state === 'dead' && lastError !== undefined && { error: lastError };
  handled?.(Object.freeze({ ...facts, ...factsOf(event), state, waitedMs, durationMs: 0, ...why }));
}

/**
 * Returns the known facts about the ended event. If the store cannot return its record, these are little more than its
 * name.
 */
function endOf(
  { sender, key }: EventName,
  record: InboxRecord | undefined,
  event: Event | undefined,
  { hashes, now }: EndedContext,
) {
  const { taskId, runs = 0, attempts = 0, lastError, insertedAt } = record ?? {};
  return {
    sender,
    key,
    deliveryId: deliveryId(hashes, sender, key),
    ...(taskId !== undefined && { taskId }),
    ...idsOf(event),
    run: runs,
    chargedAttempts: attempts,
    waitedMs: insertedAt === undefined ? 0 : Math.max(0, now() - insertedAt),
    ...(lastError !== undefined && { lastError }),
  };
}
