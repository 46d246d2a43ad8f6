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

/** How a run ended. */
export interface RanTo {
  readonly state: Exclude<Handled['state'], 'stale'>;
  readonly error: string | undefined;
  /** On the clock of `performance.now()`. */
  readonly endedAt: number;
  /** When its delivery arrived, on the receiver's clock, Unix ms; absent: a worker's. */
  readonly arrivedAt: number | undefined;
}

/** Who is told of what happens inside. Absent where nobody listens: then nothing is made for it. */
export interface RunObserver {
  /** A run of this process has ended, and the store knows. */
  readonly ran?: (run: HandledRun, to: RanTo) => void;
  /** An event is older than its task's mark, as its delivery brought it: there was no run. */
  readonly stale?: (event: Event, deliveryId: string) => void;
}

/** What `Handled` says of an event. */
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

/** A run of this process has ended, and the store knows. */
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

/** What `onHandled` and instruments listen to. */
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
  /** Receiver's clock, Unix ms. */
  readonly now: () => number;
}

/** An event that is older than its task's mark, as its delivery brought it: there was no run. */
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

/** The stored event; undefined where its body is dropped or cannot be read any more. */
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
 * The store has found that an event is over: its runs are used up, or its task has a newer status. The alarm and the hook
 * are told what it keeps of it. Never rejects.
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
  // Of a stale event the last error is that of a run that was to be repeated.
  const { lastError, ...facts } = told;
  const why = state === 'dead' && lastError !== undefined && { error: lastError };
  handled?.(Object.freeze({ ...facts, ...factsOf(event), state, waitedMs, durationMs: 0, ...why }));
}

/** What is known of an event's end: nothing but its name where the store cannot say. */
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
