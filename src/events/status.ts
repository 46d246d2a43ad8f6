// The words of a task's status, in both transports (verification.md §7.10, §7.14).
// Used wherever a status is read.

import type { TaskStatus } from './event.ts';

/** For each status, true if no other status follows. The words are the same in both transports. */
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

/**
 * Statuses of media buys that some senders write as a task's status by mistake. A task envelope with such a status is
 * refused.
 */
const MEDIA_BUY_WORDS: ReadonlySet<string> = new Set(['active', 'paused', 'reporting_delayed']);

const AGENT_PREFIX = 'TASK_STATE_';

export function isTerminal(status: TaskStatus): boolean {
  return TERMINAL[status];
}

/** Returns `text` if it is exactly a task status. For the agent transport, call `normaliseState` first. */
export function taskStatus(text: string | undefined): TaskStatus | undefined {
  return text !== undefined && isStatus(text) ? text : undefined;
}

export function isMediaBuyWord(text: string): boolean {
  return MEDIA_BUY_WORDS.has(text);
}

/**
 * Converts e.g. `TASK_STATE_INPUT_REQUIRED` to `input-required`. Only ASCII letters are converted: `toLowerCase`
 * would also turn the Kelvin sign into a k, so that another word could become `working`.
 */
export function normaliseState(state: string): string {
  const name = state.startsWith(AGENT_PREFIX) ? state.slice(AGENT_PREFIX.length) : state;
  return name.replace(/[A-Z]+/g, (letters) => letters.toLowerCase()).replaceAll('_', '-');
}

function isStatus(text: string): text is TaskStatus {
  return Object.hasOwn(TERMINAL, text);
}
