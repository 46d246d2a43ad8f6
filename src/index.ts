export { createReceiver } from './receiver.ts';
export { ConfigError, Fault, PermanentError } from './errors.ts';
export { PrintableError } from './codec/printable-value.ts';
export type { Alarm, AlarmCode, Logger } from './alarms.ts';
export type { ChallengeContext, OnChallenge } from './events/handlers.ts';
export type { Jwk, Verification } from './crypto/engine.ts';
export type { HeadersInput } from './delivery.ts';
export type { EditionName } from './protocol.ts';
export type { ChallengeAuth, ChallengeBody, WebhookChallenge } from './events/challenge.ts';
export type * from './events/event.ts';
export type { EventRegistrations, KnownRegistration } from './events/registration.ts';
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
} from './inbox/contract.ts';
export type { NameLookUp, KeyTransport, TransportInit } from './keys/contract.ts';
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
} from './options.ts';
export type {
  Acceptance,
  AuthenticationCode,
  ChallengeEcho,
  CheckId,
  Duplication,
  EnvelopeCode,
  EventState,
  Outcome,
  Refusal,
  RefusedCode,
  Reply,
  Staleness,
  Unavailability,
  UnavailableCode,
} from './outcome.ts';
export type { ReportsAuth, Sender, SenderAuth, SenderRevocation } from './senders.ts';
export type * from './stores/contract.ts';
