// Detects the transport of a body, and removes the wrapper of agent-transport payloads (verification.md §7.12,
// §7.13, contract.md §6.6).
// Called while bodies are read, and for answers of calls.

import { isJsonObject, type JsonObject, present, textMember } from '../codec/members.ts';
import { isPrintable } from '../codec/printable.ts';
import type { Transport } from './event.ts';

/**
 * Members whose text names the family of the body (verification.md §7.8), in order of precedence. `event.event_type`
 * comes after them.
 */
const NAMING = ['notification_type', 'event', 'event_type'] as const;

/** Returns the names that a body gives itself, unchanged, in order of precedence. Empty if the body has none. */
export function namesOf(payload: JsonObject): readonly string[] {
  const names: string[] = [];
  for (const member of NAMING) {
    const name = textMember(payload, member);
    if (name !== undefined) names.push(name);
  }
  const event = present(payload, 'event');
  const type = isJsonObject(event) ? textMember(event, 'event_type') : undefined;
  if (type !== undefined) names.push(type);
  return names;
}

/**
 * Longest family name in characters. It is limited, because the sender chooses the text, and families are looked up,
 * counted and logged by it.
 */
const MAX_NAME = 128;

/** Returns the name if it can be the name of a family; undefined if it is too long or unprintable. */
export function familyName(name: string | undefined): string | undefined {
  return name !== undefined && isPrintable(name, MAX_NAME) ? name : undefined;
}

/**
 * The content of an agent-transport payload. A `Task` and a `TaskStatusUpdateEvent` without a wrapper are read in
 * the same way, as `task`.
 */
export type AgentForm = 'task' | 'statusUpdate' | 'message' | 'artifactUpdate';

export interface AgentPayload {
  readonly form: AgentForm;
  /** The payload without its wrapper, e.g. the object inside `{statusUpdate: {…}}`. */
  readonly body: JsonObject;
}

/** For each form, true if it contains a task's state. Messages and artifacts contain none. */
const STATES: Record<AgentForm, boolean> = {
  task: true,
  statusUpdate: true,
  message: false,
  artifactUpdate: false,
};

const WRAPPERS = Object.keys(STATES) as readonly AgentForm[];

export function hasState(form: AgentForm): boolean {
  return STATES[form];
}

/**
 * Removes the wrapper of an agent-transport payload (verification.md §7.12, §7.13). Returns `malformed` if there
 * are two wrappers, one inside the other or side by side. Undefined if the payload is not of that transport.
 */
export function agentPayload(payload: JsonObject): AgentPayload | 'malformed' | undefined {
  if (isJsonObject(payload['status'])) return { form: 'task', body: payload };
  if (typeof payload['status'] === 'string' || present(payload, 'task_id') !== undefined) return undefined;
  const { kind } = payload;
  if (kind === 'message' && Array.isArray(payload['parts'])) return { form: 'message', body: payload };
  if (kind === 'artifact-update' && isJsonObject(payload['artifact'])) {
    return { form: 'artifactUpdate', body: payload };
  }
  const [first, ...others] = wrapped(payload);
  if (!first) return undefined;
  return others.length > 0 || wrapped(first.body).length > 0 ? 'malformed' : first;
}

function wrapped(payload: JsonObject): readonly AgentPayload[] {
  return WRAPPERS.flatMap((form) => {
    const body = payload[form];
    return isJsonObject(body) ? [{ form, body }] : [];
  });
}

/**
 * Returns the member `taskId`, which a `TaskStatusUpdateEvent` has, or else the member `id`. Undefined if both are
 * empty or absent.
 */
export function agentTaskId(body: JsonObject): string | undefined {
  return textMember(body, 'taskId') || textMember(body, 'id') || undefined;
}

/**
 * True for a payload of the agent transport. Notifications may have members of the same names, but they have an
 * idempotency key at the top level. So a body with that key and a family name must have a task's status and id. A body
 * with that key and no name must have a status, or be a message or an artifact.
 */
function isAgents(payload: JsonObject): boolean {
  const found = agentPayload(payload);
  if (found === undefined || isOtherStatus(payload['status'])) return false;
  if (present(payload, 'idempotency_key') === undefined) return true;
  const named = namesOf(payload).length > 0;
  if (found === 'malformed') return !named;
  const { form, body } = found;
  const hasStatus = isJsonObject(body['status']);
  return named ? hasStatus && agentTaskId(body) !== undefined : hasStatus || !hasState(form);
}

/** True for a status object without a `state`, which is therefore not a task's status. */
function isOtherStatus(status: unknown): boolean {
  return isJsonObject(status) && !Object.hasOwn(status, 'state');
}

/** For each transport, the function that tells if a body has that transport's shape (contract.md §6.6). */
const FITS: Record<Transport, (payload: JsonObject) => boolean> = {
  tool: (payload) => typeof payload['status'] === 'string' && present(payload, 'task_id') !== undefined,
  agent: isAgents,
};

const FORMATS: readonly Transport[] = ['tool', 'agent'];

/**
 * Detects the form of a parsed webhook body: `tool` (MCP) or `agent` (A2A). The registered format decides, unless the
 * payload has the shape of the other format: a seller that uses both transports sends both. No payload has both shapes.
 * @param known the format that the sender is registered with.
 * @returns undefined if no format is known and the shape belongs to neither transport.
 * @example
 * ```ts
 * import { detectFormat } from 'proto-webhooks/events';
 *
 * console.log(detectFormat({ task_id: 'task-1', status: 'working' }, 'tool')); // tool
 * ```
 */
export function detectFormat(payload: unknown, known?: Transport): Transport | undefined {
  if (!isJsonObject(payload)) return known;
  return FORMATS.find((format) => FITS[format](payload)) ?? known;
}
