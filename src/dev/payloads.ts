// Builds bodies as sellers of an edition write them (dev.md §2.1). Sending, scenarios and the webhooks of calls use
// it. Samples have the form of 3.1, and are changed for the other editions.
import { isJsonObject } from '../codec/members.ts';
import type { EditionName } from '../shared/editions.ts';
import { samplePayloads, type Members, type SamplePayloads } from '../testing/payloads.ts';

/** The edition that is sent if none is named: receivers of every edition read it. */
export const DEFAULT_EDITION: EditionName = '3.1';

/** The form in which sellers of an edition write a task's webhook. */
interface Writing {
  /** False for 3.0, which does not have the member. */
  readonly operationId: boolean;
  /** The agent transport's version: its objects as they are, or in a member that names them. */
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

/** Removes the operation's id: with 3.0 the buyer has put it into the URL. */
function withoutOperationId(body: Members): Members {
  const { metadata } = body;
  const rest = without('operation_id', body);
  return isJsonObject(metadata) ? { ...rest, metadata: without('operation_id', metadata) } : rest;
}

/** Removes `kind` of parts: in A2A 1.0 the name of their member says what they are. */
const partsOf = (parts: unknown): unknown =>
  Array.isArray(parts) ? parts.map((part) => without('kind', part as Members)) : parts;

/** A body of the agent transport as A2A 1.0 has it: in a member that names it, states in capitals, without `kind`. */
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

/** Bodies as a seller of the edition writes them. */
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
