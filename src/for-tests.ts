// Test face of `src`: what tests, bench and scripts import from it that no public entry exports.
// Nothing in `src` imports it, and no bundle contains it (CONTRIBUTING.md).

export { EXPRESS_FIX } from './adapters/door.ts';
export type { RaiseAlarm } from './alarms.ts';
export { finishOutcome } from './answering.ts';
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
} from './delivery.ts';
export { actOnMany, statsOf, WIDTH } from './inbox/operate.ts';
export { createWakeSignal } from './inbox/wake-signal.ts';
export { PARTS } from './instruments.ts';
export { alarmRaiser, boundLogger, safeLogger, type SafeLogger } from './logging.ts';
export { createParts, type ReadyContext, type WithParts } from './parts.ts';
export { EDITION_NAMES, editionFor, protocolFor, protocolsFor, purposesOf } from './protocol.ts';
export { storableJson } from './queues/job.ts';
export { isAbortSignal, isBytes, isError, isPlainObject, isThenable } from './realms.ts';
export { receiverOf } from './receiver.ts';
export { SETTINGS } from './refusal-settings.ts';
export { signBytes } from './sender/keys.ts';
export type { AuthPolicy, NotificationToken, SenderEntry } from './senders.ts';
export { once, processTimer, requestsMayShare, singleFlight } from './single-flight.ts';
export { createStartup, type Startup } from './startup.ts';
export { createBufferBudget, createPieces, createTickets } from './ticket.ts';
export { limited, orLate, type Schedule, settledWithin, sleep } from './time-limits.ts';

/**
 * Loads what a receiver loads when it first needs it and waits for with nobody: a test that counts turns of the event
 * loop, or has a clock of its own, waits for it first.
 */
export async function loadOnDemand(): Promise<void> {
  await Promise.all([import('./inbox/work.ts'), import('./rare.ts')]);
}
