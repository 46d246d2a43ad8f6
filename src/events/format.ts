import type { Transport } from './event.ts';
import { familyOf } from './families.ts';
import { type JsonObject, isJsonObject, present } from '../codec/members.ts';

/** What an agent-transport payload carries. A bare `Task` and a bare `TaskStatusUpdateEvent` are read alike. */
export type AgentForm = 'task' | 'statusUpdate' | 'message' | 'artifactUpdate';

export interface AgentPayload {
  readonly form: AgentForm;
  /** Unwrapped. */
  readonly body: JsonObject;
}

const WRAPPERS: readonly AgentForm[] = ['task', 'statusUpdate', 'message', 'artifactUpdate'];

/**
 * Takes an agent-transport payload out of its one wrapper (verification.md §7.12): `malformed` where there are
 * two, one in the other or side by side; undefined where the payload has nothing of that transport.
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
  const twice = !isJsonObject(first.body['status']) && wrapped(first.body).length > 0;
  return twice || others.length > 0 ? 'malformed' : first;
}

function wrapped(payload: JsonObject): readonly AgentPayload[] {
  return WRAPPERS.flatMap((form) => {
    const body = payload[form];
    return isJsonObject(body) ? [{ form, body }] : [];
  });
}

/** contract.md §6.6. */
const FITS: Record<Transport, (payload: JsonObject) => boolean> = {
  tool: (payload) => typeof payload['status'] === 'string' && present(payload, 'task_id') !== undefined,
  agent: (payload) => {
    const { status } = payload;
    return isJsonObject(status) ? Object.hasOwn(status, 'state') : agentPayload(payload) !== undefined;
  },
};

const FORMATS: readonly Transport[] = ['tool', 'agent'];

/**
 * The transport of a parsed body (contract.md §6.6): the registered one, unless the payload has
 * the shape of the other, because a seller registered on both channels sends both. No payload has both shapes.
 * @param known the format the sender is registered with.
 * @returns undefined where nothing is known and the shape tells nothing.
 */
export function detectFormat(payload: unknown, known?: Transport): Transport | undefined {
  if (!isJsonObject(payload)) return known;
  return FORMATS.find((format) => FITS[format](payload)) ?? known;
}

/** How a body is read. */
export interface Form {
  readonly transport: Transport;
  /** Other families come in neither shape, and are posted like tool-transport envelopes: never of the agent's. */
  readonly family: string | undefined;
}

export function formOf(payload: JsonObject, known: Transport | undefined): Form {
  const family = FITS.agent(payload) ? undefined : familyOf(payload);
  return { transport: family === undefined ? (detectFormat(payload, known) ?? 'tool') : 'tool', family };
}
