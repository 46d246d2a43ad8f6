export { createReceiver } from './receiver/receiver.ts';
export { ConfigError, Fault, PermanentError } from './shared/errors.ts';
export { PrintableError } from './codec/printable-value.ts';
export type { Alarm, Logger } from './shared/alarms.ts';
export type { ChallengeContext, OnChallenge } from './events/handlers.ts';
export type { Jwk, Verification } from './crypto/engine.ts';
export type { HeadersInput } from './shared/delivery.ts';
export type { EditionName } from './shared/editions.ts';
export type { ChallengeAuth, ChallengeBody, WebhookChallenge } from './events/challenge.ts';
export type * from './events/event.ts';
export type { EventRegistrations, KnownRegistration } from './events/event-registration.ts';
export type { Observation, Observe, Observed } from './events/observation.ts';
export type { AdmissionPressure, PressureState } from './keys/admission-pressure.ts';
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
export type { NameLookUp, KeyFetch, KeyFetchInit } from './keys/key-resolver.ts';
export type {
  Door,
  Handled,
  Handler,
  HandlerContext,
  Handlers,
  Health,
  HealthFault,
  OnHandled,
  OnRefused,
  NotificationHandlers,
  Readiness,
  Receiver,
  ReceiverOptions,
  RefusedDelivery,
  RequestInfo,
  RetryOptions,
  SenderHealth,
  SenderSource,
  StoreHealth,
  Ticket,
  WorkerHealth,
} from './config/receiver-options.ts';
export type {
  AlarmCode,
  AuthenticationCode,
  EnvelopeCode,
  RefusedCode,
  UnavailableCode,
  WarningCode,
} from './shared/codes.ts';
export type {
  Acceptance,
  ChallengeEcho,
  CheckId,
  Duplication,
  EventState,
  Outcome,
  Refusal,
  Reply,
  Staleness,
  Unavailability,
} from './shared/outcome.ts';
export type { ReportsAuth, Sender, SenderAuth, SenderRevocation } from './config/sender-entry.ts';
export type * from './stores/store.ts';
