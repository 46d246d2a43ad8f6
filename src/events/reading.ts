// Reads the raw body of an authentic delivery: strict JSON, format, envelope rules, event (verification.md §7).
// Called by the stage `read` and by `readEvent`. This file and the schemas are one chunk (file of the bundle), which
// the startup check loads.

import { isReportShaped } from './delivery-report.ts';
import { type InexactFound, inexactNumbers } from '../codec/inexact-numbers.ts';
import { parseStrictObject } from '../codec/strict-json.ts';
import { type Edition, editionFor, type EditionName } from '../shared/editions.ts';
import type { Protocols } from '../shared/wire-names.ts';
import { readAgent } from './agent.ts';
import { type AssembledEvent, assembleEvent, type EventOrigin } from './assemble.ts';
import { isChallenge } from './challenge.ts';
import type { Draft, EnvelopeFailure } from './envelope.ts';
import type { EventChannel, Transport } from './event.ts';
import { formOf } from './families.ts';
import { type JsonObject, textMember } from '../codec/members.ts';
import { taskStatus } from './status.ts';
import { readTool } from './tool.ts';
import { eventWarning, placesOf } from './warnings.ts';

/**
 * Exported from here, so that the code is in the same chunk (file of the bundle). Few events need it, so it gets no
 * chunk of its own.
 */
export { parseResult } from './result-schemas.ts';
export { eventWarning } from './warnings.ts';

/**
 * Options of `readEvent`: the sender of the body, and the transport, edition and protocol name by which the body is
 * read.
 */
export interface ReadOptions {
  /** The format that the sender is registered with. It is used unless the body has the shape of the other format. */
  readonly format?: Transport | undefined;
  /** The agent URL of the authenticated sender, for `event.sender`. Default: empty. */
  readonly sender?: string;
  /**
   * The protocol edition of the sender. In 3.0 webhooks need no `operation_id`; in other editions its absence is a
   * warning.
   */
  readonly edition?: EditionName | undefined;
  /**
   * The only protocol name whose error member (`<protocol>_error`) is read. Default: both known names, `proto` and
   * `adcp`.
   */
  readonly protocol?: string | undefined;
  /** Returns the SHA-256 in lower-case hex. Default: the platform's implementation. */
  readonly hash?: (bytes: Uint8Array) => string;
}

/**
 * A result of `readEvent` for a body that is not strict JSON, e.g. with a repeated member. A receiver answers it
 * with 401. `detail` is for the operator's log; `check` is 14, the receiver's check of the JSON.
 */
export interface BodyFailure {
  readonly ok: false;
  readonly code: 'webhook_body_malformed';
  readonly detail: string;
  readonly check: 14;
}

/**
 * The result of `readEvent`: an event (`ok: true`), or the code and detail of the reason why the body contains none.
 * A receiver answers `webhook_body_malformed` with 401 and the other codes with 400.
 */
export type EventReading = AssembledEvent | EnvelopeFailure | BodyFailure;

/** A proof of control (verification.md §7.9). It is no event, whatever its other members are. */
export interface ChallengeReading {
  readonly ok: false;
  readonly code: 'challenge';
  readonly payload: JsonObject;
}

/**
 * As `readEvent`, but the caller supplies the hash function, and gets proofs of control as a result of their own.
 */
export type ReadBody = (
  bytes: Uint8Array,
  options: Pick<ReadOptions, 'edition' | 'format' | 'sender'> &
    Required<Pick<ReadOptions, 'hash'>> & {
      readonly protocols: Protocols;
      /** The channel, e.g. `poll`, of a body that `receiver.observe` made. Absent for a webhook. */
      readonly source?: EventChannel | undefined;
      /** The URL at which the body arrived, if it is known. */
      readonly url?: string | undefined;
    },
) => EventReading | ChallengeReading;

/**
 * Reads the raw body of an authentic delivery: strict JSON, format, envelope rules (verification.md §7). Never
 * throws for anything in `bytes`. `event.reemission`, and warnings that depend on earlier events, are added after
 * the store has compared them.
 */
export const readBody: ReadBody = (
  bytes,
  { hash, sender = '', protocols, format, source = 'webhook', edition, url },
) => {
  const json = parseStrictObject(bytes);
  if (!json.ok) return { ok: false, code: 'webhook_body_malformed', detail: json.detail, check: 14 };
  const origin = { sender, rawBody: bytes, protocols, url };
  if (source !== 'webhook') return assembleEvent(readObservation(json.value, source), origin);
  if (isChallenge(json.value, bytes.byteLength)) return { ok: false, code: 'challenge', payload: json.value };
  const draft = draftOf(json.value, {
    format,
    edition: edition && editionFor(edition),
    hash: () => hash(bytes),
  });
  if (!draft.ok) return draft;
  const inexact = inexactNumbers(json.text, json.value);
  return inexact ? inexactEvent(draft, inexact, origin) : assembleEvent(draft, origin);
};

/**
 * Makes the event of a body with numbers that a double cannot represent. A warning names the members that have such
 * numbers.
 */
function inexactEvent(
  draft: Draft,
  { numbers, paths }: InexactFound,
  origin: EventOrigin,
): AssembledEvent | EnvelopeFailure {
  const places = placesOf(
    paths.map((path) => ({ path })),
    'the body',
  );
  const warnings = [...draft.warnings, eventWarning('inexact_number', places)];
  const assembled = assembleEvent({ ...draft, warnings }, origin);
  return assembled.ok ? { ...assembled, inexact: numbers } : assembled;
}

/**
 * Reads a body that `receiver.observe` made. It has the members of a tool-transport envelope, but its task may have
 * no id.
 */
function readObservation(payload: JsonObject, source: EventChannel): Draft {
  const status = textMember(payload, 'status');
  // The body has this member only if it is a state that was pulled (fetched from the seller), which has no task
  // (owed.md §6.5).
  const family = textMember(payload, 'notification_type');
  return {
    ok: true,
    source,
    transport: 'tool',
    envelope: payload,
    idempotencyKey: textMember(payload, 'idempotency_key') ?? '',
    idempotencyKeySource: 'envelope',
    data: payload['result'],
    status,
    taskStatus: taskStatus(status),
    taskId: family === undefined ? (textMember(payload, 'task_id') ?? '') : undefined,
    operationId: textMember(payload, 'operation_id'),
    taskType: textMember(payload, 'task_type'),
    timestamp: textMember(payload, 'timestamp'),
    message: undefined,
    context: payload['context'],
    contextId: undefined,
    notificationId: undefined,
    taskEnvelope: family === undefined,
    family,
    // True only for a report that was pulled (fetched from the seller), because a task's own result is never a report
    // (owed.md §4.3).
    reportShaped: source === 'pull' && isReportShaped(textMember(payload, 'task_type'), payload['result']),
    warnings: [],
  };
}

interface DraftOptions {
  readonly format: Transport | undefined;
  readonly edition: Edition | undefined;
  readonly hash: () => string;
}

function draftOf(payload: JsonObject, { format, edition, hash }: DraftOptions): Draft | EnvelopeFailure {
  const form = formOf(payload, format);
  return form.transport === 'tool' ? readTool(payload, form, edition) : readAgent(payload, hash);
}
