// Finds the data part and the state of an agent-transport payload (verification.md §7.15, §7.16, §7.20).
// Called by `agent.ts`, by `extractData`, and for answers of calls and polls.

import { isJsonObject, type JsonObject } from '../codec/members.ts';
import { type AgentPayload, hasState } from './format.ts';
import { isTerminal, normaliseState, taskStatus } from './status.ts';

/** The result of `agentData`: the task's data, and two irregularities of the payload that become warnings. */
export interface AgentData {
  /** The data as sent. Undefined if there is none, or if `wrappedResponse` is true. */
  readonly data: unknown;
  /**
   * True if the chosen data part was only `{response: {…}}`. That is a mistake of the sender, so `data` is undefined.
   */
  readonly wrappedResponse: boolean;
  /**
   * Present if an artifact after the first has data. `taken`: that data is used, because nothing else has data. `left`:
   * that data is ignored (calls.md §1.7).
   */
  readonly later?: 'taken' | 'left';
}

/**
 * Finds the task's data, depending on the task's state (verification.md §7.16). No data is found if the state is absent
 * or unknown (§7.20).
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

/** Returns the member `state` of a status object, normalised; undefined if `state` is not a string. */
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

/** Returns the first data part in the artifacts after the first one. Undefined unless the status is terminal. */
function laterData({ status, artifacts }: JsonObject): JsonObject | undefined {
  const known = taskStatus(stateOf(status));
  if (known === undefined || !isTerminal(known) || !Array.isArray(artifacts)) return undefined;
  for (const artifact of artifacts.slice(1) as readonly unknown[]) {
    const [data] = dataParts(artifact);
    if (data) return data;
  }
  return undefined;
}

/**
 * Returns the `data` of each data part of a message or artifact. A data part has an object as `data`, with or without
 * `kind`.
 */
export function dataParts(holder: unknown): readonly JsonObject[] {
  return partsOf(holder).flatMap((part) => (isJsonObject(part['data']) ? [part['data']] : []));
}

export function partsOf(holder: unknown): readonly JsonObject[] {
  const parts = isJsonObject(holder) ? holder['parts'] : undefined;
  return Array.isArray(parts) ? parts.filter((part) => isJsonObject(part)) : [];
}
