// Makes an event from a draft: decides its kind and adds the typed parts (verification.md §7.33 to §7.37).
// Called by `reading.ts` after the envelope rules.

import { defined, isJsonObject, present, textMember } from '../codec/members.ts';
import type { InexactNumbers } from '../codec/inexact-numbers.ts';
import { isKeptUrl, printableName } from '../codec/printable.ts';
import type { Protocols } from '../shared/wire-names.ts';
import { reportOf, reportWarnings, rowWarnings } from './delivery-report.ts';
import { REPORT_TASK_TYPE } from './report-names.ts';
import { type Draft, type EnvelopeFailure, envelopeFailure } from './envelope.ts';
import type {
  Event,
  EventSubscription,
  EventWarning,
  OtherEvent,
  TaskEvent,
  TaskStatus,
  NotificationFamily,
  Notifications,
} from './event.ts';
import { type Instant, parseInstant } from './instant.ts';
import { withRawBody } from './event-members.ts';
import { isErrorAlone } from './error-alone.ts';
import { errorsIn, errorsOf, type ReportedError } from './error-object.ts';
import { notificationSchemas } from './notification-schemas.ts';
import { notificationFamily } from './notification-family.ts';
import { placesOf, eventWarning } from './warnings.ts';
import { type StateReading, stateReading } from './state-reading.ts';
import { inputRequestSchema, SUBSCRIBER_ID, workingProgressSchema } from './schemas.ts';
import { isTerminal } from './status.ts';

interface Progress extends Pick<TaskEvent, 'progress' | 'inputRequest'> {
  readonly warnings: readonly EventWarning[];
}

const NONE: Pick<Progress, 'warnings'> = { warnings: [] };
const INVALID: Progress = { warnings: [eventWarning('invalid_progress')] };
const none = (): Progress => NONE;

/**
 * For each status, the function that reads the progress or input request in the data. It returns `data` itself, because
 * the schema's copy would differ from what was sent.
 */
const READ: Record<TaskStatus, (data: unknown) => Progress> = {
  working: (data) =>
    workingProgressSchema.safeParse(data).success
      ? { progress: data as NonNullable<TaskEvent['progress']>, warnings: [] }
      : INVALID,
  'input-required': (data) =>
    inputRequestSchema.safeParse(data).success
      ? { inputRequest: data as NonNullable<TaskEvent['inputRequest']>, warnings: [] }
      : INVALID,
  submitted: none,
  'auth-required': none,
  completed: none,
  failed: none,
  canceled: none,
  rejected: none,
};

/**
 * Returns the typed `progress` or `inputRequest` in a task's data (contract.md §6.2), or a warning if its types are
 * wrong.
 */
function progressOf(status: TaskStatus, data: unknown): Progress {
  return data === undefined || data === null ? NONE : READ[status](data);
}

interface Reading {
  readonly notification?: Notifications[NotificationFamily];
  readonly warnings: readonly EventWarning[];
}

/**
 * Returns the typed payload of a notification whose family is known (verification.md §7.36): the body itself, or the
 * result or data part in it. The sent object is returned, because the schema's copy would differ. A pulled notification
 * (from an answer that this package fetched) has its payload in the result, because this package made the envelope.
 */
function notificationOf({ envelope, data, source }: Draft, family: string | undefined): Reading {
  const name = notificationFamily(family ?? '');
  if (!Object.hasOwn(notificationSchemas, name)) return NONE;
  const schema = notificationSchemas[name as NotificationFamily];
  const whole = source === 'pull' ? data : envelope;
  const body = schema.safeParse(whole);
  if (body.success) return { notification: whole as typeof body.data, warnings: [] };
  const payload = payloadIn(data, name);
  const inner = isJsonObject(payload) ? schema.safeParse(payload) : body;
  if (inner.success) return { notification: payload as typeof inner.data, warnings: [] };
  return { warnings: [eventWarning('invalid_notification', placesOf(inner.error.issues, 'the payload'))] };
}

/**
 * Returns the part of the data that may be the payload. The data of an impairment may be `{impairment, health}`, with
 * the payload in the member `impairment`.
 */
function payloadIn(data: unknown, family: string): unknown {
  const own = family === 'impairment' && isJsonObject(data) ? present(data, family) : undefined;
  return isJsonObject(own) ? own : data;
}

/**
 * A successful result of `readEvent`: the event that the body contains, and the time and facts by which a store
 * orders it.
 */
