export type * from './event.ts';
export type { AssembledEvent } from './assemble.ts';
export type { EnvelopeFailure } from './draft.ts';
export type { Instant } from './instant.ts';
export type * from './wire.ts';
export { detectFormat } from './format.ts';
export { notificationSchemas } from './notification-schemas.ts';
export { parseResult } from './result-schemas.ts';
export type { BodyFailure, EventReading, ReadOptions } from './reading.ts';
export { extractData, readEvent } from './read.ts';
export {
  agentTaskSchema,
  agentTaskStatusUpdateSchema,
  deliveryReportSchema,
  inputRequestSchema,
  toolEnvelopeSchema,
  workingProgressSchema,
} from './schemas.ts';
