// The types of events that handlers get: tasks, delivery reports, notifications (contract.md §6).
// Made by `assemble.ts`; public as `proto-webhooks/events` and from the main entry.

import type { WarningCode } from '../shared/codes.ts';
import type { ReportedError } from './error-object.ts';
import type { NotificationFamily, Notifications, WholesaleFeedFamily } from './notification.ts';

/**
 * A report of the impressions, clicks and spend of media buys in a period, as a seller sends it: `event.report`.
 * Unknown members are kept; many senders write `null` for an absent member.
 */
export interface DeliveryReport {
  /** The type of the report. `window_update`: figures of a window that was reported before have changed. */
  readonly notification_type: 'scheduled' | 'final' | 'delayed' | 'adjusted' | 'window_update';
  readonly sequence_number?: number | null | undefined;
  readonly reporting_period?: ReportingPeriod | null | undefined;
  readonly currency?: string | null | undefined;
  /** The time at which the next report is due, ISO 8601. */
  readonly next_expected_at?: string | null | undefined;
  /** True if the figures of `unavailable_count` media buys are missing. */
  readonly partial_data?: boolean | null | undefined;
  readonly unavailable_count?: number | null | undefined;
  readonly media_buy_deliveries?: readonly MediaBuyDelivery[] | null | undefined;
  readonly [member: string]: unknown;
}

/** The period that a delivery report covers, from `start` to `end`, ISO 8601. */
export interface ReportingPeriod {
  readonly start: string;
  readonly end: string;
  readonly [member: string]: unknown;
}

/** A window of a media buy: the hour, day or month for which the seller owes a report. */
export interface ReportWindow {
  readonly mediaBuyId: string;
  /** The start of the window, ISO 8601 in UTC. This instant is inside the window. */
  readonly start: string;
  /** The end of the window, ISO 8601 in UTC; not inside the window, however the seller wrote the period. */
  readonly end: string;
  /**
   * The `measurement_window` (e.g. `c3`) that the packages of the media buy name, or else the media buy itself. Absent
   * if the report names none.
   */
  readonly stage?: string;
  /**
   * True if an earlier event had figures for the same window and stage. Replace those figures; never add to them. A
   * correction (`adjusted`, `window_update`) is not counted as repeated.
   */
  readonly repeated: boolean;
}

/**
 * The state of the object that a notification is about, e.g. of an impairment. Notifications may arrive in another
 * order than the changes happened. Of each `id`, keep the state with the latest `observedAt`.
 */
export interface NotificationState {
  /** The id of the object, e.g. the `impairment_id`, which is the same for all changes of the object. */
  readonly id: string;
  /**
   * The time of the change, ISO 8601 in UTC, on the seller's clock. If the seller gives none, it is the time at which
   * the event was stored.
   */
  readonly observedAt: string;
  /**
   * True if the state is known to be over: the seller's snapshot no longer contains it, or the family says so, e.g.
   * `creative.purged`. An impairment is also over if it is back at the state before its first change, or comes with
   * `health: 'ok'`.
   */
  readonly ended: boolean;
  /**
   * True if an earlier pull (a request to the seller) reported the same change. If this event is from a pull and
   * reports an end: true if a webhook may have reported that end.
   */
  readonly repeated: boolean;
  /** The media buy, if the event or its operation names one. */
  readonly mediaBuyId?: string;
}

/** The impressions, clicks and spend of one media buy in a delivery report, and the state of these figures. */
export interface MediaBuyDelivery {
  readonly media_buy_id: string;
  /** The media buy's own state, e.g. `active` or `reporting_delayed`. It is not the status of a task. */
  readonly status?: string | null | undefined;
  readonly totals?: DeliveryTotals | null | undefined;
  /** The figures by package, as the seller sends them. */
  readonly by_package?: readonly unknown[] | null | undefined;
  /** The time at which missing figures are due, ISO 8601. */
  readonly expected_availability?: string | null | undefined;
  /** True if these figures replace those of an earlier report. */
  readonly is_adjusted?: boolean | null | undefined;
  /** True if these figures will not change again; they became final at `finalized_at` (ISO 8601). */
  readonly is_final?: boolean | null | undefined;
  readonly finalized_at?: string | null | undefined;
  readonly [member: string]: unknown;
}