export interface AssembledEvent {
  readonly ok: true;
  /** The event. Its `reemission` is false until the store has compared it with earlier events. */
  readonly event: Event;
  /** True for an event of kind `task` with status `completed`, `failed`, `canceled` or `rejected`. */
  readonly terminal: boolean;
  /**
   * The time by which stores order events of kind `task`. Absent without a valid timestamp. Events of other kinds are
   * not ordered.
   */
  readonly instant?: Instant;
  /**
   * The timestamp of an event of another kind than `task`, if it is valid. For kind `other` without a timestamp it is
   * the body's `observed_at`.
   */
  readonly at?: Instant;
  /**
   * The state of the object (e.g. an impairment) that a notification is about. Absent for families without a state, and
   * if the id of the object has over 255 characters.
   */
  readonly state?: StateReading;
  /**
   * The numbers of the body that a double cannot represent, so that bodies are compared by exact values. Absent if
   * there are none.
   */
  readonly inexact?: InexactNumbers;
}

type Base = Omit<
  TaskEvent,
  'rawBody' | 'kind' | 'taskId' | 'status' | 'progress' | 'inputRequest' | 'parsed' | 'error'
>;

/**
 * The facts about an event that its draft does not have: the sender, the bytes, the URL, and the accepted protocol
 * names.
 */
export interface EventOrigin {
  /** The authenticated seller's agent URL. */
  readonly sender: string;
  readonly rawBody: Uint8Array;
  /** The URL at which the body arrived. Left out of the event if it has more than 1 024 characters. */
  readonly url?: string | undefined;
  /** The protocol names (`proto`, `adcp`) whose members are read, e.g. `adcp_error`. */
  readonly protocols: Protocols;
}

/**
 * Makes an event of the kind that fits the draft. A notification becomes `other`, a report `delivery-report`, a known
 * task status `task`, and everything else `other`.
 */
