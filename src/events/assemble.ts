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

/** Returns `data` itself with a type, because a copy made by the schema would differ from what was sent. */
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

/** The typed result of an interim status (contract.md §6.2). */
function progressOf(status: TaskStatus, data: unknown): Progress {
  return data === undefined || data === null ? NONE : READ[status](data);
}

interface Reading {
  readonly notification?: Notifications[NotificationFamily];
  readonly warnings: readonly EventWarning[];
}

/**
 * The typed payload of a known family (verification.md §7.36): the body itself, or the result or data part in it.
 * The sent object is returned, because a copy made by the schema would differ. For a pulled payload it is the
 * result, because this package made the envelope.
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

/** The payload in the data. For an impairment it may be in a member of that name: `{impairment, health}`. */
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
  /** The time that orders an event of kind `task`; absent without a valid timestamp. Other kinds are not ordered. */
  readonly instant?: Instant;
  /**
   * The timestamp of an event of another kind than `task`, if it is valid. For kind `other` without a timestamp it
   * is the time of observation.
   */
  readonly at?: Instant;
  /** The state that a notification tells. Absent for a family without one, and if its id has over 255 characters. */
  readonly state?: StateReading;
  /** The numbers of the body that a double cannot represent, for comparisons. Absent if there are none. */
  readonly inexact?: InexactNumbers;
}

type Base = Omit<
  TaskEvent,
  'rawBody' | 'kind' | 'taskId' | 'status' | 'progress' | 'inputRequest' | 'parsed' | 'error'
>;

/** The source of an event. */
export interface EventOrigin {
  /** The authenticated seller's agent URL. */
  readonly sender: string;
  readonly rawBody: Uint8Array;
  /** The URL at which the body arrived. Left out of the event if it is too long. */
  readonly url?: string | undefined;
  /** The protocol names whose members are read. */
  readonly protocols: Protocols;
}

/** Decides the kind of an event: another family, a delivery report, a task, or else `other`. */
export function assembleEvent(draft: Draft, origin: EventOrigin): AssembledEvent | EnvelopeFailure {
  if (!draft.taskEnvelope) return otherEvent(draft, origin);
  if (draft.reportShaped) return reportEvent(draft, origin);
  if (draft.taskStatus === undefined) return otherEvent(draft, origin);
  return taskEvent(draft, origin);
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** The subscription that an object names (subscriptions.md §5.1). */
function subscriptionIn(holder: unknown): EventSubscription | undefined {
  if (!isJsonObject(holder)) return undefined;
  const subscriberId = textMember(holder, 'subscriber_id');
  if (subscriberId === undefined || !SUBSCRIBER_ID.test(subscriberId)) return undefined;
  return { subscriberId, ...defined({ accountId: textMember(holder, 'account_id') }) };
}

/**
 * Adds the subscription. A webhook names it in its body, or in the payload of another family inside. A pulled state
 * names it in the envelope that this package made.
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
 * Makes the members that all kinds share. Optional members are added in a fixed order, so that events with the same
 * members have the same hidden class.
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
 * Warnings about the status of a task envelope. The status of another family has its own meaning, so none is given.
 */
function statusWarnings({ taskEnvelope, status, taskStatus }: Draft): readonly EventWarning[] {
  if (!taskEnvelope || status === undefined || taskStatus !== undefined) return [];
  return [eventWarning('unknown_status', JSON.stringify(printableName(status)))];
}

const NO_WARNINGS: readonly EventWarning[] = [];

function instantOf({ timestamp }: Draft): Instant | undefined {
  return timestamp === undefined ? undefined : parseInstant(timestamp);
}

/** The `observed_at` in the body of another family, or in the data of an envelope around it. */
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
  // The table of schemas ensures that the notification has its family's type. A spread would lose `rawBody`.
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
 * The first error that an event reports (verification.md §7.35), in its data or else in its envelope. If the event
 * reports no failure, `error` and `errors[]` belong to the result or are warnings.
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

/** Members that report errors only if the status is failed. Otherwise they belong to the result. */
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
