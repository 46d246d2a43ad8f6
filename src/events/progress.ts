import type { EventWarning, TaskEvent, TaskStatus } from './event.ts';
import { inputRequestSchema, workingProgressSchema } from './schemas.ts';
import { eventWarning } from './warnings.ts';

interface Progress extends Pick<TaskEvent, 'progress' | 'inputRequest'> {
  readonly warnings: readonly EventWarning[];
}

const NONE: Progress = { warnings: [] };
const INVALID: Progress = { warnings: [eventWarning('invalid_progress')] };
const none = (): Progress => NONE;

/** `data` itself is handed on, typed: a schema's copy is not what was sent. */
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
export function progressOf(status: TaskStatus, data: unknown): Progress {
  return data === undefined || data === null ? NONE : READ[status](data);
}
