// The words of a task's status, in both transports (verification.md §7.10, §7.14).
// Used wherever a status is read.

import type { TaskStatus } from './event.ts';

/** True for each status that nothing follows. The words are the same in both transports. */
const TERMINAL: Record<TaskStatus, boolean> = {
  submitted: false,
  working: false,
  'input-required': false,
  'auth-required': false,
  completed: true,
  failed: true,
  canceled: true,
  rejected: true,
};

/** Words of a media buy's life that some senders write as the task's status: refused there. */
const MEDIA_BUY_WORDS: ReadonlySet<string> = new Set(['active', 'paused', 'reporting_delayed']);

const AGENT_PREFIX = 'TASK_STATE_';

export function isTerminal(status: TaskStatus): boolean {
  return TERMINAL[status];
}

/** The status that `text` is, exactly as written; for the agent transport, after `normaliseState`. */
export function taskStatus(text: string | undefined): TaskStatus | undefined {
  return text !== undefined && isStatus(text) ? text : undefined;
}

export function isMediaBuyWord(text: string): boolean {
  return MEDIA_BUY_WORDS.has(text);
}

/**
 * `TASK_STATE_INPUT_REQUIRED` → `input-required`. ASCII letters only: `toLowerCase` would also turn the
 * Kelvin sign into a k, and so another word into `working`.
 */
export function normaliseState(state: string): string {
  const name = state.startsWith(AGENT_PREFIX) ? state.slice(AGENT_PREFIX.length) : state;
  return name.replace(/[A-Z]+/g, (letters) => letters.toLowerCase()).replaceAll('_', '-');
}

function isStatus(text: string): text is TaskStatus {
  return Object.hasOwn(TERMINAL, text);
}
