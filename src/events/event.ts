import type { WarningCode } from '../shared/codes.ts';
import type { ReportedError } from './error-object.ts';
import type { NotificationFamily, Notifications, WholesaleFeedFamily } from './notification.ts';

/** contract.md §6.8 and verification.md §7.33. Unknown members survive; `null` is how many senders write absence. */
export interface DeliveryReport {
  /** `window_update`: figures of a window that was reported before have changed. */
  readonly notification_type: 'scheduled' | 'final' | 'delayed' | 'adjusted' | 'window_update';
  readonly sequence_number?: number | null | undefined;
  readonly reporting_period?: ReportingPeriod | null | undefined;
  readonly currency?: string | null | undefined;
  /** ISO 8601: when the next report is due. */
  readonly next_expected_at?: string | null | undefined;
  /** Some media buys' figures are missing: `unavailable_count` of them. */
  readonly partial_data?: boolean | null | undefined;
  readonly unavailable_count?: number | null | undefined;
  readonly media_buy_deliveries?: readonly MediaBuyDelivery[] | null | undefined;
  readonly [member: string]: unknown;
}

/** The time that a delivery report covers. */
export interface ReportingPeriod {
  /** ISO 8601. */
  readonly start: string;
  readonly end: string;
  readonly [member: string]: unknown;
}

/** One media buy of a delivery report. */
export interface MediaBuyDelivery {
  readonly media_buy_id: string;
  /** Media buy lifecycle or reporting state, e.g. `active`, `reporting_delayed`: not the task's status. */
  readonly status?: string | null | undefined;
  readonly totals?: DeliveryTotals | null | undefined;
  readonly by_package?: readonly unknown[] | null | undefined;
  /** ISO 8601: when figures that are not there yet are due. */
  readonly expected_availability?: string | null | undefined;
  /** These figures replace those of an earlier report. */
  readonly is_adjusted?: boolean | null | undefined;
  /** These figures will not change any more, since `finalized_at` (ISO 8601). */
  readonly is_final?: boolean | null | undefined;
  readonly finalized_at?: string | null | undefined;
  readonly [member: string]: unknown;
}

/** What was delivered and spent, in the report's currency. */
export interface DeliveryTotals {
  readonly impressions?: number | null | undefined;
  readonly spend?: number | null | undefined;
  readonly clicks?: number | null | undefined;
  readonly [member: string]: unknown;
}

export type * from './notification.ts';
export type { Recovery } from './error-codes.ts';
export type { ReportedError } from './error-object.ts';

/** A schema of any library that implements Standard Schema v1 (zod, valibot, arktype, …). */
export interface StandardSchema<Out = unknown> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    /** Its verdict on a value, at once or promised. */
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

/** Schemas by `task_type`, e.g. `{ create_media_buy: schema }`. */
export type ResultSchemas = Readonly<Record<string, StandardSchema>>;

type OutputOf<S> = S extends StandardSchema<infer Out> ? Out : never;

type Name<K> = `${K & (string | number)}`;
/** Mapped by `as`, so that what comes out is compared and not `S`: a receiver with schemas fits where any is wanted. */
type Results<S extends ResultSchemas> = {
  readonly [K in keyof S as Name<K>]: { readonly taskType: Name<K>; readonly data: OutputOf<S[K]> };
};

/** A closed union over the schemas' task types; narrows `data` by `taskType`. */
export type ParsedResult<S extends ResultSchemas> = Results<S>[keyof Results<S>];

/** `tool`: the envelope with `task_id`. `agent`: a `Task` or `TaskStatusUpdateEvent`. */
export type Transport = 'tool' | 'agent';

/** Task statuses (contract.md §7.1), and `auth-required` (verification.md §7.11). */
export type TaskStatus =
  | 'submitted'
  | 'working'
  | 'input-required'
  | 'auth-required'
  | 'completed'
  | 'failed'
  | 'canceled'
  | 'rejected';

/** Something unexpected that was reported, not refused. `message` is for the owner, never for the sender. */
export interface EventWarning {
  readonly code: WarningCode;
  readonly message: string;
}

/** `result` of a `working` status, where its members have these types. */
export interface WorkingProgress {
  readonly percentage?: number | null | undefined;
  readonly current_step?: string | number | null | undefined;
  readonly total_steps?: number | null | undefined;
  readonly [member: string]: unknown;
}

/** `result` of an `input-required` status, where its members have these types. */
export interface InputRequest {
  readonly reason?: string | null | undefined;
  readonly validation_errors?: readonly unknown[] | null | undefined;
  readonly [member: string]: unknown;
}

/** The operation that an event is of, as you registered it. */
export interface EventRegistration {
  readonly operationId: string;
  /** Your own word for it, as given to `create`. */
  readonly ref?: string;
  /** Of the call, e.g. `create_media_buy`. */
  readonly taskType: string;
  /** Unix ms, on the store's clock. */
  readonly createdAt: number;
}

