import type { TaskStatus } from './event.ts';

/** What a status means for its task, and where the agent transport puts its data (verification.md §7.10, §7.16). */
interface StatusRow {
  /** Nothing follows it. */
  readonly terminal: boolean;
  /** contract.md §7.1 has it; `auth-required` is the agent transport's alone. */
  readonly tool: boolean;
}

const STATUSES: Record<TaskStatus, StatusRow> = {
  submitted: { terminal: false, tool: true },
  working: { terminal: false, tool: true },
  'input-required': { terminal: false, tool: true },
  'auth-required': { terminal: false, tool: false },
  completed: { terminal: true, tool: true },
  failed: { terminal: true, tool: true },
  canceled: { terminal: true, tool: true },
  rejected: { terminal: true, tool: true },
};

/** Words of a media buy's life that some senders put where the task's status belongs: refused there. */
const MEDIA_BUY_WORDS: ReadonlySet<string> = new Set(['active', 'paused', 'reporting_delayed']);

const AGENT_PREFIX = 'TASK_STATE_';

export function isTerminal(status: TaskStatus): boolean {
  return STATUSES[status].terminal;
}

/** The status in tool transport: exactly as contract.md §7.1 writes it. */
export function toolStatus(text: string): TaskStatus | undefined {
  return isStatus(text) && STATUSES[text].tool ? text : undefined;
}

/** The state in agent transport, `text` being normalised. */
export function agentStatus(text: string): TaskStatus | undefined {
  return isStatus(text) ? text : undefined;
}

export function isMediaBuyWord(text: string): boolean {
  return MEDIA_BUY_WORDS.has(text);
}

/**
 * `TASK_STATE_INPUT_REQUIRED` → `input-required`. ASCII letters only: `toLowerCase` would also turn the Kelvin sign
 * into a k, and so another word into `working`.
 */
export function normaliseState(state: string): string {
  const name = state.startsWith(AGENT_PREFIX) ? state.slice(AGENT_PREFIX.length) : state;
  return name.replace(/[A-Z]+/g, (letters) => letters.toLowerCase()).replaceAll('_', '-');
}

function isStatus(text: string): text is TaskStatus {
  return Object.hasOwn(STATUSES, text);
}