/** The total impressions, clicks and spend of one media buy in a delivery report. Spend is in the report's currency. */
export interface DeliveryTotals {
  readonly impressions?: number | null | undefined;
  readonly spend?: number | null | undefined;
  readonly clicks?: number | null | undefined;
  readonly [member: string]: unknown;
}

export type * from './notification.ts';
export type { Recovery } from './error-codes.ts';
export type { ReportedError } from './error-object.ts';

/**
 * A schema of any library that implements Standard Schema v1 (zod, valibot, arktype, …). `ResultSchemas` takes such
 * schemas for the results of tasks.
 */
export interface StandardSchema<Out = unknown> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    /** Validates a value and returns the verdict, or a promise of it. */
    readonly validate: (value: unknown) => StandardResult<Out> | Promise<StandardResult<Out>>;
    readonly types?: { readonly input: unknown; readonly output: Out } | undefined;
  };
}

type StandardResult<Out> =
  | { readonly value: Out; readonly issues?: undefined }
  | {
      readonly issues: readonly {
        readonly message: string;
        readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
      }[];
    };

/**
 * Your schemas for the results of tasks, by `task_type`, e.g. `{ create_media_buy: schema }`: the option
 * `resultSchemas` of `createReceiver`. A result that fits becomes `event.parsed`, with the schema's type.
 */
export type ResultSchemas = Readonly<Record<string, StandardSchema>>;

type OutputOf<S> = S extends StandardSchema<infer Out> ? Out : never;

type Name<K> = `${K & (string | number)}`;
/**
 * Mapped by `as`, so that TypeScript compares such types by their results and not by `S`. A receiver with schemas is
 * then accepted where any receiver is.
 */
type Results<S extends ResultSchemas> = {
  readonly [K in keyof S as Name<K>]: { readonly taskType: Name<K>; readonly data: OutputOf<S[K]> };
};

/**
 * The result of a task that one of your `resultSchemas` has validated: `event.parsed`. Checking `taskType` narrows
 * `data` to the type of that schema.
 */
export type ParsedResult<S extends ResultSchemas> = Results<S>[keyof Results<S>];

/**
 * The form of a seller's webhooks. `tool`: an envelope with `task_id`, for tasks that were called by MCP. `agent`: a
 * `Task` or a `TaskStatusUpdateEvent` of A2A.
 */
export type Transport = 'tool' | 'agent';

/**
 * The status of a task, as a webhook or a poll reports it: `event.status` of an event of kind `task`. `completed`,
 * `failed`, `canceled` and `rejected` are terminal: the task has ended.
 */
export type TaskStatus =
  | 'submitted'
  | 'working'
  | 'input-required'
  | 'auth-required'
  | 'completed'
  | 'failed'
  | 'canceled'
  | 'rejected';

/**
 * A warning about an event that was accepted although something in it is unexpected: a member of `event.warnings`.
 * `message` is for the operator, never for the sender.
 */
export interface EventWarning {
  readonly code: WarningCode;
  readonly message: string;
}

/** The progress of a `working` task: `event.progress`. Present if the members of the result have these types. */
export interface WorkingProgress {
  readonly percentage?: number | null | undefined;
  readonly current_step?: string | number | null | undefined;
  readonly total_steps?: number | null | undefined;
  readonly [member: string]: unknown;
}

/**
 * The input that an `input-required` task waits for: `event.inputRequest`. Present if the members of the result have
 * these types.
 */
export interface InputRequest {
  readonly reason?: string | null | undefined;
  readonly validation_errors?: readonly unknown[] | null | undefined;
  readonly [member: string]: unknown;
}