/**
 * By which channel a buyer learns of a task: the seller's webhook, the answer of the call that began it, or a question of the
 * buyer's own, about the task (`poll`) or about what it works on (`pull`).
 */
export type EventChannel = 'webhook' | 'response' | 'poll' | 'pull';

interface EventBase {
  /** By which channel it came; all but `webhook` were given to `receiver.observe`. */
  readonly source: EventChannel;
  /**
   * The URL that its delivery was judged by, absolute and canonical, with its query: by it you know what the seller was given.
   * Of a worker's event, and of one that is redriven, that of the delivery which brought it first. Absent of what was given to
   * `receiver.observe`, and where it is longer than 1 024 characters.
   */
  readonly url?: string;
  readonly transport: Transport;
  /** Agent URL of the authenticated sender: from verification, never from the payload. */
  readonly sender: string;
  readonly idempotencyKey: string;
  /** Where the key was found; `derived`: SHA-256 of the raw body, hex (agent transport only). */
  readonly idempotencyKeySource: 'envelope' | 'metadata' | 'derived';
  /** Echoed by the seller from `push_notification_config`: the correlation key. Never from the URL. */
  readonly operationId?: string;
  readonly taskType?: string;
  /** As sent, ISO 8601. */
  readonly timestamp?: string;
  readonly message?: string;
  /** What the extraction rules give (contract.md §6.7), unchanged; undefined where there is none. */
  readonly data: unknown;
  /** Echo of the originating request's `context`, verbatim. */
  readonly context?: unknown;
  /** What you registered for it with the seller (option `registrations`), where that is known. */
  readonly registration?: EventRegistration;
  /** Agent transport's conversation id. */
  readonly contextId?: string;
  readonly notificationId?: string;
  /** `notificationId` was seen before under another idempotency key: a re-emission, not a retry. */
  readonly reemission: boolean;
  readonly warnings: readonly EventWarning[];
  /**
   * The bytes that the event was read from, not to be changed: the body as the seller sent it, or, of what
   * `receiver.observe` was given, as it is kept. Numbers that a double cannot hold stand in it exactly. Not enumerable.
   */
  readonly rawBody: Uint8Array;
  /** The parsed body, every member as sent. */
  readonly envelope: Readonly<Record<string, unknown>>;
}

/** A task's status changed. */
export interface TaskEvent<S extends ResultSchemas = ResultSchemas> extends EventBase {
  readonly kind: 'task';
  /** Empty where the first answer (`source: 'response'`) ended the operation and named no task: see `operationId`. */
  readonly taskId: string;
  readonly status: TaskStatus;
  /** `working` only, where the result has the shape. */
  readonly progress?: WorkingProgress;
  /** `input-required` only, where the result has the shape. */
  readonly inputRequest?: InputRequest;
  /**
   * The error that the event reports, one shape whichever channel told it (verification.md §7.35); as sent it stands in `data`, or
   * in `envelope`.
   */
  readonly error?: ReportedError;
  /** Present where `resultSchemas` has this task type and the result fits it. */
  readonly parsed?: ParsedResult<S>;
}

/** A delivery report arrived. Never stale: reports are not ordered. */
export interface DeliveryReportEvent extends EventBase {
  readonly kind: 'delivery-report';
  readonly taskId?: string;
  readonly status: string;
  /** `data`, typed. */
  readonly report: DeliveryReport;
  readonly sequenceNumber?: number;
}

interface OtherBase extends EventBase {
  readonly kind: 'other';
  readonly taskId?: string;
  /** As sent (agent transport: normalised), where there is one. */
  readonly status?: string;
}

/** An event of a family whose payload is known, and fits. */
export interface NotificationEvent<F extends NotificationFamily = NotificationFamily> extends OtherBase {
  readonly family: F extends 'wholesale_feed' ? WholesaleFeedFamily : F;
  /** The payload itself, typed: the body, or the result of a task envelope around it. */
  readonly notification: Notifications[F];
}

/** An event of which no payload is known: unknown families and statuses, agent messages and artifacts. */
export interface UntypedEvent extends OtherBase {
  /**
   * What the body calls itself, exactly (contract.md §6.12's five in one spelling); agent transport: `message`,
   * `artifactUpdate`; a report that is none by its members: `media_buy_delivery`.
   */
  readonly family?: string;
  /** Where a known family's payload does not fit, with the warning `invalid_notification`. */
  readonly notification?: never;
}

/** Whatever else is authentic. Narrows `notification` by `family`. */
export type OtherEvent =
  { readonly [F in NotificationFamily]: NotificationEvent<F> }[NotificationFamily] | UntypedEvent;

/** What a handler gets, discriminated by `kind`. Members are the same for both transports; `transport` says which it was. */
export type Event<S extends ResultSchemas = ResultSchemas> = TaskEvent<S> | DeliveryReportEvent | OtherEvent;
