// Finds the data part and the state of an agent-transport payload (verification.md §7.15, §7.16, §7.20).
// Called by `agent.ts`, by `extractData`, and for answers of calls and polls.

import { isJsonObject, type JsonObject } from '../codec/members.ts';
import { type AgentPayload, hasState } from './format.ts';
import { isTerminal, normaliseState, taskStatus } from './status.ts';

/** The data part that the extraction rules choose, and the sender's wrapper mistake, if it is one. */
export interface AgentData {
  /** The data as sent. Undefined if there is none, or if `wrappedResponse` is true. */
  readonly data: unknown;
  /** True if the part was only `{response: {…}}`. */
  readonly wrappedResponse: boolean;
  /**
   * Set if a later artifact than the first has data, which is `data` only if nothing else is (calls.md §1.7).
   */
  readonly later?: 'taken' | 'left';
}

/**
 * Finds the data by the state (verification.md §7.16). There is none without a state, or with an unknown one
 * (§7.20).
 */
export function agentData({ form, body }: AgentPayload): AgentData {
  const found = hasState(form) ? statusData(body) : undefined;
  const later = hasState(form) ? laterData(body) : undefined;
  const data = found ?? later;
  const wrappedResponse =
    data !== undefined && isJsonObject(data['response']) && Object.keys(data).length === 1;
  return {
    data: wrappedResponse ? undefined : data,
    wrappedResponse,
    ...(later && { later: found ? 'left' : 'taken' }),
  };
}

/** The state of a status object, normalised; undefined if it is no string. */
export function stateOf(status: unknown): string | undefined {
  const state = isJsonObject(status) ? status['state'] : undefined;
  return typeof state === 'string' ? normaliseState(state) : undefined;
}

function statusData({ status, artifacts }: JsonObject): JsonObject | undefined {
  const known = taskStatus(stateOf(status));
  if (known === undefined) return undefined;
  const interim = dataParts(isJsonObject(status) ? status['message'] : undefined).at(0);
  if (!isTerminal(known)) return interim;
  return dataParts(Array.isArray(artifacts) ? artifacts[0] : undefined).at(-1) ?? interim;
}

/** The first data part after the first artifact, for a terminal status. */
function laterData({ status, artifacts }: JsonObject): JsonObject | undefined {
  const known = taskStatus(stateOf(status));
  if (known === undefined || !isTerminal(known) || !Array.isArray(artifacts)) return undefined;
  for (const artifact of artifacts.slice(1) as readonly unknown[]) {
    const [data] = dataParts(artifact);
    if (data) return data;
  }
  return undefined;
}

/** The data of each data part: `data` is an object, with or without `kind`. */
export function dataParts(holder: unknown): readonly JsonObject[] {
  return partsOf(holder).flatMap((part) => (isJsonObject(part['data']) ? [part['data']] : []));
}

export function partsOf(holder: unknown): readonly JsonObject[] {
  const parts = isJsonObject(holder) ? holder['parts'] : undefined;
  return Array.isArray(parts) ? parts.filter((part) => isJsonObject(part)) : [];
}