/**
 * The call to a seller that an event belongs to, as `createRegistrations` stored it: `event.registration`. It has
 * the operation id, the task type, your own reference, and the time.
 */
export interface EventRegistration {
  readonly operationId: string;
  /** Your own reference for the operation, as given to `create`. */
  readonly ref?: string;
  /**
   * True if the call only changed the URLs or schemes that a seller sends to (`registrations.apply`). Such a call
   * orders nothing and has no `ref`.
   */
  readonly isStep?: true;
  /** The task type of the call, e.g. `create_media_buy`. */
  readonly taskType: string;
  /** The time of registration, Unix ms on the store's clock. */
  readonly createdAt: number;
}

/**
 * The subscription for which an event was sent, as its body names it: `event.subscription`. A subscription is an entry
 * in `notification_configs` of an account or an agent.
 */
export interface EventSubscription {
  /** The body's `subscriber_id`. */
  readonly subscriberId: string;
  /** The body's `account_id`. Absent if it has none, e.g. for the subscription of a whole agent. */
  readonly accountId?: string;
  /**
   * Your own reference for the subscription, as given to `registrations.subscribe`. Absent if these registrations did
   * not make the subscription.
   */
  readonly ref?: string;
}

/**
 * The channel by which an event reached you: `event.source`.
 * - `webhook`: a delivery of the seller.
 * - `response`: the answer of the call that began the task.
 * - `poll`: the answer to a request for the task's status.
 * - `pull`: the answer to a request for the object that the task works on, e.g. the media buy.
 */
export type EventChannel = 'webhook' | 'response' | 'poll' | 'pull';

interface EventBase {
  /** The channel by which the event came. All but `webhook` were passed to `receiver.observe`. */
  readonly source: EventChannel;
  /**
   * The canonical absolute URL for which the delivery was verified, with its query. It identifies the URL that the
   * seller was given.
   *
   * If a worker handles the event, or it is redriven, it is the URL of the delivery that first brought the event.
   * It is absent for events of `receiver.observe`, and if it is longer than 1 024 characters.
   */
  readonly url?: string;
  readonly transport: Transport;
  /** The agent URL of the authenticated sender. It comes from verification, never from the payload. */
  readonly sender: string;
  readonly idempotencyKey: string;
  /**
   * The place in the body where the idempotency key was found. `derived`: the body has none, so the key is the SHA-256
   * of the raw body in hex (agent transport only).
   */
  readonly idempotencyKeySource: 'envelope' | 'metadata' | 'derived';
  /** The operation id, which the seller echoes from `push_notification_config`. It never comes from the URL. */
  readonly operationId?: string;
  readonly taskType?: string;
  /** The event's timestamp as sent, ISO 8601. */
  readonly timestamp?: string;
  readonly message?: string;
  /** The task-specific data as `extractData` finds it, unchanged. Undefined if there is no data. */
  readonly data: unknown;
  /** The `context` of the originating request, which the seller echoes unchanged. */
  readonly context?: unknown;
  /** The call to the seller that the event belongs to, if the option `registrations` knows that call. */
  readonly registration?: EventRegistration;
  /** The subscription that the body of a webhook names, with your `ref` if the option `registrations` knows it. */
  readonly subscription?: EventSubscription;
  /** The conversation id of the agent transport. */
  readonly contextId?: string;
  readonly notificationId?: string;
  /**
   * True if an earlier event had the same `notificationId` under another idempotency key. The seller then emitted the
   * event again, which is not a retry.
   */
  readonly reemission: boolean;
  readonly warnings: readonly EventWarning[];
  /**
   * The bytes that the event was read from; do not change them. They are the body as the seller sent it, or the stored
   * form of a call of `receiver.observe`.
   *
   * Use them for numbers that a double cannot represent. The member is not enumerable.
   */
  readonly rawBody: Uint8Array;
  /** The parsed body, with every member as sent. */
  readonly envelope: Readonly<Record<string, unknown>>;
}

