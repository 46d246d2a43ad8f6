// Validates results of ended tasks by the owner's schemas (option `resultSchemas`).
// Called by `dispatch`; public as `parseResult`.

import type { Event, ParsedResult, ResultSchemas, StandardSchema, TaskEvent } from './event.ts';
import { withMembers } from './event-members.ts';
import { placesOf, eventWarning } from './warnings.ts';
import { isTerminal } from './status.ts';

/**
 * Validates the result of an ended task by your schema for its `task_type`. If it fits, it becomes `event.parsed`.
 * If it does not fit or the schema throws, the event gets the warning `result_schema_mismatch` and is otherwise
 * unchanged.
 *
 * It ignores interim statuses, because they carry progress and no result. It never rejects.
 *
 * @example
 * ```ts
 * import { parseResult, readEvent } from 'proto-webhooks/events';
 * import * as z from 'zod';
 *
 * const schemas = { create_media_buy: z.object({ media_buy_id: z.string() }) };
 *
 * export async function mediaBuyId(rawBody: Uint8Array): Promise<string | undefined> {
 *   const reading = readEvent(rawBody);
 *   if (!reading.ok) return undefined;
 *   const event = await parseResult(reading.event, schemas);
 *   return event.kind === 'task' ? event.parsed?.data.media_buy_id : undefined;
 * }
 * ```
 */
export async function parseResult<S extends ResultSchemas>(
  event: Event,
  schemas: S | undefined,
): Promise<Event<S>> {
  if (event.kind !== 'task') return event;
  // Only the type parameter changes here, because nothing has been parsed yet.
  const plain = event as unknown as TaskEvent<S>;
  const { taskType, data } = event;
  // `hasOwn` excludes inherited members, e.g. for a task type called `constructor`.
  const schema = taskType !== undefined && schemas && Object.hasOwn(schemas, taskType) && schemas[taskType];
  if (!schema || data === undefined || data === null || !isTerminal(event.status)) return plain;
  const { mismatch, value } = await validate(schema, data);
  if (mismatch === undefined)
    return withMembers(plain, { parsed: { taskType, data: value } as ParsedResult<S> });
  return withMembers(plain, {
    warnings: [...event.warnings, eventWarning('result_schema_mismatch', mismatch)],
  });
}

interface Validation {
  /** The reason why the value does not fit; undefined if it fits. */
  readonly mismatch?: string;
  readonly value?: unknown;
}

async function validate(schema: StandardSchema, data: unknown): Promise<Validation> {
  try {
    const result = await schema['~standard'].validate(data);
    return result.issues ? { mismatch: placesOf(result.issues, 'the result') } : { value: result.value };
  } catch {
    return { mismatch: 'the schema threw' };
  }
}
