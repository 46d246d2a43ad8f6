// The entry `proto-webhooks/events`: reads events and data from bodies, without a receiver.
// It uses the same `readBody` as the receiver, with hash functions of its own.

import { protocolsFor } from '../shared/wire-names.ts';
import { type JsonObject, isJsonObject } from '../codec/members.ts';
import { createHashes } from '../crypto/hashes.ts';
import { agentData } from './agent-data.ts';
import { envelopeFailure } from './envelope.ts';
import type { Transport } from './event.ts';
import { formOf } from './families.ts';
import { agentPayload } from './format.ts';
import { type EventReading, readBody, type ReadOptions } from './reading.ts';
import { toolData } from './tool.ts';

export type * from './event.ts';
export type { EnvelopeCode, WarningCode } from '../shared/codes.ts';
export type { AssembledEvent } from './assemble.ts';
export type { EnvelopeFailure } from './envelope.ts';
export type { Instant } from './instant.ts';
export type { StateReading } from './state-reading.ts';
export type * from './wire.ts';
export { detectFormat } from './format.ts';
export { notificationSchemas } from './notification-schemas.ts';
export { parseResult } from './result-schemas.ts';
export type { BodyFailure, EventReading, ReadOptions } from './reading.ts';
export {
  agentTaskSchema,
  agentTaskStatusUpdateSchema,
  deliveryReportSchema,
  inputRequestSchema,
  toolEnvelopeSchema,
  workingProgressSchema,
} from './schemas.ts';

const EXTRACTORS: Record<Transport, (payload: JsonObject) => unknown> = {
  tool: toolData,
  agent: (payload) => {
    const found = agentPayload(payload);
    if (found === undefined || found === 'malformed') return undefined;
    // Data that was taken from a later artifact is not returned: the protocol says that only the first artifact has the
    // data.
    const { data, later } = agentData(found);
    return later === 'taken' ? undefined : data;
  },
};

/**
 * Reads an event from the raw body of an authentic delivery: parses strict JSON, detects the transport (MCP or A2A)
 * and checks the required members. It never throws for anything in `bytes`.
 *
 * Only the store knows earlier events, so `event.reemission` is false and warnings about earlier events are absent.
 * @throws ConfigError for a `protocol` that is not a valid name.
 * @example
 * ```ts
 * import { readEvent } from 'proto-webhooks/events';
 *
 * export function kindOf(rawBody: Uint8Array): string {
 *   const reading = readEvent(rawBody, { format: 'tool' });
 *   return reading.ok ? reading.event.kind : reading.code;
 * }
 * ```
 */
export function readEvent(bytes: Uint8Array, options: ReadOptions = {}): EventReading {
  const { protocol, hash = (raw) => createHashes().sha256Hex(raw), ...others } = options;
  const reading = readBody(bytes, { ...others, hash, protocols: protocolsFor(protocol) });
  if (reading.ok || reading.code !== 'challenge') return reading;
  return envelopeFailure('missing_idempotency_key', 'it is a proof of control, not an event');
}

/**
 * Returns the task-specific data of a parsed webhook body, unchanged. On the tool transport (MCP) it is `result`; on
 * the agent transport (A2A) it is the data part that belongs to the task's state.
 * @param format the format that the sender is registered with. Default: detected from the body.
 * @returns undefined if there is no data, or if the data part is only `{response: {…}}`, a mistake of the sender.
 * @example
 * ```ts
 * import { extractData } from 'proto-webhooks/events';
 *
 * const body = { idempotency_key: 'key-0123456789abcdef', task_id: 'task-1', status: 'completed', result: { id: 1 } };
 * console.log(extractData(body)); // { id: 1 }
 * ```
 */
export function extractData(payload: unknown, format?: Transport): unknown {
  if (!isJsonObject(payload)) return undefined;
  return EXTRACTORS[formOf(payload, format).transport](payload);
}
