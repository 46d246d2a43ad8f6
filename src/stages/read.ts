// Reads an authentic body into an event, and into the claim: the facts that the store compares and keeps
// (verification.md §7).
// Called by the receiver after `authenticate`. It does no I/O. An unreadable body is answered only after `admit` has
// stored the delivery's nonce as used.

import type { Identity } from '../auth/auth-contract.ts';
import { canonicalJson } from '../codec/canonical-json.ts';
import type { InexactNumbers } from '../codec/inexact-numbers.ts';
import { isJsonObject, textMember } from '../codec/members.ts';
import type { Hashes } from '../crypto/engine.ts';
import { deliveryId } from '../shared/delivery.ts';
import type { DeliveryReportEvent, Event, EventChannel, TaskEvent } from '../events/event.ts';
import type { EventRegistrations } from '../events/event-registration.ts';
import type { ChallengeReading, EventReading, ReadBody } from '../events/reading.ts';
import { type Refusal, refused } from '../shared/outcome.ts';
import { DEFAULT_EDITION, type Edition } from '../shared/editions.ts';
import type { Protocols } from '../shared/wire-names.ts';
import type { SenderEntry } from '../config/sender-entry.ts';
import type { OurUrl } from '../windows/told.ts';
import { operationRowId } from '../stores/constants.ts';
import type { EventClaim, ReportClaim, TaskClaim, ToldClaim } from '../stores/store.ts';
import type { Authentic } from './authenticate.ts';
import { storedId } from './ids.ts';
import { windowsOf } from './reported-windows.ts';
import { stateClaim } from './notified-states.ts';

/** Members that are ignored, at any depth, when the payloads of two terminal statuses are compared. */
const LEFT_OUT: ReadonlySet<string> = new Set(['idempotency_key', 'timestamp', 'metadata']);

/**
 * Returns the SHA-256, in lower-case hex, of the content of a terminal status (verification.md §2.19). The content is
 * status and data. If there is no data, it is the status and the payload without the members in `LEFT_OUT`.
 */
export function terminalHash(
  { status, data, envelope }: TaskEvent,
  hashes: Hashes,
  inexact?: InexactNumbers,
): string {
  const said =
    data == null
      ? canonicalJson({ payload: envelope, status }, { inexact, without: LEFT_OUT })
      : canonicalJson({ data, status }, { inexact });
  return hashes.sha256Hex(said);
}

interface ReadBase {
  readonly kind: 'read';
  readonly identity: Identity;
  readonly rawBody: Uint8Array;
}

/** Known facts about the bytes of a body. */
interface Known {
  /** SHA-256 of the bytes in hex. */
  readonly hash?: string | undefined;
  readonly source?: EventChannel | undefined;
  readonly url?: string | undefined;
}

type Readable = Extract<EventReading, { ok: true }>;

/** A body that contains an event. */
export interface ReadEvent extends ReadBase {
  readonly reading: Readable;
  /** The event's facts that the store compares and keeps. */
  readonly claim: EventClaim;
  readonly deliveryId: string;
}

interface Eventless extends ReadBase {
  readonly claim?: undefined;
  readonly deliveryId?: undefined;
}

interface Unreadable extends Eventless {
  readonly reading: Exclude<EventReading, Readable>;
}

/** A proof of control. It contains no event: the seller asks the receiver for a decision instead. */
export interface ReadChallenge extends Eventless {
  readonly reading: ChallengeReading;
}

/**
 * The result of reading an authentic body: an event, or the reason why it has none. The refusal is sent only after
 * `admit` has stored the nonce.
 */
export type Read = ReadEvent | Unreadable;

export interface ReadContext {
  readonly protocols: Protocols;
  readonly hashes: Hashes;
  /** Parses bodies; its code is loaded before the first delivery. */
  readonly readBody: ReadBody;
}

/** The sender, with its format if it is registered with one. */
export type Origin = Pick<SenderEntry, 'agentUrl' | 'format'> & Partial<Pick<SenderEntry, 'edition'>>;

/** Parses the bytes of a known sender: the body of this delivery, or a stored first copy. */
export function readFrom(
  sender: Origin,
  bytes: Uint8Array,
  context: ReadContext,
  { hash, source, url }: Known = {},
): EventReading | ChallengeReading {
  return context.readBody(bytes, {
    sender: sender.agentUrl,
    protocols: context.protocols,
    hash: (raw) => hash ?? context.hashes.sha256Hex(raw),
    format: sender.format,
    edition: sender.edition?.name ?? DEFAULT_EDITION,
    source,
    url,
  });
}

