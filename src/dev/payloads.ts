// Builds bodies in the form of a protocol version (dev.md §2.1). Sending, scenarios and the webhooks of orders use it.
// Samples have the form of version 3.1, and are converted for the others.
import { isJsonObject } from '../codec/members.ts';
import type { EditionName } from '../shared/editions.ts';
import { samplePayloads, type Members, type SamplePayloads } from '../testing/payloads.ts';

/** The protocol version that is sent by default, because receivers of every version can read it. */
export const DEFAULT_EDITION: EditionName = '3.1';

/** The form in which sellers of a protocol version write a task's webhook. */
interface Writing {
  /** True if bodies have the member `operation_id`. Version 3.0 does not have it. */
  readonly operationId: boolean;
  /** The form of an agent-transport body: the object itself, or `wrapped` in a member that names its type (A2A 1.0). */
  readonly agent: 'bare' | 'wrapped';
}

const WRITINGS: Readonly<Record<EditionName, Writing>> = {
  '3.0': { operationId: false, agent: 'bare' },
  '3.1': { operationId: true, agent: 'bare' },
  '3.2': { operationId: true, agent: 'wrapped' },
  '3.3': { operationId: true, agent: 'wrapped' },
};

const without = (name: string, members: Members): Members =>
  Object.fromEntries(Object.entries(members).filter(([key]) => key !== name));

/** Removes `operation_id` from a body: for version 3.0 the buyer has put the id into the webhook URL. */
function withoutOperationId(body: Members): Members {
  const { metadata } = body;
  const rest = without('operation_id', body);
  return isJsonObject(metadata) ? { ...rest, metadata: without('operation_id', metadata) } : rest;
}

/** Removes `kind` from the parts of a message. In A2A 1.0 the name of a part's member says what the part is. */
const partsOf = (parts: unknown): unknown =>
  Array.isArray(parts) ? parts.map((part) => without('kind', part as Members)) : parts;

/**
 * Converts a body of the agent transport to A2A 1.0: in a member that names its type, with states in capitals, without
 * `kind`.
 */
function wrapped(body: Members): Members {
  const {
    kind,
    final: _final,
    artifacts,
    status,
    ...rest
  } = body as Members & {
    readonly status: Members & { readonly state: string };
  };
  const state = `TASK_STATE_${status.state.toUpperCase().replaceAll('-', '_')}`;
  const { message } = status;
  const said = isJsonObject(message) && {
    message: { ...without('kind', message), role: 'ROLE_AGENT', parts: partsOf(message['parts']) },
  };
  const made = Array.isArray(artifacts) && {
    artifacts: (artifacts as readonly Members[]).map((artifact) => ({
      ...artifact,
      parts: partsOf(artifact['parts']),
    })),
  };
  const inner = { ...rest, status: { ...status, state, ...said }, ...made };
  return kind === 'task' ? { task: inner } : { statusUpdate: inner };
}

/** Makes builders of bodies in the form of a protocol version. */
export function payloadsOf(edition: EditionName, now: () => number): SamplePayloads {
  const samples = samplePayloads({ now });
  const { operationId, agent } = WRITINGS[edition];
  const named = <T extends Members>(body: T): T => (operationId ? body : (withoutOperationId(body) as T));
  return {
    tool: (...given) => named(samples.tool(...given)),
    agent: (...given) => {
      const body = named(samples.agent(...given));
      return agent === 'bare' ? body : (wrapped(body) as typeof body);
    },
    report: (...given) => named(samples.report(...given)),
    family: (...given) => samples.family(...given),
  };
}
