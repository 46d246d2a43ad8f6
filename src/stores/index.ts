// The public entry `proto-webhooks/store`: the interface of a store, and `storeOf`, which makes a store for another
// database.
// Imported by users who write a store or a backend; nothing in `src` imports this file.

/**
 * Defines the interface of a store (`Store`), and makes a store for a database that this package has none for
 * (`storeOf`). Receivers and workers call the methods of `Store`; a database implements the smaller `Backend`.
 *
 * - A *sender* is the seller's agent URL. A *record* is one event of a sender, named by its idempotency key.
 * - A *lease* is the right of one *owner*, a delivery or a worker, to run the event's handler until a time.
 * - A *nonce* is the random text in a signature by which a repeated request is recognised.
 * - A *task* is the work of a seller whose status several events report. Its events never run at the same time.
 * - A *suspect* is an event that may have ended its process. It runs alone.
 * - A *row* is the unit that `Backend` stores: a record, a task, a nonce, and others (`RowKind`). A *scope* is a set of
 *   rows that is counted by itself, and a *sweep* deletes the expired rows of a scope.
 *
 * @module
 */
export { storeOf } from './optimistic/optimistic-store.ts';
export type { DrivenStore, DriverOptions } from './optimistic/optimistic-store.ts';
export type {
  Backend,
  CommitRequest,
  CommitResult,
  Counted,
  DueRequest,
  DueResult,
  DueSuspect,
  Expected,
  ListRequest,
  LoadRequest,
  LoadResult,
  NoncesOf,
  ListCount,
  Page,
  Row,
  RowId,
  RowKind,
  Scope,
  TurnRequest,
  TurnResult,
  Unit,
  Within,
  Write,
} from './backend.ts';
export type {
  AliveRequest,
  CompleteRequest,
  CompleteResult,
  Durability,
  FailRequest,
  FailResult,
  PeekResult,
  RenewRequest,
  Store,
  StoreIdentity,
  StoreOptions,
  TransactionRequest,
} from './store.ts';
export type {
  AcceptDecision,
  AcceptRequest,
  AcceptResult,
  EventClaim,
  Lease,
  MediaBuyClaim,
  NonceClaim,
  Pressure,
  ReportClaim,
  RetryLimits,
  StoreLimits,
  TaskClaim,
  ToldClaim,
} from './store-accept.ts';
export type {
  InboxCount,
  InboxPage,
  InboxQuery,
  InboxRecord,
  LeaseDueRequest,
  LeaseDueResult,
  LeasedEvent,
  StoreInbox,
} from './store-inbox.ts';
export type {
  RegistrationDueRequest,
  RegistrationDueResult,
  RegistrationKind,
  RegistrationPage,
  RegistrationQuery,
  RegistrationRow,
  RegistrationRows,
  StoreRegistrations,
} from './store-registrations.ts';
export type {
  ClaimedState,
  ClaimedWindow,
  KeptState,
  StateClaim,
  StateHolderName,
  UrlClaim,
  WindowClaim,
} from './store-accounts.ts';