/**
 * An event that reports the status of a task which you started at a seller, e.g. `create_media_buy`. It goes to the
 * handler of its status, or else to `other`. It contains the result once the task has ended.
 */
export interface TaskEvent<S extends ResultSchemas = ResultSchemas> extends EventBase {
  readonly kind: 'task';
  /**
   * The task's id. It is empty if the first answer (`source: 'response'`) ended the operation without naming a
   * task; see `operationId`.
   */
  readonly taskId: string;
  readonly status: TaskStatus;
  /** The progress of a task with status `working`, if the result has the form of `WorkingProgress`. */
  readonly progress?: WorkingProgress;
  /** The request of a task with status `input-required`, if the result has the form of `InputRequest`. */
  readonly inputRequest?: InputRequest;
  /** The error that the event reports, in one shape for all channels. Its original form is in `data` or `envelope`. */
  readonly error?: ReportedError;
  /** The validated result, if `resultSchemas` has a schema for this task type and the result fits it. */
  readonly parsed?: ParsedResult<S>;
}

/**
 * An event with a delivery report: the impressions, clicks and spend of media buys. It goes to the handler
 * `deliveryReport`. Reports are not ordered, so one is never stale.
 */
export interface DeliveryReportEvent extends EventBase {
  readonly kind: 'delivery-report';
  readonly taskId?: string;
  readonly status: string;
  /** The same value as `data`, typed. */
  readonly report: DeliveryReport;
  readonly sequenceNumber?: number;
  /**
   * The windows of the media buys in the report. A first or last period that is shorter, because the media buy begins
   * or ends in it, is given as a whole window.
   *
   * Present if the receiver has `registrations`. Media buys that are not registered, and periods that fit no window,
   * are left out.
   */
  readonly windows?: readonly ReportWindow[];
}

interface OtherBase extends EventBase {
  readonly kind: 'other';
  readonly taskId?: string;
  /** The status as sent, if there is one. On the agent transport it is normalised. */
  readonly status?: string;
  /**
   * The state of the object that a notification is about. Present if the receiver has `registrations`, for impairments,
   * and for families of subscriptions whose payloads have the id of an object that changes.
   */
  readonly state?: NotificationState;
}

/**
 * An event about something other than a task or a report, e.g. a rejected creative or a changed product feed. It
 * goes to the handler of its family in `handlers.notifications`. Its payload is typed, because this package knows
 * its family and the payload fits the family's schema.
 */
export interface NotificationEvent<F extends NotificationFamily = NotificationFamily> extends OtherBase {
  readonly family: F extends 'wholesale_feed' ? WholesaleFeedFamily : F;
  /** The typed payload: the body itself, or the result in a task envelope. */
  readonly notification: Notifications[F];
}

/**
 * An event whose payload this package does not type. It has an unknown notification family or task status, or
 * is a message or artifact of the agent transport. It goes to the handler `other`.
 */
export interface UntypedEvent extends OtherBase {
  /**
   * The family's name as in the body, except that some known names are brought to one spelling. A message or an
   * artifact of the agent transport has the family `message` or `artifactUpdate`. A delivery report that is not valid
   * has the family `media_buy_delivery`.
   */
  readonly family?: string;
  /**
   * Never present here. A payload that does not fit the schema of its known family causes the warning
   * `invalid_notification` instead.
   */
  readonly notification?: never;
}

/**
 * An event that is neither about a task's status nor a delivery report: a notification, or an event of unknown form.
 * Checking `family` narrows `notification`.
 */
export type OtherEvent =
  { readonly [F in NotificationFamily]: NotificationEvent<F> }[NotificationFamily] | UntypedEvent;

/**
 * The event that your handler receives. `kind` tells a task's status, a delivery report and a notification apart.
 * Members are the same for MCP and A2A webhooks; `transport` names the one that the event came by.
 */
export type Event<S extends ResultSchemas = ResultSchemas> = TaskEvent<S> | DeliveryReportEvent | OtherEvent;
