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
    // The protocol's own rule looks at the first artifact alone.
    const { data, later } = agentData(found);
    return later === 'taken' ? undefined : data;
  },
};

/**
 * Reads the raw body of an authentic delivery: strict JSON, format, envelope rules (verification.md §7).
 * Never throws for anything in `bytes`. `event.reemission` and the warnings that need memory are the store's to add.
 * @throws ConfigError for a `protocol` that is not a name.
 */
export function readEvent(bytes: Uint8Array, options: ReadOptions = {}): EventReading {
  const { protocol, hash = (raw) => createHashes().sha256Hex(raw), ...others } = options;
  const reading = readBody(bytes, { ...others, hash, protocols: protocolsFor(protocol) });
  if (reading.ok || reading.code !== 'challenge') return reading;
  return envelopeFailure('missing_idempotency_key', 'it is a proof of control, which has none, and no event');
}

/**
 * The task-specific data of a parsed body, unchanged: tool transport `result`; agent transport the data part that
 * its state says (contract.md §6.5).
 * @param format the format the sender is registered with; detected where absent.
 * @returns undefined where there is none, or where the part is only `{response: {…}}`, a mistake of the sender.
 */
export function extractData(payload: unknown, format?: Transport): unknown {
  if (!isJsonObject(payload)) return undefined;
  return EXTRACTORS[formOf(payload, format).transport](payload);
}
