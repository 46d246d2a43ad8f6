// One cycle of a worker: leases due events from the store, if this is allowed now, and runs their handlers
// (admission.md §4.6, §4.12).
// Called by `worker.ts`, which repeats it and decides how many events a cycle may lease.

import type { AlarmCode } from '../shared/codes.ts';
import { deliveryId } from '../shared/delivery.ts';
import { Fault, isOfKind, messageOf } from '../shared/errors.ts';
import { boundLogger } from '../shared/logging.ts';
import type { UnavailableCode } from '../shared/codes.ts';
import type { ReadyContext, ReceiverContext } from '../receiver/context.ts';
import { announceStep } from '../stages/announce.ts';
import { dispatch } from '../stages/dispatch.ts';
import { tellEnded } from '../stages/on-handled.ts';
import { idsOf, runOf } from '../stages/ids.ts';
import { WORKER } from '../stages/running.ts';
import { settle } from '../stages/settle.ts';
import { originOf, readStored, type Started, type AdmittedEvent } from '../stages/admitted-event.ts';
import type { LeasedEvent, LeaseDueRequest, StoreInbox } from '../stores/store.ts';

/**
 * The longest wait before a failing store is called again, ms. The wait begins at twice `pollMs` and doubles with each
 * failure. Up to half of it is subtracted at random.
 */
const LONGEST_IDLE_MS = 30_000;

/** The alarms for faults of the store that its operator must repair. */
const FAULT_ALARMS: Readonly<Partial<Record<UnavailableCode, AlarmCode>>> = {
  misconfigured: 'misconfigured',
  not_durable: 'durability_lowered',
};

interface Failures {
  /** Records a failed call of the store, and returns the wait before the next attempt, ms. */
  readonly delayAfter: (error: unknown, what: string) => number;
  readonly over: () => void;
}

/**
 * Counts failed calls of the store, and chooses the waits between them. The store is called until it answers, because
 * it may be unreachable for some time.
 */
export function createFailures({
  config,
  logger,
  raiseAlarm,
  random,
  notes,
  now,
  outages,
}: ReceiverContext): Failures {
  let failures = 0;
  return {
    delayAfter(error, what) {
      failures += 1;
      notes.worker.error = messageOf(error);
      if (notes.worker.state === 'running') notes.worker.state = 'failing';
      logger.error({ err: error, failures }, what);
      if (isOfKind(error, Fault) && error.code === 'store_unavailable') outages.store(error.message);
      const alarm = isOfKind(error, Fault) ? FAULT_ALARMS[error.code] : undefined;
      if (alarm) raiseAlarm({ code: alarm, message: (error as Fault).message });
      const longest = Math.min(LONGEST_IDLE_MS, config.worker.pollMs * 2 ** Math.min(failures, 20));
      return longest * (0.5 + random() / 2);
    },
    over: () => {
      failures = 0;
      outages.store();
      delete notes.worker.error;
      notes.worker.lastLookedAt = now();
      if (notes.worker.state !== 'stopped') notes.worker.state = 'running';
    },
  };
}

/**
 * Converts a leased event into the form that `dispatch` and `settle` take. The event runs even if its sender is no
 * longer configured.
 */
export function wonOf(event: LeasedEvent, context: ReadyContext): AdmittedEvent {
  const { sender, key, lease, waitedMs, traceparent, url } = event;
  const origin = originOf(context.config, sender);
  return {
    kind: 'won',
    origin,
    key,
    deliveryId: deliveryId(context.hashes, sender, key),
    lease,
    ...(waitedMs !== undefined && { waitedMs }),
    ...(traceparent !== undefined && { traceparent }),
    url,
    flags: event,
    firstCopy: () => readStored(origin, event, context),
    once: false,
  };
}

/**
 * Runs the handler of a leased event, and stores success or failure. Resolves when the handler has settled or is
 * counted as crashed. Never rejects: if the result cannot be stored, the lease expires and the event is leased again.
 */
export async function runLeased(run: Started, context: ReadyContext, abort: AbortController): Promise<void> {
  const { deliveryId: id, key, lease, origin } = run.won;
  const log = boundLogger(context.logger, { sender: origin.agentUrl, key, deliveryId: id });
  const late: Promise<unknown>[] = [];
  const delivery = {
    log,
    background: (work: Promise<unknown>) => late.push(work),
    isUnattended: true,
  };
  try {
    const dispatched = await dispatch(run, context, log, abort);
    const result = await settle(dispatched, context, delivery);
    const fields = { ...idsOf(dispatched.run.event), ...runOf(lease) };
    if (result.kind === 'settled') {
      log.info({ ...fields, state: result.state }, `event ${result.state}`);
    } else if (result.code !== 'handler_failed') {
      log.warn({ ...fields, code: result.code, detail: result.detail }, 'event not settled');
    }
    await Promise.all(late);
  } catch (error) {
    log.error(
      { err: error, ...runOf(lease) },
      'the end of a run could not be stored: the event is due again when its lease ends',
    );
  }
}

/**
 * The events that a cycle leases. `any`: all that are due. `alone`: one suspect (an event whose process died while it
 * ran), which must run alone (admission.md §4.6).
 */