/**
 * The largest number of media buys of one report that the store looks up. For further media buys, there is no warning
 * that the report came after their final report.
 */
const MAX_REPORTED_BUYS = 100;

function reportClaim(
  { report, source }: DeliveryReportEvent,
  instant: string | undefined,
  { hashes, registrations }: ClaimContext,
): ReportClaim {
  const ids = (report.media_buy_deliveries ?? []).map(({ media_buy_id }) => storedId(media_buy_id, hashes));
  return {
    mediaBuyIds: [...new Set(ids)].slice(0, MAX_REPORTED_BUYS),
    final: report.notification_type === 'final',
    ...(instant !== undefined && { instant }),
    ...(registrations && { windows: windowsOf(report, hashes) }),
    ...(source === 'pull' && { isPulled: true }),
  };
}

/**
 * True for a state that was pulled (fetched from the seller). It may come at any time, even after the last report
 * (owed.md §7.5).
 */
const isPulledState = ({ kind, source }: Event): boolean => kind === 'other' && source === 'pull';

/**
 * Returns the id of the row of the media buy that an event names, in its data or (notifications) at the top of its
 * body.
 */
function mediaBuyRow({ data, envelope }: Event, hashes: Hashes): string | undefined {
  const named = isJsonObject(data) ? textMember(data, 'media_buy_id') : undefined;
  const id = named ?? textMember(envelope, 'media_buy_id');
  return id === undefined ? undefined : storedId(id, hashes);
}

function claimMediaBuy(claim: Writable<EventClaim>, event: Event, instant: string, hashes: Hashes): void {
  const id = mediaBuyRow(event, hashes);
  if (id !== undefined) claim.mediaBuy = { id, instant };
}

/**
 * Returns the ids of the rows of the media buys that an event concerns, except those for which the event reports
 * windows.
 */