export function assembleEvent(draft: Draft, origin: EventOrigin): AssembledEvent | EnvelopeFailure {
  if (!draft.taskEnvelope) return otherEvent(draft, origin);
  if (draft.reportShaped) return reportEvent(draft, origin);
  if (draft.taskStatus === undefined) return otherEvent(draft, origin);
  return taskEvent(draft, origin);
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/**
 * Returns the subscription that an object names by `subscriber_id` (subscriptions.md §5.1); undefined if the id is
 * absent or not valid.
 */
function subscriptionIn(holder: unknown): EventSubscription | undefined {
  if (!isJsonObject(holder)) return undefined;
  const subscriberId = textMember(holder, 'subscriber_id');
  if (subscriberId === undefined || !SUBSCRIBER_ID.test(subscriberId)) return undefined;
  return { subscriberId, ...defined({ accountId: textMember(holder, 'account_id') }) };
}

/**
 * Sets `subscription` of an event whose body names one. A webhook names it at the top level or, in a notification
 * inside an envelope, in the result. A pulled state names it in the envelope that this package made.
 */
function nameSubscription(
  base: Writable<Pick<Event, 'kind' | 'source' | 'subscription'>>,
  { envelope, data, taskEnvelope }: Draft,
): void {
  const isWebhook = base.source === 'webhook';
  if (!isWebhook && taskEnvelope) return;
  const isInData = isWebhook && base.kind === 'other';
  const found = subscriptionIn(envelope) ?? (isInData ? subscriptionIn(data) : undefined);
  if (found !== undefined) base.subscription = found;
}

/**
 * Makes the members that all kinds share. Optional members are added in a fixed order, so that JavaScript engines give
 * events with the same members the same hidden class.
 */
function baseOf<K extends Event['kind']>(
  kind: K,
  draft: Draft,
  { sender, rawBody, url }: EventOrigin,
  added: readonly EventWarning[],
): Base & { readonly kind: K } & Pick<TaskEvent, 'rawBody'> {
  const { source = 'webhook', idempotencyKey, idempotencyKeySource, data, envelope, transport } = draft;
  const warnings = added.length === 0 ? draft.warnings : [...draft.warnings, ...added];
  const base: Writable<Base> & { kind: K } = {
    kind,
    source,
    transport,
    sender,
    idempotencyKey,
    idempotencyKeySource,
    data,
    reemission: false,
    warnings,
    envelope,
  };
  if (url !== undefined && isKeptUrl(url)) base.url = url;
  if (draft.operationId !== undefined) base.operationId = draft.operationId;
  if (draft.taskType !== undefined) base.taskType = draft.taskType;
  if (draft.timestamp !== undefined) base.timestamp = draft.timestamp;
  if (draft.message !== undefined) base.message = draft.message;
  if (draft.context !== undefined) base.context = draft.context;
  if (draft.contextId !== undefined) base.contextId = draft.contextId;
  if (draft.notificationId !== undefined) base.notificationId = draft.notificationId;
  nameSubscription(base, draft);
  return withRawBody(base, rawBody);
}

/**
 * Returns a warning if a task envelope has an unknown status. A notification gets none, because its `status` has a
 * meaning of its own.
 */
function statusWarnings({ taskEnvelope, status, taskStatus }: Draft): readonly EventWarning[] {
  if (!taskEnvelope || status === undefined || taskStatus !== undefined) return [];
  return [eventWarning('unknown_status', JSON.stringify(printableName(status)))];
}

const NO_WARNINGS: readonly EventWarning[] = [];

function instantOf({ timestamp }: Draft): Instant | undefined {
  return timestamp === undefined ? undefined : parseInstant(timestamp);
}

/** Returns the `observed_at` of a notification, from its body or from the data of the envelope around it. */
function observedAt({ envelope, data }: Draft): Instant | undefined {
  const at = textMember(envelope, 'observed_at') ?? (isJsonObject(data) && textMember(data, 'observed_at'));
  return at ? parseInstant(at) : undefined;
}

function timestampWarnings(draft: Draft, instant: Instant | undefined): readonly EventWarning[] {
  return draft.timestamp === undefined || instant ? NO_WARNINGS : [eventWarning('invalid_timestamp')];
}

function otherEvent(
  draft: Draft,
  origin: EventOrigin,
  family: string | undefined = draft.family,
  added: readonly EventWarning[] = [],
): AssembledEvent {
  const { taskId, status } = draft;
  const { notification, warnings: misfit } = notificationOf(draft, family);
  const instant = instantOf(draft);
  const warnings = [...statusWarnings(draft), ...timestampWarnings(draft, instant), ...added, ...misfit];
  const base = baseOf('other', draft, origin, warnings);
  // The table of schemas ensures that `notification` has the type of its family. A spread instead of `assign` would
  // lose `rawBody`.
  const event = Object.assign(base, defined({ taskId, status, family, notification })) as OtherEvent;
  const at = instant ?? observedAt(draft);
  const { envelope, data } = draft;
  const state =
    notification &&
    stateReading({ family: family ?? '', payload: notification, envelope, data, eventAt: at?.ms });
  return { ok: true, event, terminal: false, ...defined({ at, state }) };
}

function reportEvent(draft: Draft, origin: EventOrigin): AssembledEvent {
  const { data, taskId, status } = draft;
  const report = reportOf(data);
  const warnings = reportWarnings(data);
  if (!report || status === undefined) {
    return otherEvent(draft, origin, REPORT_TASK_TYPE, [
      ...warnings,
      eventWarning('invalid_delivery_report'),
    ]);
  }
  const sequenceNumber = report.sequence_number ?? undefined;
  const instant = instantOf(draft);
  const base = baseOf('delivery-report', draft, origin, [
    ...statusWarnings(draft),
    ...timestampWarnings(draft, instant),
    ...warnings,
    ...rowWarnings(report, draft.source),
  ]);
  const event = Object.assign(base, defined({ taskId, sequenceNumber }), { status, report });
  return { ok: true, event, terminal: false, ...defined({ at: instant }) };
}

/**
 * Returns the first error that a task's event reports (verification.md §7.35), in its data or else in its envelope. If
 * the task has not failed, the members `error` and `errors` are part of the result or warnings, so they are ignored.
 */
function errorOf(
  { data, envelope, transport }: Draft,
  status: TaskStatus,
  protocols: Protocols,
): ReportedError | undefined {
  const isFailure = isTerminal(status) && status !== 'completed';
  const own = firstErrorIn(data, protocols, isFailure);
  return own ?? (transport === 'tool' ? firstErrorIn(envelope, protocols, isFailure) : undefined);
}

/**
 * Members that report errors only if the status is `failed`, `canceled` or `rejected`. With other statuses they belong
 * to the result.
 */
const OF_FAILURES = ['error', 'errors'] as const;

function firstErrorIn(holder: unknown, protocols: Protocols, isFailure: boolean): ReportedError | undefined {
  if (!isJsonObject(holder)) return undefined;
  for (const { errorMember } of protocols) {
    const error = errorsOf(present(holder, errorMember))[0];
    if (error) return error;
  }
  return isFailure ? errorsIn(holder, OF_FAILURES)[0] : undefined;
}

function taskEvent(draft: Draft, origin: EventOrigin): AssembledEvent | EnvelopeFailure {
  const { taskId, taskStatus: status, data, taskType } = draft;
  if (taskId === undefined || status === undefined) {
    return envelopeFailure('missing_envelope_fields', 'the payload names no task');
  }
  if (status === 'completed' && (data === undefined || data === null || isErrorAlone(data, taskType)))
    return otherEvent(draft, origin, draft.family, [eventWarning('completed_without_data')]);
  const instant = instantOf(draft);
  const { warnings, progress, inputRequest } = progressOf(status, data);
  const late = timestampWarnings(draft, instant);
  const added = late.length === 0 ? warnings : [...late, ...warnings];
  const event = baseOf('task', draft, origin, added) as Writable<TaskEvent>;
  event.taskId = taskId;
  event.status = status;
  if (progress !== undefined) event.progress = progress;
  if (inputRequest !== undefined) event.inputRequest = inputRequest;
  const error = errorOf(draft, status, origin.protocols);
  if (error !== undefined) event.error = error;
  const terminal = isTerminal(status);
  return instant === undefined ? { ok: true, event, terminal } : { ok: true, event, terminal, instant };
}
