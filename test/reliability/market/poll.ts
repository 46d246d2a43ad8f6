import type { TaskStatus } from '../../../src/events/index.ts';
import { clientOf } from './buyer.ts';

/** What a status query says. */
export interface StatusFound {
  readonly status: TaskStatus;
  /** When the task came to it, as the seller writes it. */
  readonly at: string;
  /** The result, or how far it is. */
  readonly data?: unknown;
}

const ask = clientOf(3_000);

interface ToolStatus {
  readonly status: TaskStatus;
  readonly updated_at: string;
  readonly progress?: unknown;
  readonly result?: unknown;
}

interface WithParts {
  readonly parts: readonly { readonly data?: unknown }[];
}

interface AgentTask {
  readonly status: { readonly state: string; readonly timestamp: string; readonly message?: WithParts };
  readonly artifacts?: readonly WithParts[];
}

const stateOf = (state: string): TaskStatus =>
  state.replace('TASK_STATE_', '').toLowerCase().replace('_', '-') as TaskStatus;

/** Asks for a task, by the transport that the URL is of. Rejects where the seller is dead for a while. */
export async function statusOf(agentUrl: string, taskId: string): Promise<StatusFound> {
  if (agentUrl.endsWith('/a2a')) {
    const { status, artifacts = [] } = (await ask(
      agentUrl,
      'tasks/get',
      { id: taskId },
      { signal: AbortSignal.timeout(60_000) },
    )) as AgentTask;
    const data = artifacts[0]?.parts.at(-1)?.data ?? status.message?.parts[0]?.data;
    return { status: stateOf(status.state), at: status.timestamp, data };
  }
  const query = { task_id: taskId, include_result: true };
  const found = (await ask(agentUrl, 'get_task_status', query, {
    signal: AbortSignal.timeout(60_000),
  })) as ToolStatus;
  return { status: found.status, at: found.updated_at, data: found.result ?? found.progress };
}