export type Next = 'any' | 'alone';

interface RoundRequest {
  /** The largest number of events to lease. */
  readonly max: number;
  readonly next: Next;
}

interface RoundResult {
  /** The wait before the next cycle. Ms. */
  readonly idleMs: number;
  /** The kind of events that the next cycle leases. */
  readonly next: Next;
}

/** The calls that one worker makes to the store. */
interface WorkCycle {
  /** Makes one call to lease events, and passes each leased event to `take`. Never rejects. */
  readonly lease: (
    request: RoundRequest,
    take: (event: LeasedEvent) => Promise<unknown>,
  ) => Promise<RoundResult>;
  /** Called after an intended sleep of `ms`, so that the sleep does not count as time without contact to the store. */
  readonly wasIdle: (ms: number) => void;
}

/** The shortest wait of an idle worker, even if an event is due sooner. Ms. */
const SHORTEST_IDLE_MS = 20;

/**
 * Measures the time since the store last answered, without intended sleeps. It grows while the store is unreachable, or
 * while the process stands still. After more than a lease, the leases of all processes may have expired. The worker
 * then gives the other processes time to renew their leases (admission.md §4.6).
 */
interface Gap {
  /**
   * Called when the store has answered.
   * @param at the start of the call, as `performance.now()`.
   */
  readonly heard: (at: number) => void;
  readonly failed: () => void;
  readonly wasIdle: (ms: number) => void;
  readonly ms: () => number;
}

function createGap(leaseMs: number): Gap {
  let since = performance.now();
  let isAway = false;
  return {
    heard(at) {
      since = at;
      isAway = false;
    },
    failed: () => {
      isAway = true;
    },
    wasIdle(ms) {
      // A timer is always a little late. If it is late by more than a lease, the process stood still, and the sleep
      // counts as a gap.
      if (!isAway && performance.now() - since - ms <= leaseMs) since = performance.now();
    },
    ms: () => performance.now() - since,
  };
}

export function createWorkCycle(context: ReadyContext, inbox: StoreInbox): WorkCycle {
  const { running, config } = context;
  const { leaseMs, renewMs, retry, retentionMs, senders, worker } = config;
  const agentUrls = (senders.fixed ?? []).map(({ agentUrl }) => agentUrl);
  const failures = createFailures(context);
  const gap = createGap(leaseMs);
  let quietUntil = -Infinity;
  // The owner id of this worker's next leases. It stays the same until a call is answered. If an answer is lost, the
  // store can then tell that nobody runs the events leased in that call.
  let owner = context.newId();

  /**
   * Returns the time until events may be leased, ms; 0 or less: now. After a gap of more than a lease, other processes
   * first get time to renew their leases. Rejects if the store is still unreachable.
   */
  async function quietMs(): Promise<number> {
    if (gap.ms() > leaseMs) {
      const asked = performance.now();
      await running.announce();
      gap.heard(asked);
      quietUntil = performance.now() + renewMs;
    }
    return quietUntil - performance.now();
  }

  async function ask({ max, next }: RoundRequest, take: (event: LeasedEvent) => Promise<unknown>) {
    const except = running.all();
    const asked = performance.now();
    const request: LeaseDueRequest = {
      owner,
      max,
      leaseMs,
      process: running.process(),
      ...(except.length > 0 && { except }),
      ...(next === 'alone' && { alone: true }),
      retry,
      retentionMs,
      senders: agentUrls,
    };
    const result =
      next === 'alone'
        ? await running.askAlone(
            WORKER,
            () => inbox.lease(request),
            ({ events }) => events.length > 0,
          )
        : await inbox.lease(request);
    if (!result) return undefined;
    owner = context.newId();
    gap.heard(asked);
    announceStep(result, context.raiseAlarm);
    const { events, died, stale = [] } = result;
    await Promise.all([
      ...events.map(take),
      ...died.map((name) => tellEnded(name, 'dead', context)),
      ...stale.map((name) => tellEnded(name, 'stale', context)),
    ]);
    return result;
  }

  return {
    wasIdle: gap.wasIdle,
    async lease(request, take) {
      try {
        const quiet = await quietMs();
        if (quiet > 0) return { idleMs: quiet, next: request.next };
        const result = await ask(request, take);
        // This process's only slot for suspects (events whose process died while they ran) is taken. So the next cycle
        // leases other events.
        if (!result) return { idleMs: worker.pollMs, next: 'any' };
        const { events, died, suspectDue, nextDueMs = worker.pollMs } = result;
        failures.over();
        // A suspect (an event whose process died while it ran) is leased alone in the next cycle. After a cycle with
        // `alone`, other events have their turn.
        const next = suspectDue && request.next === 'any' ? 'alone' : 'any';
        const hasMore = next === 'alone' || events.length + died.length > 0;
        const idleMs = hasMore ? 0 : Math.max(SHORTEST_IDLE_MS, Math.min(nextDueMs, worker.pollMs));
        return { idleMs, next };
      } catch (error) {
        gap.failed();
        return { idleMs: failures.delayAfter(error, 'the inbox could not be read'), next: request.next };
      }
    },
  };
}
