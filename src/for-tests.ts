// Exports names of `src` that tests, benchmarks and scripts need, and no public entry has.
// Nothing in `src` imports this file, and no bundle contains it (CONTRIBUTING.md).

export { EXPRESS_FIX } from './adapters/shared-adapter.ts';
export type { RaiseAlarm } from './shared/alarms.ts';
export { CODES, type ThrownCode } from './shared/codes.ts';
export { finishOutcome } from './receiver/finish.ts';
export { bounded, boundedJson, jsonRefusedReason, mostValues, requireBounded } from './calls/bounds.ts';
export { eventsOf } from './calls/event-stream.ts';
export { hostsOf, reachOf } from './calls/reach.ts';
export { createSessions } from './calls/sessions.ts';
export {
  type Delivery,
  deliveryId,
  fieldValue,
  headerFields,
  methodOf,
  requireRawBytes,
} from './shared/delivery.ts';
export { actOnMany, statsOf, WIDTH } from './inbox/operate.ts';
export { createWakeSignal } from './inbox/wake-signal.ts';
export { CONTEXT } from './receiver/instruments.ts';
export { alarmRaiser, boundLogger, safeLogger, type SafeLogger } from './shared/logging.ts';
export { createReceiverContext, type ReadyContext, type WithContext } from './receiver/context.ts';
export { observeStateWith, type PulledState } from './receiver/observe-state.ts';
export { EDITION_NAMES, editionFor, purposesOf } from './shared/editions.ts';
export { protocolFor, protocolsFor } from './shared/wire-names.ts';
export { storableJson } from './queues/queue-job.ts';
export { isAbortSignal, isBytes, isError, isPlainObject, isThenable } from './shared/realms.ts';
export { receiverOf } from './receiver/receiver.ts';
export { SETTINGS } from './receiver/refusal-settings.ts';
export { signBytes } from './sender/keys.ts';
export type { AuthPolicy, SenderEntry } from './config/sender-entry.ts';
export { once, processTimer, requestsMayShare, singleFlight } from './shared/single-flight.ts';
export { createStartup, type Startup } from './receiver/startup.ts';
export { createBufferBudget, createPieces, createTickets } from './receiver/ticket.ts';
export { limited, orLate, type Schedule, settledWithin, sleep } from './shared/time-limits.ts';

/**
 * Loads the modules that a receiver otherwise loads when it first needs them. A test that counts turns of the event
 * loop, or has a clock of its own, awaits this first.
 */
export async function loadOnDemand(): Promise<void> {
  await Promise.all([
    import('./inbox/work.ts'),
    import('./receiver/rare.ts'),
    import('./registrations/on-demand.ts'),
  ]);
}
