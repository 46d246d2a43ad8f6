// Defines the entry `proto-webhooks/registrations`: `createRegistrations`, with the randomness and the clock of the
// runtime.
import { sleep } from '../shared/time-limits.ts';
import { createHashes } from '../crypto/hashes.ts';
import type { Registrations } from './registrations.ts';
import type { RegistrationsOptions } from './registrations-options.ts';
import { registrationsOf } from './registrations.ts';

export type { Alarm, Logger } from '../shared/alarms.ts';
export type { EventRegistration, EventSubscription } from '../events/event.ts';
export type { EventRegistrations, KnownRegistration } from '../events/event-registration.ts';
export type { Sender } from '../config/sender-entry.ts';
export * from './caller-face.ts';
export type { RegistrationErrorCode } from '../shared/codes.ts';
export { RegistrationError } from './registrations-errors.ts';
export type { Given, Json, JsonObject } from './answer-json.ts';
export type { OperationName, OperationSeen, OperationState, Settled } from './operation.ts';
export type { OperationPage, OperationQuery } from './list-operations.ts';
export type { Adoption } from './adopt.ts';
export type { OperationRequest } from './operations.ts';
export type { CallOptions, Registration } from './registration.ts';
export type { Registrations, Rewrapped } from './registrations.ts';
export type { RegistrationsOptions } from './registrations-options.ts';
export type { AgentVersion, LegacyAuthentication, Reporting, ReportingFrequency } from './request.ts';
export type { Damage, DamagedRow } from './operation-rows.ts';
export type { RouteScheme, Seller } from './seller.ts';
export type { SubscriptionState } from './subscriptions/set-row.ts';
export type {
  SetChange,
  SubscriptionName,
  SubscriptionPage,
  SubscriptionQuery,
  SubscriptionRemoval,
  SubscriptionRequest,
  SubscriptionSeen,
} from './subscriptions/subscription-types.ts';
export type {
  MovingMediaBuy,
  RegistrationUrls,
  RetireOptions,
  StatePage,
  StateQuery,
  UrlCheck,
  UrlCheckError,
  UrlDrift,
  UrlName,
  UrlState,
} from './told/state-types.ts';
export type {
  ApplyOptions,
  MovePlan,
  MoveRequest,
  MoveState,
  MoveStep,
  MoveUrl,
  RegistrationMoves,
} from './told/move-types.ts';
export type { WatchState } from './watch-task.ts';

/**
 * Creates registrations: they record each call to a seller before it is made, so that every webhook is assigned to
 * its call. Each seller gets a URL of its own, and each call a durable record in the store. The store is not used
 * before the first call of a method.
 * @throws ConfigError if an option is missing or wrong; the message says what to change.
 * @example
 * ```ts
 * import { mcpCaller } from 'proto-webhooks/mcp';
 * import { createRegistrations } from 'proto-webhooks/registrations';
 * import { sqliteStore } from 'proto-webhooks/sqlite';
 *
 * const registrations = createRegistrations({
 *   store: sqliteStore('webhooks.db'),
 *   call: mcpCaller({ auth: { type: 'bearer', token: process.env['SELLER_TOKEN'] } }),
 *   baseUrl: 'https://buyer.example/webhooks',
 *   secrets: [process.env['WEBHOOK_SECRET']],
 * });
 * const registration = await registrations.create({
 *   agentUrl: 'https://seller.example/mcp',
 *   taskType: 'create_media_buy',
 *   arguments: { buyer_ref: 'order-1' },
 * });
 * await registration.call();
 * ```
 */
export function createRegistrations(options: RegistrationsOptions): Registrations {
  return registrationsOf(options, {
    hashes: createHashes(),
    randomBytes: (count) => globalThis.crypto.getRandomValues(new Uint8Array(count)),
    newId: () => globalThis.crypto.randomUUID(),
    now: () => performance.now(),
    sleep,
  });
}
