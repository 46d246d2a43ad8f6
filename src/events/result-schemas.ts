import { printableName } from '../codec/printable.ts';
import type { Event, ParsedResult, ResultSchemas, StandardSchema, TaskEvent } from './event.ts';
import { isTerminal } from './status.ts';
import { eventWarning } from './warnings.ts';

type Verdict = Awaited<ReturnType<StandardSchema['~standard']['validate']>>;
type Issues = NonNullable<Verdict['issues']>;

/** How many places of a mismatch the warning names. */
const MAX_PLACES = 4;

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
  // `hasOwn`: a task type called `constructor` is no schema.
  const schema = taskType !== undefined && schemas && Object.hasOwn(schemas, taskType) && schemas[taskType];
  if (!schema || data === undefined || !isTerminal(event.status)) return plain;
  const { mismatch, value } = await validate(schema, data);
  if (mismatch === undefined) return { ...plain, parsed: { taskType, data: value } as ParsedResult<S> };
  return { ...plain, warnings: [...event.warnings, eventWarning('result_schema_mismatch', mismatch)] };
}

interface Validation {
  /** Why the value does not fit; undefined where it does. */
  readonly mismatch?: string;
  readonly value?: unknown;
}

async function validate(schema: StandardSchema, data: unknown): Promise<Validation> {
  try {
    const result = await schema['~standard'].validate(data);
    return result.issues ? { mismatch: placesOf(result.issues) } : { value: result.value };
  } catch {
    return { mismatch: 'the schema threw' };
  }
}

/** Where it does not fit. Not why: messages of schemas may quote values, and the body is never logged. */
function placesOf(issues: Issues): string {
  const places = issues.slice(0, MAX_PLACES).map(({ path = [] }) => {
    const keys = path.map((step) => (typeof step === 'object' ? step.key : step));
    return keys.length === 0 ? 'the result' : keys.map((key) => printableName(String(key))).join('.');
  });
  return `at ${places.join(', ')}`;
}
