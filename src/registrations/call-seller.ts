// Defines the function that calls a seller: the option `call`, which owners write themselves or make with `mcpCaller`
// or `a2aCaller`. All that asks sellers takes it: registrations, poller and reconciler.
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
      /** The sessions of a poller, which outlive the call. Pass them on to the caller that you use. */
      readonly sessions?: CallSessions;
    },
  ): Promise<unknown>;
  /** The transport of each seller, by which a poller asks. Default: the tool transport. */
  readonly transport?: Transport | ((agentUrl: string) => Transport | undefined);
  /**
   * Returns the names of a seller's operations: its tools, or the skills of its agent card; undefined if it has no
   * list. A poller asks for a task by one of them. Absent: the poller tries the known names one after the other.
   */
  readonly operations?: (
    agentUrl: string,
    options: { readonly signal: AbortSignal; readonly ref?: string; readonly sessions?: CallSessions },
  ) => Promise<readonly string[] | undefined>;
}

/** A seller that is to be asked for its capabilities. */
export interface AskedSeller {
  readonly agentUrl: string;
  /** The `ref` of the operation or task that is the occasion. */
  readonly ref?: string | undefined;
  /** The sessions of the poller, if it asks. */
  readonly sessions?: CallSessions;
  /** The seller's operations, if somebody knows them already. Absent: the caller is asked. */
  readonly names?: () => Promise<readonly string[] | undefined>;
}