function streamsOf(event: Event, { report }: EventClaim, hashes: Hashes): readonly string[] {
  if (!report) return [mediaBuyRow(event, hashes) ?? []].flat();
  const windows = new Set(report.windows?.map(({ id }) => id));
  return report.mediaBuyIds.filter((id) => !windows.has(id));
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

function taskClaim(
  event: TaskEvent,
  { instant, terminal }: Readable,
  { hashes, registrations, edition }: ClaimContext,
): TaskClaim {
  const operation = operationRow(event, hashes);
  const { taskId } = event;
  const id = taskId === '' && operation !== undefined ? operation : storedId(taskId, hashes);
  const told =
    registrations &&
    toldClaim(event, { operation: id === operation ? undefined : operation, terminal }, hashes);
  return {
    id,
    terminal,
    ...(!terminal && edition.secondTerminal === 'refused' && { keepsEnd: true }),
    ...(instant && { instant: instant.key, instantMs: instant.ms }),
    ...(told && { told }),
  };
}

function operationRow({ operationId }: TaskEvent, hashes: Hashes): string | undefined {
  return operationId === undefined ? undefined : operationRowId(storedId(operationId, hashes));
}

/**
 * Returns the part of a result that is compared between channels. For an error this is the code, because channels word
 * and shape the same error differently.
 */
const saysOf = (data: unknown, error: TaskEvent['error']): object =>
  error === undefined ? { data: data ?? null } : { error: error.code ?? error.message };

/**
 * Returns the facts about a task's status that are compared between channels. A terminal status is compared by its
 * data, wherever the channel puts the data.
 */
function toldClaim(
  { source, status, data, error }: TaskEvent,
  { operation, terminal }: { readonly operation: string | undefined; readonly terminal: boolean },
  hashes: Hashes,
): ToldClaim {
  return {
    source,
    status,
    ...(operation !== undefined && { operation }),
    ...(terminal && {
      hash: hashes.sha256Hex(
        canonicalJson({ status, ...saysOf(data, status === 'completed' ? undefined : error) }),
      ),
    }),
  };
}

/** The parts that are needed to make a claim: the facts about an event that the store compares and keeps. */
export interface ClaimContext extends Pick<ReadContext, 'hashes'> {
  /** If set, the receiver has registrations, so other channels than webhooks may report on a task. */
  readonly registrations: EventRegistrations | undefined;
  readonly edition: Pick<Edition, 'changedPayload' | 'fingerprint' | 'secondTerminal'>;
  /** The URL at which the body arrived, as registrations name it. Absent if registrations did not give out the URL. */
  readonly via?: OurUrl | undefined;
  /**
   * True for an observation: an event that came by another channel than webhooks. `claimOf` then adds no hashes for
   * comparison with other deliveries, and no state of a notification.
   */
  readonly isObserved?: boolean;
}

/**
 * Returns the hashes by which a delivery is compared with other copies of its event, and with other terminal statuses
 * of its task.
 */
function comparedHashes(
  { event, terminal, inexact }: Readable,
  { edition, hashes }: ClaimContext,
): Pick<EventClaim, 'canonicalHash' | 'terminalHash'> {
  const isEnd = event.kind === 'task' && terminal && edition.secondTerminal === 'refused';
  return {
    ...(edition.fingerprint === 'canonical' && {
      canonicalHash: hashes.sha256Hex(canonicalJson(event.envelope, { inexact })),
    }),
    ...(isEnd && { terminalHash: terminalHash(event, hashes, inexact) }),
  };
}

/**
 * Adds the facts that depend on the event's kind. Only tasks are ordered; reports and notifications may run in parallel
 * (admission.md §5.1).
 */
function claimKind(claim: Writable<EventClaim>, reading: Readable, context: ClaimContext): void {
  const { event, at = reading.instant } = reading;
  const { hashes } = context;
  if (event.kind === 'task') claim.task = taskClaim(event, reading, context);
  if (event.kind === 'delivery-report') {
    claim.report = reportClaim(event, at?.key, context);
    return;
  }
  if (at && !isPulledState(event)) claimMediaBuy(claim, event, at.key, hashes);
  const state = context.registrations && !context.isObserved ? stateClaim(reading, hashes) : undefined;
  if (state) claim.state = state;
}

/**
 * Makes the claim of an event: the facts that the store compares and keeps.
 * @param rawHash SHA-256 of the body in hex, if it was computed before.
 */
export function claimOf(
  rawBody: Uint8Array,
  reading: Readable,
  context: ClaimContext,
  rawHash: string = context.hashes.sha256Hex(rawBody),
): EventClaim {
  const { edition, hashes } = context;
  const { event } = reading;
  const claim: Writable<EventClaim> = {
    key: event.idempotencyKey,
    body: rawBody,
    rawHash,
    ...(event.url !== undefined && { url: event.url }),
    onChanged: edition.changedPayload === 'conflict' ? 'conflict' : 'first-wins',
  };
  if (!context.isObserved) Object.assign(claim, comparedHashes(reading, context));
  claimKind(claim, reading, context);
  if (context.via) claim.via = { ...context.via, streams: streamsOf(event, claim, hashes) };
  if (event.notificationId !== undefined) claim.notificationId = storedId(event.notificationId, hashes);
  return claim;
}

/** Both branches look alike, but TypeScript needs them: each type of `reading` belongs to a type of result. */
function unreadable(
  base: ReadBase,
  reading: Exclude<EventReading, Readable> | ChallengeReading,
): Unreadable | ReadChallenge {
  return reading.code === 'challenge' ? { ...base, reading } : { ...base, reading };
}

export function isChallenge(body: Read | ReadChallenge): body is ReadChallenge {
  return !body.reading.ok && body.reading.code === 'challenge';
}

/**
 * True for a delivery report. A report that does not fit the schema counts too; it is passed to the handler `other`.
 */
export const isReport = ({ kind, warnings }: Event): boolean =>
  kind === 'delivery-report' || warnings.some(({ code }) => code === 'invalid_delivery_report');

/**
 * If HMAC is allowed for reports alone, refuses any other event that was authenticated by HMAC (verification.md
 * §2.22). The secret for reports must not be sufficient to end a task.
 */
export function beyondReports({ identity, reading }: Read | ReadChallenge): Refusal | undefined {
  const { scheme, sender } = identity;
  if (scheme !== 'hmac' || sender.auth.scheme !== 'signature') return undefined;
  if (!reading.ok || isReport(reading.event)) return undefined;
  return refused('webhook_mode_mismatch', 'HMAC came with another event than a delivery report');
}

/** Performs check 14 (the body is strict JSON), then the envelope rules of verification.md §7. No I/O. */
export function read(
  { rawBody, identity, url }: Authentic,
  context: ReadContext & Pick<ClaimContext, 'registrations'>,
  via?: OurUrl,
): Read | ReadChallenge {
  const { sender, bodyHash } = identity;
  const reading = readFrom(sender, rawBody, context, { hash: bodyHash, url });
  if (!reading.ok) return unreadable({ kind: 'read', identity, rawBody }, reading);
  const { hashes, registrations } = context;
  const claim = claimOf(rawBody, reading, { edition: sender.edition, hashes, registrations, via }, bodyHash);
  const id = deliveryId(hashes, sender.agentUrl, claim.key);
  return { kind: 'read', identity, rawBody, reading, claim, deliveryId: id };
}
