// The main entry, `proto-webhooks`: receivers, verifiers, their errors and types. Stores, adapters and tools have
// entries of their own, so that a receiver loads none that it does not use.

export { createReceiver } from './receiver/receiver.ts';
export { createVerifier } from './receiver/verifier.ts';
export { ConfigError, Fault, PermanentError } from './shared/errors.ts';
export { PrintableError } from './codec/printable-value.ts';

// Options of a receiver and of a verifier.
export type { AdvancedOptions } from './config/advanced-options.ts';
export type {
  Door,
  DurabilityOptions,
  Readiness,
  Receiver,
  ReceiverOptions,
  RequestInfo,
  RetryOptions,
  SenderSource,
  SendersByPath,
  ShorterRetention,
  Ticket,
} from './config/receiver-options.ts';
export type {
  BearerAuth,
  NotificationToken,
  ReportsAuth,
  Sender,
  SenderAuth,
  SenderRevocation,
} from './config/sender-entry.ts';
export type {
  Burn,
  Committed,
  Unverified,
  VerifiedDelivery,
  Verifier,
  VerifierOptions,
} from './config/verifier-options.ts';
export type { EditionName } from './shared/editions.ts';
export type { HeadersInput } from './shared/delivery.ts';
export type { Jwk, Verification } from './crypto/engine.ts';
export type { NameLookUp, KeyFetch, KeyFetchInit } from './keys/key-resolver.ts';
export type { AdmissionPressure, PressureState } from './keys/admission-pressure.ts';
export type { Durability, Store } from './stores/store.ts';

// Types for handlers. The entry `proto-webhooks/events` has the types of an event's contents.
export type { Handler, HandlerContext, Handlers, NotificationHandlers } from './config/receiver-options.ts';
export type { ChallengeContext, OnChallenge } from './events/handlers.ts';
export type { WebhookChallenge } from './events/challenge.ts';
export type {
  DeliveryReportEvent,
  Event,
  NotificationEvent,
  ResultSchemas,
  TaskEvent,
  TaskStatus,
  UntypedEvent,
} from './events/event.ts';
export type { EventRegistrations } from './events/event-registration.ts';
export type { Observation, Observe, Observed } from './events/observation.ts';

// Types of a receiver's answers, and of its reports to the owner.
export type {
  Acceptance,
  ChallengeEcho,
  CheckId,
  Duplication,
  Outcome,
  Refusal,
  Reply,
  Staleness,
  Unavailability,
} from './shared/outcome.ts';
export type { AlarmCode, RefusedCode, UnavailableCode, WarningCode } from './shared/codes.ts';
export type { Alarm, Logger } from './shared/alarms.ts';
export type {
  Handled,
  Health,
  HealthFault,
  OnHandled,
  OnRefused,
  RefusedHook,
  RefusedDelivery,
  SenderHealth,
  StoreHealth,
  WorkerHealth,
} from './config/receiver-options.ts';
export type {
  DiscardManyQuery,
  DiscardResult,
  InboxListQuery,
  InboxStats,
  ManyResult,
  ReceiverInbox,
  RedriveManyQuery,
  RedriveResult,
  SeenEvent,
  SeenEvents,
  SenderStats,
  WorkerOptions,
} from './inbox/inbox-contract.ts';
