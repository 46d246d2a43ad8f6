// Defines the function that calls a seller: the option `call`, which owners write themselves or make with `mcpCaller`
// or `a2aCaller`. Registrations, poller and reconciler send all their requests to sellers with it.
import type { CallSessions } from '../calls/sessions.ts';
import type { Transport } from '../events/event.ts';
import type { JsonObject } from './answer-json.ts';

/**
 * A function that calls an operation of a seller, e.g. `create_media_buy`, and resolves with its answer. `mcpCaller`
 * and `a2aCaller` create such functions for MCP and A2A. You may also write your own.
 */
export interface CallSeller {
  (
    agentUrl: string,
    operation: string,
    args: JsonObject,
    options: {
      readonly signal: AbortSignal;
      /** The `ref` of the operation for which the request is made, if it has one. */
      readonly ref?: string;
      /** The sessions that a poller keeps open between calls. Pass them on to the caller that you use. */
      readonly sessions?: CallSessions;
    },
  ): Promise<unknown>;
  /** The transport of each seller, by which a poller chooses the request for a task. Default: the tool transport. */
  readonly transport?: Transport | ((agentUrl: string) => Transport | undefined);
  /**
   * Returns the names of a seller's operations: its tools, or the skills of its agent card. Returns undefined if the
   * seller has no list. A poller chooses from them the operation that requests a task. If this function is absent, the
   * poller tries the names it knows one after the other.
   */
  readonly operations?: (
    agentUrl: string,
    options: { readonly signal: AbortSignal; readonly ref?: string; readonly sessions?: CallSessions },
  ) => Promise<readonly string[] | undefined>;
}

/** A seller whose capabilities are to be requested. */
export interface AskedSeller {
  readonly agentUrl: string;
  /** The `ref` of the operation or task that led to this request. */
  readonly ref?: string | undefined;
  /** The poller's open sessions, if a poller makes the request. */
  readonly sessions?: CallSessions;
  /**
   * Returns the seller's operations, if they are known already. Absent: `call.operations` requests them from the
   * seller.
   */
  readonly names?: () => Promise<readonly string[] | undefined>;
}
