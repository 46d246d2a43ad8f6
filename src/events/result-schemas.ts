import type { Event, ParsedResult, ResultSchemas, StandardSchema, TaskEvent } from './event.ts';
import { withMembers } from './event-members.ts';
import { placesOf, eventWarning } from './warnings.ts';
import { isTerminal } from './status.ts';

/**
 * Sets `event.parsed` where the result of a task that ended fits the schema given for its `task_type`; where it does
 * not, or the schema throws, the warning `result_schema_mismatch` is added and the event is handed on all the same.
 * Interim statuses carry progress, not the task's result, and are left alone. Never rejects.
 */
export async function parseResult<S extends ResultSchemas>(
  event: Event,
  schemas: S | undefined,
): Promise<Event<S>> {
  if (event.kind !== 'task') return event;
  // Of another S by its type alone: nothing is parsed yet.
  const plain = event as unknown as TaskEvent<S>;
  const { taskType, data } = event;
  // `hasOwn`: a task type called `constructor` is not a schema.
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
  /** Why the value does not fit; undefined where it does. */
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
