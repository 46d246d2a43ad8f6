// Defines the function that calls a seller: the option `call`, which owners write themselves or make with `mcpCaller`
// or `a2aCaller`. Registrations, poller and reconciler send all their requests to sellers with it.
import type { CallSessions } from '../calls/sessions.ts';
import type { Transport } from '../events/event.ts';
import type { JsonObject } from './answer-json.ts';

/**
 * A function that calls an operation of a seller, e.g. `create_media_buy`, and resolves with its answer. `mcpCaller`
 * and `a2aCaller` make one for MCP and A2A; it may be your own client.
 */
export interface CallSeller {
  (
    agentUrl: string,
    operation: string,
    args: JsonObject,
    options: {
      readonly signal: AbortSignal;
      /** The `ref` of the operation, if it has one. */
      readonly ref?: string;
      /** The sessions that a poller keeps open between calls. Pass them on to the caller that you use. */
      readonly sessions?: CallSessions;
    },
  ): Promise<unknown>;
  /** The transport of each seller, which decides how a poller requests a task. Default: the tool transport. */
  readonly transport?: Transport | ((agentUrl: string) => Transport | undefined);
  /**
   * Returns the names of a seller's operations: its tools, or the skills of its agent card. Returns undefined if the
   * seller has no list. A poller requests a task by one of these operations. Absent: the poller tries the known names
   * one after the other.
   */
  readonly operations?: (
    agentUrl: string,
    options: { readonly signal: AbortSignal; readonly ref?: string; readonly sessions?: CallSessions },
  ) => Promise<readonly string[] | undefined>;
}

/** A seller that is to be asked for its capabilities. */
export interface AskedSeller {
  readonly agentUrl: string;
  /** The `ref` of the operation or task that led to this request. */
  readonly ref?: string | undefined;
  /** The poller's sessions, if a poller makes the request. */
  readonly sessions?: CallSessions;
  /**
   * Returns the seller's operations, if they are known already. Absent: they are read from the seller by
   * `call.operations`.
   */
  readonly names?: () => Promise<readonly string[] | undefined>;
}
